"""fsyncs by fio: what is run, how its JSON is read, what is kept, and what is left behind.

The fixtures are what fio 3.25, 3.33 and 3.39 (Debian 11, 12 and 13) printed of these commands on ext4.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.common.errors import SettingsError
from plimsoll.lab.fileio import fileio, fio, sysbench
from plimsoll.lab.fileio.asked import check_settings
from plimsoll.lab.fileio.bench import FileioError
from plimsoll.lab.fileio.fio import ETCD, FIGURES, PRESETS, FioBench, FsyncSettings, fsync_cell, parse_fio
from plimsoll.lab.fileio.measure import (
    FSYNC_COLUMNS,
    append_cell,
    commands,
    fsync_row,
    measure_cells,
    read_cells,
    table,
    written_bytes,
)
from plimsoll.lab.fileio.sysbench import MatrixCase, parse_cell, parse_output
from plimsoll.rundir.volumes import FsyncCase, FsyncCell
from tests.support.recorded import fio_output, sysbench_output
from tests.support.scripted import SMALL, BenchAnswer, ScriptedMachine, bench_machine

VERSIONS = ("fio-3.25", "fio-3.33", "fio-3.39")
OWN = "/srv/disk/plimsoll-fsync"
FEW = FsyncSettings(
    directory="/srv/disk", calls=("fsync",), tests=("rndwr",), engines=("psync",), block_sizes=(4096,),
    threads=(2,), file_size=16 << 20, time_s=2,
)  # fmt: skip
RNDWR = FEW.cells[1]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("what", "case"), [("etcd", ETCD), ("rndwr", RNDWR)])
def test_a_cell_says_what_fio_printed(version: str, what: str, case: FsyncCase) -> None:
    job = json.loads(fio_output(version, what))["jobs"][0]
    cell = fsync_cell("here", case, parse_fio(fio_output(version, what)))
    assert cell.fio == version
    assert cell.case == case
    assert (cell.writes, cell.syncs) == (job["write"]["total_ios"], job["sync"]["lat_ns"]["N"])
    assert cell.syncs > 1000, "also after fdatasyncs, whose total_ios is 0"
    for printed, found in ((job["sync"]["lat_ns"], cell.sync_ms), (job["write"]["clat_ns"], cell.write_ms)):
        assert tuple(found) == FIGURES
        for name, fios in (("p50", "50.000000"), ("p99", "99.000000"), ("p99.9", "99.900000")):
            assert found[name] == pytest.approx(printed["percentile"][fios] / 1e6)  # type: ignore[index]
        assert found["max"] == pytest.approx(printed["max"] / 1e6)
    assert cell.sync_ms["p50"] != cell.write_ms["p50"], "calls apart from writes"
    assert cell.execution_s == job["write"]["runtime"] / 1000
    assert cell.throughput_mib_per_s == pytest.approx(job["write"]["bw_bytes"] / 2**20, abs=0.001)


def test_the_recipe_is_the_one_that_is_known() -> None:
    words = FioBench(FsyncSettings(directory="/srv/disk", preset="etcd")).run(ETCD)
    assert words[:2] == ["env", f"--chdir={OWN}"]
    known = {"--rw=write", "--ioengine=sync", "--fdatasync=1", "--directory=.", "--size=22m", "--bs=2300"}
    assert known <= set(words)
    measuring = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--chdir"}
    assert measuring == {
        *("--rw", "--ioengine", "--fdatasync", "--directory", "--size", "--bs", "--name"),
        *("--runtime", "--thread", "--group_reporting", "--unlink", "--eta", "--output-format"),
    }, "nothing else shapes what is measured, but for its end on a slow disk"


def test_the_cells_are_the_recipe_and_each_of_each() -> None:
    settings = FsyncSettings(
        directory="/d", calls=("fsync",), tests=("seqwr", "rndwr"), engines=("sync", "io_uring"),
        block_sizes=(4096, 16384), threads=(1, 8, 32),
    )  # fmt: skip
    assert settings.cells[0] == ETCD
    assert len(set(settings.cells)) == 1 + 2 * 2 * 2 * 3
    assert FsyncSettings(directory="/d", preset="etcd").cells == [ETCD]
    assert len(FsyncSettings(directory="/d").cells) == 9


COMMANDS = [
    ("appended like a log", {"test": "seqwr"}, {"--rw=write", "--fallocate=none"}, {"--overwrite=1"}),
    ("written over like a database", {}, {"--rw=randwrite", "--overwrite=1"}, set()),
    ("a call of its own name", {"call": "fdatasync"}, {"--fdatasync=1"}, {"--fsync=1"}),
    ("past the page cache", {"direct": True}, {"--direct=1"}, set()),
    ("all files together have the size", {"threads": 4}, {"--numjobs=4", "--size=4m"}, set()),
    ("parts of a MiB", {"threads": 3}, {f"--size={(16 << 20) // 3}"}, set()),
    ("as long as it is told", {"time_s": 7}, {"--runtime=7", "--time_based"}, set()),
]


@pytest.mark.parametrize(("changes", "has", "lacks"), [r[1:] for r in COMMANDS], ids=[r[0] for r in COMMANDS])
def test_commands(changes: dict[str, Any], has: set[str], lacks: set[str]) -> None:
    case = FsyncCase(**{**RNDWR.__dict__, **changes})
    words = set(FioBench(FEW).run(case))
    assert has <= words
    assert not lacks & words


def test_random_writes_need_files_before_and_appending_ones_do_not() -> None:
    assert written_bytes(FEW, FEW.cells) == 16 << 20
    assert written_bytes(FEW, [ETCD]) == 0
    assert FEW.needed_bytes == (22 << 20) * 21 // 20, "the larger of the recipe's and the others'"


FIGURES_OF_FEW = [
    ("none at all", 0, None, None, None),
    ("one has no median", 1, None, None, 5.0),
    ("ninety-nine have no p99", 99, 2.0, None, 5.0),
    ("a hundred have one", 100, 2.0, 5.0, 5.0),
]


@pytest.mark.parametrize(("count", "p50", "p99", "most"), [r[1:] for r in FIGURES_OF_FEW])
def test_what_too_few_calls_leave_open_is_no_zero(
    count: int, p50: float | None, p99: float | None, most: float | None
) -> None:
    document = json.loads(fio_output("fio-3.33", "etcd"))
    printed = document["jobs"][0]["sync"]["lat_ns"]
    printed |= {"N": count, "max": 5_000_000}
    printed["percentile"] |= {"50.000000": 2_000_000, "99.000000": 5_040_000, "99.900000": 5_040_000}
    if not count:
        del printed["percentile"]
    found = parse_fio(json.dumps(document)).sync_ms
    assert (found["p50"], found["p99"], found["max"]) == (p50, p99, most)
    assert found["p99.9"] is None
    row = fsync_row(fsync_cell("v", ETCD, parse_fio(json.dumps(document))))
    assert row[[*FSYNC_COLUMNS].index("p99.9 (ms)")] == "–"


def test_words_before_the_json_are_passed_over() -> None:
    noisy = "fio: terminating on signal 1\nnote: {odd}\n" + fio_output("fio-3.33", "etcd")
    assert parse_fio(noisy) == parse_fio(fio_output("fio-3.33", "etcd"))


def damaged(*path: str, value: Any = None) -> str:
    document = json.loads(fio_output("fio-3.33", "etcd"))
    at = document["jobs"][0]
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "prints: it must be version 3.19 or newer (apt-get install fio): nothing"),
        ("fio: no such engine", "fio: no such engine"),
        (damaged("sync"), "version 3.19"),
        (damaged("sync", "lat_ns", "N"), "version 3.19"),
        (damaged("error", value=28), "fio ended with error 28"),
        (damaged("write", "iops", value=float("nan")), "impossible figures: iops: must be a number"),
        ("[" * 100_000, "cannot parse"),
    ],
)
def test_output_that_is_not_whole_is_refused(text: str, says: str) -> None:
    with pytest.raises(FileioError) as refused:
        fsync_cell("v", ETCD, parse_fio(text))
    assert says in str(refused.value)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for whole in (text, fio_output("fio-3.39", "etcd")[:-600] + text):
        with pytest.raises(FileioError, match="fio"):
            parse_fio(whole)


def machine(folder_exists: bool = False, fails: str = "") -> ScriptedMachine:
    """A machine with fio, as recorded."""

    def measured(words: list[str]) -> BenchAnswer:
        if "fio" not in words:
            return 0, "", ""
        if fails and fails in words:
            return 1, "", "fio: engine not loadable\nmore"
        return 0, fio_output("fio-3.33", "etcd" if "--size=22m" in words else "rndwr"), ""

    return bench_machine(measured, folder_exists=folder_exists)


def verbs(on: ScriptedMachine) -> list[str]:
    return ["fio" if "fio" in words else words[0] for words in on.ran]


def test_it_is_measured_kept_and_cleaned_up(tmp_path: Path) -> None:
    on = machine()
    cells = asyncio.run(measure_cells(on, FEW, tmp_path / "c"))
    assert verbs(on) == ["mkdir", "df", "fio", "fio", "rm", "rmdir"]
    assert [cell.key for cell in cells] == list(FEW.cases_by_key("/srv/disk"))
    assert read_cells(tmp_path / "c") == cells
    ran = [list(words) for words in on.ran if words[0] != "df"]
    assert ran == commands(FEW, FEW.cells), "as the plan has it"
    assert ran[-2] == ["rm", "-f", "--", f"{OWN}/plimsoll.0.0", f"{OWN}/plimsoll.1.0"], "each by its name"


def test_what_is_finished_is_not_measured_again(tmp_path: Path) -> None:
    failing = machine(fails="--fsync=1")
    with pytest.raises(FileioError, match=r"fsync after rndwr of 4 KiB by psync.*not loadable; .*--resume"):
        asyncio.run(measure_cells(failing, FEW, tmp_path / "c"))
    assert verbs(failing)[-2:] == ["rm", "rmdir"], "files are removed after a failure too"
    with pytest.raises(FileioError, match="1 cells of this matrix are already finished"):
        asyncio.run(measure_cells(machine(), FEW, tmp_path / "c"))
    after = machine(folder_exists=True)
    assert len(asyncio.run(measure_cells(after, FEW, tmp_path / "c", resume=True))) == 2
    assert verbs(after) == ["mkdir", "find", "rm", "df", "fio", "rm", "rmdir"]


def test_a_machine_without_fio_is_reported(tmp_path: Path) -> None:
    whole = machine()
    on = ScriptedMachine(lambda words: (127, "", "") if "fio" in words else whole._answer(words))
    with pytest.raises(FileioError, match="scripted: fio is not installed: apt-get install fio"):
        asyncio.run(measure_cells(on, FEW, tmp_path / "c"))
    assert verbs(on)[-2:] == ["rm", "rmdir"]


def test_cells_of_both_kinds_lie_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "c"
    sysbench = parse_cell(SMALL, MatrixCase("rndrd", 2), parse_output(sysbench_output("rndrd")))
    fsync = fsync_cell("v", ETCD, parse_fio(fio_output("fio-3.39", "etcd")))
    for cell in (sysbench, fsync):
        append_cell(path, cell)
    assert read_cells(path) == [sysbench, fsync]
    assert len(table([sysbench, fsync]).split("\n\n")) == 2


def finished(**changes: Any) -> dict[str, Any]:
    cell = fsync_cell("v", ETCD, parse_fio(fio_output("fio-3.33", "etcd"))).as_json()
    return cell | changes


@pytest.mark.parametrize(
    "changes",
    [
        {"threads": "2"},
        {"iops": None},
        {"engine": "rados"},
        {"sync_ms": {"p12": 1.0}},
        {"sync_ms": 1},
        {"syncs": -1},
    ],
)
def test_what_is_no_cell_is_left_out(tmp_path: Path, changes: dict[str, Any]) -> None:
    lines = [json.dumps(finished(**changes)), json.dumps(finished())]
    (tmp_path / "c").write_text("\n".join(lines), encoding="utf-8")
    assert [cell.as_json() for cell in read_cells(tmp_path / "c")] == [finished()]


def test_the_table_has_its_columns_and_hostile_names_harm_nothing() -> None:
    cell = FsyncCell.model_validate(finished(volume="\x1b[2Jdisk\n"))
    assert len(fsync_row(cell)) == len(FSYNC_COLUMNS)
    head, line = table([cell]).splitlines()
    assert all(column in head for column in FSYNC_COLUMNS)
    assert "\x1b" not in line and "etcd" in line and "2300 B" in line


OPTIONS: dict[str, Any] = {"file_size": "2G", "time_s": "30", "direct": False}
RECIPE = "--preset: etcd's recipe sets everything itself: leave time-s out"
REFUSED = [
    ("a call that is none", {"calls": "sync"}, "--calls: must be fdatasync or fsync"),
    ("an engine that fio has elsewhere", {"engines": "windowsaio"}, "--engines: must be sync, psync"),
    ("the same engine twice", {"engines": "sync,sync"}, "--engines: must not name anything twice"),
    ("reads, after which nothing is to be synced", {"tests": "rndrw"}, "--tests: must be seqwr or rndwr"),
    ("no block", {"block_sizes": "0"}, "--block-sizes: must be at least 1"),
    ("no size", {"block_sizes": "much"}, "--block-sizes: must be a size"),
    ("parts of sectors", {"block_sizes": "2300", "direct": True}, "--direct: needs block sizes in multiples"),
    ("no block for a thread", {"file_size": "64K", "threads": "8"}, "--file-size: must be at least 128 KiB"),
    ("a recipe with additions", {"preset": "etcd", "time_s": "2"}, RECIPE),
]  # fmt: skip


@pytest.mark.parametrize(("given_", "says"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_options_that_are_refused(given_: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_settings(Path("/"), OPTIONS | given_, fsync=True)
    assert str(refused.value).startswith(says)


def test_all_problems_are_reported_at_once_and_options_of_fio_need_its_flag() -> None:
    wrong = {"calls": "x", "engines": "y", "threads": "z", "file_size": "much"}
    with pytest.raises(SettingsError) as refused:
        check_settings(Path("/"), OPTIONS | wrong, fsync=True)
    assert len(str(refused.value).splitlines()) == 4
    with pytest.raises(SettingsError) as refused:
        check_settings(Path("/"), OPTIONS | {"engines": "psync", "preset": "etcd", "tests": "walk"})
    assert [line.partition(": ")[0] for line in str(refused.value).splitlines()] == [
        "--preset",
        "--engines",
        "--tests",
    ]


def test_lists_and_the_recipe_come_as_options() -> None:
    found = check_settings(Path("/"), OPTIONS | {"block_sizes": "4K, 16K", "threads": "1,32"}, fsync=True)
    assert isinstance(found, FsyncSettings)
    assert (found.block_sizes, found.threads) == ((4096, 16384), (1, 32))
    recipe = check_settings(Path("/"), OPTIONS | {"preset": "etcd", "volume": "nvme"}, fsync=True)
    assert recipe.cells == [ETCD] and recipe.name == "nvme"


def test_patience_counts_files_that_a_cell_writes_itself() -> None:
    appending = FsyncCase(**{**RNDWR.__dict__, "test": "seqwr"})
    bench = FioBench(FEW)
    assert bench.most_s(RNDWR) - bench.most_s(appending) == 16, "of 16 MiB at 1 MiB/s"
    assert bench.most_s(ETCD) == 600


def test_the_help_names_the_presets_and_the_numbers_of_threads() -> None:
    options = {option.name: option for option in fileio.params if isinstance(option, click.Option)}
    preset, threads = options["preset"], options["threads"]
    assert isinstance(preset.type, click.Choice)
    assert list(preset.type.choices) == list(PRESETS)
    numbers = (",".join(map(str, each)) for each in (sysbench.THREADS, fio.THREADS))
    assert threads.help is not None
    assert threads.help.endswith("[default: {}; with --fsync: {}]".format(*numbers))
