"""sysbench's matrix: what is run, how its output is read, what is kept, and that nothing is left behind."""

import asyncio
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.common.errors import SettingsError
from plimsoll.common.units import parse_size, size_text
from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.fileio import fileio
from plimsoll.lab.fileio.asked import check_settings
from plimsoll.lab.fileio.bench import FileioError
from plimsoll.lab.fileio.measure import (
    COLUMNS,
    FSYNC_COLUMNS,
    append_cell,
    cache_caution,
    keep_latest,
    measure_cells,
    read_cells,
    row,
    space_problem,
    table,
)
from plimsoll.lab.fileio.sysbench import (
    TESTS,
    THREADS,
    Bucket,
    FileioSettings,
    MatrixCase,
    SysbenchBench,
    p999,
    parse_cell,
    parse_output,
)
from plimsoll.rundir.volumes import FsyncCell, MatrixCell
from tests.support.programs import ROOT
from tests.support.recorded import sysbench_output
from tests.support.scripted import SMALL, ScriptedMachine, sysbench_machine

STEP = math.log(1e8) / 1023


def printed(text: str, name: str) -> float:
    """A figure of sysbench's, read in another way than the parser does."""
    return float(text.split(name, 1)[1].split()[0].rstrip("s"))


@pytest.mark.parametrize("test", TESTS)
def test_a_row_says_what_sysbench_printed(test: Any) -> None:
    text = sysbench_output(test)
    cell = parse_cell(SMALL, MatrixCase(test, 2), parse_output(text))
    assert cell.events == printed(text, "events:")
    assert cell.reads + cell.writes + cell.fsyncs == pytest.approx(cell.events, abs=2)
    assert cell.iops == pytest.approx(printed(text, "reads/s:") + printed(text, "writes/s:"), abs=0.01)
    both = printed(text, "read, MiB/s:") + printed(text, "written, MiB/s:")
    assert cell.throughput_mib_per_s == pytest.approx(both, abs=0.01)
    assert cell.throughput_mib_per_s == pytest.approx(cell.iops * 16 / 1024, abs=0.02), "in blocks of 16 KiB"
    assert cell.execution_s == printed(text, "total time:")
    assert bool(cell.reads) == (test in ("rndrd", "seqrd", "rndrw"))
    assert bool(cell.writes) == (test in ("rndwr", "seqwr", "rndrw"))
    assert cell.p999_low_ms is not None and cell.p999_ms is not None and cell.p999_high_ms is not None
    assert cell.p999_low_ms <= cell.p999_ms <= cell.p999_high_ms <= printed(text, "max:") + 0.005


@pytest.mark.parametrize("test", TESTS)
def test_the_buckets_are_those_that_the_error_is_computed_from(test: str) -> None:
    for bucket in parse_output(sysbench_output(test)).buckets:
        index = round(math.log(bucket.value_ms / 1e-3) / STEP)
        # Small values are printed too coarsely to tell their bucket; some bucket is near anyway.
        nearest = min(
            abs(bucket.value_ms - 1e-3 * math.exp(i * STEP)) for i in range(max(index - 60, 0), index + 60)
        )
        assert nearest <= 0.00051


@given(
    st.lists(st.tuples(st.floats(0.0011, 99_000.0), st.integers(1, 600)), min_size=1, max_size=50),
    st.floats(0.0011, 1.0),
)
def test_the_true_percentile_lies_between_its_bounds(times: list[tuple[float, int]], often_ms: float) -> None:
    times_ms = [time_ms for time_ms, count in times for _ in range(count)] + [often_ms] * 1000
    counts: dict[int, int] = {}
    for time_ms in times_ms:
        index = math.floor(math.log(time_ms / 1e-3) / STEP + 0.5)
        counts[index] = counts.get(index, 0) + 1
    buckets = [
        Bucket(float(f"{1e-3 * math.exp(index * STEP):.3f}"), counts[index]) for index in sorted(counts)
    ]
    found = p999(buckets, float(f"{max(times_ms):.2f}"))
    assert found
    true_ms = sorted(times_ms)[math.ceil(0.999 * len(times_ms) - 1e-9) - 1]
    assert found.low_ms * (1 - 1e-9) <= true_ms <= found.high_ms * (1 + 1e-9)
    assert found.high_ms - found.low_ms <= 0.0101 + 0.02 * found.value_ms


@pytest.mark.parametrize(
    ("buckets", "expected", "says"),
    [
        ([], None, "nothing was measured"),
        ([Bucket(1.0, 999)], None, "999 events have no 99.9th percentile"),
        ([Bucket(1.0, 999), Bucket(5.0, 1)], 1.0, "of 1,000 it is the 999th"),
        ([Bucket(1.0, 1000), Bucket(5.0, 1)], 1.0, "of 1,001 it is the 1,000th"),
        ([Bucket(1.0, 998), Bucket(5.0, 2)], 5.0, "the 999th is the first of the slow ones"),
    ],
)
def test_the_percentile_is_an_order_statistic(
    buckets: list[Bucket], expected: float | None, says: str
) -> None:
    found = p999(buckets, 5.0)
    assert (found and found.value_ms) == expected, says


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        (lambda text: "", "events"),
        (lambda text: text.replace("reads/s:", "reads:"), "reads_per_s"),
        (lambda text: text.replace("total time:", "time:"), "execution_s"),
        (lambda text: re.sub(r"\n +0\.\d{3} \|.*", "", text, count=1), "histogram"),
        (lambda text: text.split("Latency histogram")[0], "reads_per_s"),
        (lambda text: text.replace("MiB/s", "MB/s"), "read_mib_per_s"),
    ],
)
def test_output_that_is_not_whole_is_refused(damage: Any, names: str) -> None:
    with pytest.raises(FileioError, match=names):
        parse_output(damage(sysbench_output("rndrw")))


@given(st.text(max_size=400))
def test_any_text_is_read_or_refused(text: str) -> None:
    for whole in (text, sysbench_output("seqrd")[:-600] + text):
        try:
            parse_output(whole)
        except FileioError as error:
            assert "sysbench" in str(error)


def test_the_commands_are_those_of_the_documents() -> None:
    here = ["env", "--chdir=/srv/disk/plimsoll-fileio", "sysbench", "fileio"]
    files = ["--file-total-size=67108864", "--file-num=128"]
    assert SysbenchBench(SMALL).files() == [*here, *files, "prepare"]
    assert SysbenchBench(SMALL).clean_up() == [
        [*here, *files, "cleanup"],
        ["rmdir", "--", "/srv/disk/plimsoll-fileio"],
    ]
    ran = SysbenchBench(SMALL.model_copy(update={"direct": True})).run(MatrixCase("rndrw", 8))
    assert ran[:4] == here
    assert {"--threads=8", "--file-test-mode=rndrw", "--histogram=on", "--time=2"} <= set(ran)
    assert {"--file-block-size=16384", "--file-extra-flags=direct"} <= set(ran)
    assert ran[-1] == "run"


def test_the_matrix_is_whole_by_default() -> None:
    assert len(FileioSettings(directory="/d").cells) == len(TESTS) * len(THREADS) == 35


@pytest.mark.parametrize(
    ("text", "size", "says"),
    [
        ("64M", 64 << 20, "as sysbench has it"),
        ("2g", 2 << 30, "in small letters"),
        ("16 KiB", 16384, "as the table has it"),
        ("1048576", 1 << 20, "in bytes"),
    ],
)
def test_sizes(text: str, size: int, says: str) -> None:
    assert parse_size(text) == size, says
    assert parse_size(size_text(size)) == size


@given(st.integers(0, 1 << 49))
def test_sizes_are_read_as_they_are_written(size: int) -> None:
    assert parse_size(size_text(size)) == size


OPTIONS: dict[str, Any] = {"file_size": "64M", "threads": "1,8", "tests": "rndrd", "time_s": "5"}


@pytest.mark.parametrize(
    ("given_", "problem", "says"),
    [
        ({"file_size": "much"}, "--file-size: must be a size", "no number"),
        ({"file_size": "1000"}, "--file-size: must be a multiple of 2M", "no whole blocks"),
        ({"threads": "0"}, "--threads: ", "no thread at all"),
        ({"threads": "1,1"}, "--threads: must not name anything twice", "the same cell twice"),
        ({"threads": ""}, "--threads: ", "none"),
        ({"tests": "rndrd,walk"}, "--tests: ", "no test of sysbench's"),
        ({"time_s": "-1"}, "--time-s: ", "a negative time"),
    ],
)
def test_options_that_are_refused(given_: dict[str, Any], problem: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_settings(Path("/"), OPTIONS | given_)
    assert str(refused.value).startswith(problem), says


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as refused:
        check_settings(Path("/"), {"file_size": "x", "threads": "y", "tests": "z", "time_s": "t"})
    assert len(str(refused.value).splitlines()) == 4


def cell(**changes: Any) -> MatrixCell:
    found = parse_cell(SMALL, MatrixCase("rndrd", 2), parse_output(sysbench_output("rndrd")))
    return found.model_copy(update=changes)


def test_finished_cells_come_back_and_a_cut_line_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "new" / "cells.jsonl"
    append_cell(path, cell(threads=1))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    append_cell(path, cell(threads=2))
    assert [one.threads for one in read_cells(path)] == [1, 2]


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "[]",
        "{}",
        '"x"',
        "[" * 100_000,
        json.dumps(cell().as_json() | {"threads": "2"}),
        json.dumps(cell().as_json() | {"iops": None}),
        json.dumps(cell().as_json()).replace('"execution_s": ', '"execution_s": NaN, "x": '),
    ],
)
def test_what_is_no_cell_is_left_out(tmp_path: Path, line: str) -> None:
    (tmp_path / "cells").write_text(line + "\n" + json.dumps(cell().as_json()) + "\n", encoding="utf-8")
    assert read_cells(tmp_path / "cells") == [cell()]


def test_a_key_of_a_later_version_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "cells").write_text(json.dumps(cell().as_json() | {"more": 1}), encoding="utf-8")
    assert read_cells(tmp_path / "cells") == [cell()]


def test_of_two_measurements_the_later_counts() -> None:
    assert keep_latest([cell(iops=1.0), cell(iops=2.0)], [cell().key]) == [cell(iops=2.0)]


def test_the_table_has_its_columns_and_hostile_names_harm_nothing() -> None:
    text = table([cell(volume="\x1b[2Jdisk\n\u202e"), cell(p999_ms=None)])
    head, first, second = text.splitlines()
    assert re.split(r"\s{2,}", head) == list(COLUMNS)
    assert "\x1b" not in first and "\\x1b[2Jdisk\\x0a\\u202e" in first
    assert second.endswith("–"), "a percentile that cannot be given"
    assert len(row(cell())) == len(COLUMNS)


def test_every_option_and_column_is_documented() -> None:
    text = (ROOT / "docs" / "fileio.md").read_text(encoding="utf-8")
    options = {flag for p in fileio.params for flag in [*p.opts, *p.secondary_opts] if flag.startswith("--")}
    assert options <= set(re.findall(r"`(--[a-z-]+)", text))
    assert set(re.findall(r"`(--[a-z-]+)", text)) <= options, "no option is documented that is none"
    assert all(f"| {name} |" in text for name in (*COLUMNS, *FSYNC_COLUMNS))
    assert all(
        f"`{name}`" in text for name in (*cell().as_json(), *FsyncCell.model_fields, "plimsoll fileio")
    )
    assert SMALL.cases_by_key(SMALL.name)[cell().key] == ("rndrd", 2)


def verbs(on: ScriptedMachine) -> list[str]:
    return [command[-1] if "sysbench" in command else command[0] for command in on.ran]


def test_a_matrix_is_prepared_run_and_cleaned_up(tmp_path: Path) -> None:
    on, seen = sysbench_machine(), []
    cells = asyncio.run(
        measure_cells(on, SMALL, tmp_path / "c", on_progress=lambda done, total: seen.append((done, total)))
    )
    assert [one.test for one in cells] == list(TESTS)
    assert verbs(on) == ["mkdir", "df", "prepare", *["run"] * 4, "prepare", "run", "cleanup", "rmdir"], (
        "what a sequential write that was cut off left short is made whole again"
    )
    assert seen == [(i, 5) for i in range(6)]


def test_what_is_finished_is_not_measured_again(tmp_path: Path) -> None:
    failing = sysbench_machine(fails="rndwr")
    with pytest.raises(FileioError, match=r"rndwr with 2 threads.*Input/output error.*--resume"):
        asyncio.run(measure_cells(failing, SMALL, tmp_path / "c"))
    assert verbs(failing)[-2:] == ["cleanup", "rmdir"], "files are removed after a failure too"

    with pytest.raises(FileioError, match="2 cells of this matrix are already finished"):
        asyncio.run(measure_cells(sysbench_machine(), SMALL, tmp_path / "c"))
    after = sysbench_machine(folder_exists=True)
    cells = asyncio.run(measure_cells(after, SMALL, tmp_path / "c", resume=True))
    assert [one.test for one in cells] == list(TESTS)
    assert verbs(after) == [
        "mkdir",
        "find",
        "cleanup",
        "df",
        "prepare",
        *["run"] * 2,
        "prepare",
        "run",
        "cleanup",
        "rmdir",
    ], "old files make room first"
    finished = sysbench_machine()
    assert asyncio.run(measure_cells(finished, SMALL, tmp_path / "c", resume=True)) == cells
    assert verbs(finished) == ["find"], "nothing is left to do"
    killed = sysbench_machine(folder_exists=True)
    assert asyncio.run(measure_cells(killed, SMALL, tmp_path / "c", resume=True)) == cells
    assert verbs(killed) == ["find", "cleanup", "rmdir"], "killed between the last cell and the end"
    other = SMALL.model_copy(update={"time_s": 3})
    assert len(asyncio.run(measure_cells(sysbench_machine(), other, tmp_path / "c"))) == 5, (
        "another time, other cells"
    )


def test_a_folder_that_we_did_not_make_is_left_alone(tmp_path: Path) -> None:
    on = sysbench_machine(folder_exists=True)
    with pytest.raises(FileioError, match="another plimsoll fileio"):
        asyncio.run(measure_cells(on, SMALL, tmp_path / "c"))
    assert verbs(on) == ["mkdir", "find"]


def test_no_symbolic_link_is_taken_over(tmp_path: Path) -> None:
    on = ScriptedMachine(lambda command: (1, "", "File exists") if command[0] == "mkdir" else (0, "", ""))
    with pytest.raises(FileioError, match="cannot make /srv/disk/plimsoll-fileio: File exists"):
        asyncio.run(measure_cells(on, SMALL, tmp_path / "c", resume=True))
    assert verbs(on) == ["mkdir", "find"]


def test_a_full_disk_is_seen_before_anything_is_written(tmp_path: Path) -> None:
    on = sysbench_machine(free=64 << 20)
    with pytest.raises(FileioError, match="64 MiB are free, but the files need 67 MiB"):
        asyncio.run(measure_cells(on, SMALL, tmp_path / "c"))
    assert verbs(on) == ["mkdir", "df", "cleanup", "rmdir"]
    assert space_problem(SMALL, 68 << 20) is None


def test_files_are_removed_when_it_is_interrupted(tmp_path: Path) -> None:
    on = sysbench_machine()

    def interrupted(done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(measure_cells(on, SMALL, tmp_path / "c", on_progress=interrupted))
    assert verbs(on)[-2:] == ["cleanup", "rmdir"]
    assert len(read_cells(tmp_path / "c")) == 1


@pytest.mark.parametrize(
    ("status", "out", "says"),
    [
        (127, "", "apt-get install sysbench"),
        (
            1,
            "FATAL: errno = 28 (No space left on device)\nCreating",
            "cannot write the test files.*No space left",
        ),
    ],
)
def test_files_that_cannot_be_made_are_reported(tmp_path: Path, status: int, out: str, says: str) -> None:
    whole = sysbench_machine()
    on = ScriptedMachine(
        lambda command: (status, out, "") if command[-1] == "prepare" else whole._answer(command)
    )
    with pytest.raises(LabError, match=says):
        asyncio.run(measure_cells(on, SMALL, tmp_path / "c"))
    assert verbs(on)[-2:] == ["cleanup", "rmdir"]


def test_a_folder_that_stays_is_reported(tmp_path: Path) -> None:
    whole = sysbench_machine()
    on = ScriptedMachine(
        lambda command: (1, "", "Directory not empty") if command[0] == "rmdir" else whole._answer(command)
    )
    with pytest.raises(MachineError, match="Directory not empty"):
        asyncio.run(measure_cells(on, SMALL, tmp_path / "c"))


@pytest.mark.parametrize(
    ("changes", "meminfo", "warned", "says"),
    [
        ({}, "MemTotal:  8388608 kB\n", True, "64 MiB of 8 GiB"),
        ({"direct": True}, "MemTotal:  8388608 kB\n", False, "the cache is not used"),
        ({"file_size": 16 << 30}, "MemTotal:  8388608 kB\n", False, "larger than memory"),
        ({}, "", False, "nothing is known"),
        ({}, "MemTotal:\nMemTotal: many kB", False, "nothing that makes sense"),
    ],
)
def test_files_in_memory_are_warned_of(
    changes: dict[str, Any], meminfo: str, warned: bool, says: str
) -> None:
    assert bool(cache_caution(SMALL.model_copy(update=changes), meminfo)) == warned, says


@pytest.mark.parametrize("directory", ["relative", "", "/a\0b", "-rf"])
def test_folders_that_are_refused(directory: str) -> None:
    with pytest.raises(ValueError, match="absolute path"):
        FileioSettings(directory=directory)


@pytest.mark.parametrize("directory", ["/srv/a b", "/srv/'; rm -rf ~ #", "/srv/$(id)", "/srv/é\n"])
def test_odd_folders_stay_one_argument(directory: str) -> None:
    bench = SysbenchBench(SMALL.model_copy(update={"directory": directory}))
    for command in (bench.files(), *bench.clean_up(), bench.free_bytes()):
        assert sum(directory in word for word in command) == 1
