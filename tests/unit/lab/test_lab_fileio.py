"""`fileio` in lab.yml: what is measured, with fsyncs after sysbench; its time, its room, and its status."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from plimsoll.cli import main
from plimsoll.common.errors import SettingsError
from plimsoll.lab.errors import MachineError
from plimsoll.lab.experiment.design import find_key_changes, left_out, measured_rigs
from plimsoll.lab.experiment.folder import ExperimentFolder, make_folder
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.machines import Machines
from plimsoll.lab.experiment.notices import Notices
from plimsoll.lab.experiment.plan import expected_s
from plimsoll.lab.experiment.rig import build_rigs
from plimsoll.lab.experiment.status.text import lines
from plimsoll.lab.experiment.status.watch import StatusReader
from plimsoll.lab.experiment.volumes import VolumeMeasurement, missing_cells
from plimsoll.lab.fileio.fio import ETCD, fsync_cell, parse_fio
from plimsoll.lab.fileio.measure import append_cell, commands, measure_cells, written_bytes
from plimsoll.lab.fileio.sysbench import MatrixCase
from plimsoll.lab.machine import CommandResult, Machine
from tests.support.labfile import parse_lab
from tests.support.programs import ROOT
from tests.support.recorded import fio_output
from tests.support.scripted import SMALL, VOLUMES, ScriptedMachine, sysbench_machine

TWO = {"tests": ["rndrd", "seqwr"], "threads": [1, 8], "file_size": "64M", "time_s": 10}


def lab_of(fileio: dict[str, Any], *backends: str, **more: Any) -> Lab:
    data = {
        "name": "volumes",
        "fileio": fileio,
        "backends": [VOLUMES[name] for name in backends],
        "scenarios": [{"scenario": "replay", "options": {"log": "access.log"}}],
    }
    return parse_lab(yaml.safe_dump(data | more, sort_keys=False))


MISTAKES = [
    ("a backend that does not exist", {"backends": ["nvme"]}, ("zfs",), "nvme is not one of backends: zfs"),
    ("a backend without a disk", {"backends": ["bare"]}, ("zfs", "bare"), "bare has no disk to measure"),
    ("nothing to measure", {}, ("bare", "placed"), "fileio: has no volume to measure"),
    ("too small a disk", {"file_size": "1G"}, ("zfs",), "1 GiB does not fit on the disk of zfs (1 GiB)"),
    ("parts of files", {"file_size": "63M"}, ("zfs",), "fileio.file_size: must be a multiple of 2M"),
    ("too small for fsyncs", {"fsync": {"file_size": "1G"}}, ("zfs",), "fsync.file_size: 1 GiB does"),
    ("a recipe with additions", {"fsync": {"preset": "etcd", "time_s": 5}}, ("zfs",), "leave time_s out"),
    ("a test that reads", {"fsync": {"tests": ["rndrd"]}}, ("zfs",), "tests.0: must be seqwr or rndwr"),
    ("a test twice", {"tests": ["rndrd", "rndrd"]}, ("zfs",), "fileio.tests: must not name anything twice"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fileio", "backends", "says"), [r[1:] for r in MISTAKES], ids=[r[0] for r in MISTAKES]
)
def test_mistakes_are_reported_with_their_key(
    fileio: dict[str, Any], backends: tuple[str, ...], says: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        lab_of({"file_size": "64M"} | fileio, *backends)
    assert says in str(caught.value)
    assert "(see docs/" in str(caught.value)


def test_a_site_that_exists_is_measured_only_where_it_is_named_and_what_is_left_out_is_reported() -> None:
    lab = lab_of(TWO, "zfs", "tank", "bare", "placed")
    assert measured_rigs(lab) == ["zfs", "tank"]
    assert left_out(lab) == [
        "fileio does not measure bare: it has no disk in lab.yml",
        "fileio does not measure placed, which exists: name it in fileio.backends if test files may be "
        "written there",
    ]
    named = lab_of(TWO | {"backends": ["placed"]}, "zfs", "placed")
    assert measured_rigs(named) == ["placed"]
    assert left_out(named) == [], "what somebody chose needs no telling"


FACTORS = [
    ("levels that share a clone share its volume", "swappiness", [10, 90], ["zfs"]),
    ("what is written keeps its record size", "recordsize", ["16K", "128K"], ["zfs-16k", "zfs-128k"]),
]


@pytest.mark.parametrize(("factor", "values", "rigs"), [r[1:] for r in FACTORS], ids=[r[0] for r in FACTORS])
def test_each_clone_has_one_volume(factor: str, values: list[Any], rigs: list[str]) -> None:
    varied = [{"name": factor, "values": values, "backends": ["zfs"]}]
    lab = lab_of(TWO | {"backends": ["zfs"]}, "zfs", "tank", factors=varied)
    assert measured_rigs(lab) == rigs


def test_the_commands_of_a_plan_are_those_that_are_run(tmp_path: Path) -> None:
    on = sysbench_machine()
    asyncio.run(measure_cells(on, SMALL, tmp_path / "c"))
    ran = [list(words) for words in on.ran if words[0] not in ("df", "find")]
    assert ran == commands(SMALL, SMALL.cells)
    prepared = sum(words[-1] == "prepare" for words in ran)
    assert prepared * SMALL.file_size == written_bytes(SMALL, SMALL.cells) == 128 << 20


def test_what_lacks_is_known_by_the_cells_that_are_there(tmp_path: Path) -> None:
    lab, kept = lab_of(TWO, "zfs", "tank"), tmp_path / "fileio.jsonl"
    assert {rig: len(cells) for rig, cells in missing_cells(lab, kept).items()} == {"zfs": 4, "tank": 4}
    write_cells(kept, "zfs", [("rndrd", 1), ("rndrd", 8), ("seqwr", 1)])
    assert missing_cells(lab, kept)["zfs"] == [("seqwr", 8)]
    longer = lab_of(TWO | {"time_s": 11}, "zfs", "tank")
    assert len(missing_cells(longer, kept)["zfs"]) == 4, "measured for another time it is another cell"


def write_cells(path: Path, volume: str, cells: list[tuple[str, int]], time_s: int = 10) -> None:
    numbers = ("reads", "writes", "fsyncs", "throughput_mib_per_s", "iops", "execution_s", "events")
    with path.open("a") as file:
        for test, threads in cells:
            said = {"volume": volume, "threads": threads, "file_size_bytes": 64 << 20, "block_bytes": 16384}
            said |= {"test": test, "time_s": time_s, "direct": False} | dict.fromkeys(numbers, 1)
            said |= dict.fromkeys(("p999_ms", "p999_low_ms", "p999_high_ms"))
            file.write(json.dumps(said) + "\n")


def test_a_plan_counts_its_time() -> None:
    without = lab_of({}, "tank").model_copy(update={"fileio": None})
    before, after = expected_s(without), expected_s(lab_of(TWO, "tank"))
    assert before and after
    assert 4 * 11 <= after - before <= 4 * 11 + 5, "four cells, and the files that are written"


def test_it_may_be_added_to_an_experiment_and_changed() -> None:
    without = lab_of(TWO, "zfs").model_copy(update={"fileio": None})
    for one, other in (
        (without, lab_of(TWO, "zfs")),
        (lab_of(TWO, "zfs"), lab_of(TWO | {"time_s": 3}, "zfs")),
    ):
        found = find_key_changes(one, other)
        assert found
        assert all(change.refusal is None for change in found)


class Looked:
    """An experiment whose journal is written by hand, and looks at it."""

    def __init__(
        self, out: Path, fileio: dict[str, Any] = TWO, backends: Sequence[str] = ("zfs", "tank")
    ) -> None:
        lab = lab_of(fileio, *backends, out=str(out))
        self.folder = make_folder(lab)
        self.now = datetime(2026, 11, 22, 20, tzinfo=UTC)
        self.watch = StatusReader(self.folder, lambda: self.now)

    def note(self, after_s: float, what: str, **further: str) -> None:
        self.now += timedelta(seconds=after_s)
        with self.folder.journal.path.open("a") as file:
            file.write(json.dumps({"at": self.now.isoformat(), "what": what, **further}) + "\n")


def test_status_shows_the_cell_and_an_end_that_does_not_jump(tmp_path: Path) -> None:
    it, ends = Looked(tmp_path), []
    it.folder.journal.path.touch()
    with it.folder.journal.lock():
        it.note(0, "begun")
        for rig in ("zfs", "tank"):
            it.note(0, "making", backend=rig)
            it.note(40, "made", backend=rig)
            it.note(0, "fileio begun", backend=rig)
            it.note(0, "fileio files", backend=rig, says="writing the test files")
            for number, (test, threads) in enumerate(
                [("rndrd", 1), ("rndrd", 8), ("seqwr", 1), ("seqwr", 8)]
            ):
                it.note(1, "fileio cell", backend=rig, says=f"{test} with {threads} threads")
                for _ in range(10):
                    it.now += timedelta(seconds=1)
                    look = it.watch.read()
                    assert look.ends_at
                    ends.append(look.ends_at)
                write_cells(it.folder.fileio, rig, [(test, threads)])
                if (rig, number) == ("tank", 1):
                    said = "\n".join(lines(look))
                    assert "measuring the volume of tank: rndrd with 8 threads, for 0:10" in said
                    assert "fileio     5 of 8 cells finished" in said
            it.note(1, "fileio ended", backend=rig)
        assert it.watch.read().fileio.model_dump() == {"total": 8, "finished": 8, "failed": {}}  # type: ignore[union-attr]
    apart = [abs((b - a).total_seconds()) for a, b in pairwise(ends)]
    assert max(apart) < 0.04 * 8 * 60, "less than 4 % of some eight runs"


def test_a_failure_is_in_the_status_and_the_experiment_is_not_finished(tmp_path: Path) -> None:
    it = Looked(tmp_path)
    it.note(0, "begun")
    it.note(1, "fileio failed", backend="zfs", why="no room\x1b[2J\nmore")
    it.note(1, "ended")
    look = it.watch.read()
    assert look.state == "unfinished"
    assert look.resume and "--resume" in look.resume
    assert "fileio     0 of 8 cells finished; zfs failed: no room" in "\n".join(lines(look))
    assert "\x1b" not in "\n".join(lines(look))


class Failing(ScriptedMachine):
    """A machine whose folder cannot be made, or, where that hangs, not be removed."""

    def __init__(self, hangs: bool) -> None:
        super().__init__(lambda command: (0, "", ""))
        self._hangs = hangs

    async def run(self, command: Sequence[str], **options: Any) -> CommandResult:
        if "mkdir" in command and not self._hangs:
            raise MachineError(self.name, "the disk is gone", command)
        if "df" in command:
            await asyncio.sleep(30)
        if "rmdir" in command:
            raise MachineError(self.name, "the disk is busy", command)
        return await super().run(command, **options)

    async def read_text(self, path: str) -> str:
        return ""


async def measured_on(
    machine: Machine, lab: Lab, folder: ExperimentFolder, said: list[str]
) -> VolumeMeasurement:
    machines = Machines(lab)
    (rig,) = await build_rigs(lab, machines, lambda *_: None)
    rig.machine = machine
    rig.forget()
    volumes = VolumeMeasurement(lab, folder, said.append, Notices("x", folder.path, [], [], said.append))
    try:
        await volumes.measure_if_due(rig)
    finally:
        await machines.close()
    return volumes


@pytest.mark.usefixtures("untuned")
def test_a_failure_is_reported_and_is_no_error(tmp_path: Path) -> None:
    lab, said = lab_of(TWO, "tank", out=str(tmp_path)), list[str]()
    volumes = asyncio.run(measured_on(Failing(hangs=False), lab, make_folder(lab), said))
    assert said[-1].startswith("tank: fileio failed: scripted: ")
    assert "the disk is gone. The runs go on; plimsoll run --resume tries it again." in said[-1]
    assert "the disk is gone" in volumes.not_measured()["tank"]


@pytest.mark.usefixtures("untuned")
def test_an_interruption_stays_one_where_the_files_cannot_be_removed(tmp_path: Path) -> None:
    lab = lab_of(TWO, "tank", out=str(tmp_path))

    async def interrupted() -> None:
        task = asyncio.ensure_future(measured_on(Failing(hangs=True), lab, make_folder(lab), []))
        await asyncio.sleep(0.2)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())


def test_lab_check_tries_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lab.yml"
    backend = f"{{name: a, disk: {{kind: folder, path: {tmp_path}}}, clone: {{driver: compose}}}}"
    log = ROOT / "examples" / "access.log"
    path.write_text(
        f"name: lab\nout: {tmp_path}/out\nwork: {tmp_path}/work\nfileio: {{file_size: 900000G}}\n"
        f"backends:\n- {backend}\nscenarios:\n- {{scenario: replay, options: {{log: {log}}}}}\n"
    )
    tools = tmp_path / "bin"
    tools.mkdir()
    for program in (
        "sh",
        "env",
        "df",
        "du",
        "sed",
        "awk",
        "dirname",
        "id",
        "find",
        "setsid",
        "cat",
        "flock",
        "test",
        "kill",
        "head",
    ):
        found = next(p for p in ("/usr/bin", "/bin") if Path(p, program).exists() or program == "kill")
        (tools / program).symlink_to(Path(found, program))
    monkeypatch.setenv("PATH", str(tools))
    said = "\n".join(json.loads(CliRunner().invoke(main, ["check", str(path), "--json"]).stdout)["problems"])
    assert "a: local has no sysbench: install it" in said
    assert "a: fileio.file_size: the test data does not fit: 945000.0 GiB are needed and " in said


def test_an_experiment_of_an_older_version_has_none(tmp_path: Path) -> None:
    folder = make_folder(lab_of(TWO, "zfs", out=str(tmp_path)))
    data = json.loads((folder.path / "lab.json").read_text())
    del data["fileio"]
    (folder.path / "lab.json").write_text(json.dumps(data))
    assert ExperimentFolder(folder.path).settings().fileio is None
    assert StatusReader(ExperimentFolder(folder.path)).read().fileio is None


BOTH = TWO | {"fsync": {"engines": ["psync"], "calls": ["fdatasync"], "time_s": 20}}


def test_fsyncs_are_measured_after_sysbench_and_lack_until_each_is_there(tmp_path: Path) -> None:
    lab, kept = lab_of(BOTH, "tank"), tmp_path / "fileio.jsonl"
    assert lab.fileio and lab.fileio.fsync
    assert missing_cells(lab, kept) == {"tank": [*lab.fileio.cells, *lab.fileio.fsync.cells]}
    assert len(lab.fileio.all_cells) == 4 + 1 + 4
    write_cells(kept, "tank", list(lab.fileio.cells))
    append_cell(kept, fsync_cell("tank", ETCD, parse_fio(fio_output("fio-3.33", "etcd"))))
    assert missing_cells(lab, kept) == {"tank": lab.fileio.fsync.cells[1:]}
    assert lab.fileio.programs == {"sysbench", "fio"}


def test_a_plan_counts_the_time_of_fsyncs() -> None:
    before, after = expected_s(lab_of(TWO, "tank")), expected_s(lab_of(BOTH, "tank"))
    assert before and after
    assert after - before == pytest.approx(5 * 21)


def test_a_recipe_alone_survives_the_experiments_folder(tmp_path: Path) -> None:
    lab = lab_of(TWO | {"fsync": {"preset": "etcd"}}, "zfs", out=str(tmp_path))
    again = ExperimentFolder(make_folder(lab).path).settings()
    assert again.fileio and again.fileio.fsync and again.fileio.fsync.cells == [ETCD]


def test_status_shows_fsyncs_and_counts_their_time_apart_from_sysbenchs(tmp_path: Path) -> None:
    short, long_s = TWO | {"tests": ["rndrd"], "time_s": 5}, 60
    fsync = {"calls": ["fsync"], "block_sizes": ["4K"], "threads": [1, 2, 4, 8], "time_s": long_s}
    it, ends = Looked(tmp_path, short | {"fsync": fsync}, ["tank"]), []
    cells = it.watch._lab.fileio
    assert cells and cells.fsync
    it.folder.journal.path.touch()
    with it.folder.journal.lock():
        it.note(0, "begun")
        it.note(0, "making", backend="tank")
        it.note(40, "made", backend="tank")
        it.note(0, "fileio begun", backend="tank")
        it.note(0, "fileio files", backend="tank", says="writing the test files")
        took = [("fileio cell", 5, case) for case in cells.cells]
        took += [("fsync cell", long_s, case) for case in cells.fsync.cells]  # type: ignore[misc]
        for what, lasts, case in took:
            it.note(1, what, backend="tank", says=case.says)
            for _ in range(lasts):
                it.now += timedelta(seconds=1)
                look = it.watch.read()
                assert look.ends_at and look.now
                ends.append(look.ends_at)
            assert look.now and (look.now.what, look.now.step) == ("fileio", case.says)
            if isinstance(case, MatrixCase):
                write_cells(it.folder.fileio, "tank", [case], time_s=5)
            else:
                append_cell(
                    it.folder.fileio, fsync_cell("tank", case, parse_fio(fio_output("fio-3.33", "etcd")))
                )
        it.note(1, "fileio ended", backend="tank")
        assert it.watch.read().fileio.model_dump() == {"total": 7, "finished": 7, "failed": {}}  # type: ignore[union-attr]
    apart = [abs((b - a).total_seconds()) for a, b in pairwise(ends)]
    assert max(apart) <= 3, "no cell of one kind is taken for one of the other"


class Full(ScriptedMachine):
    """A machine with one GiB of room left."""

    def __init__(self) -> None:
        super().__init__(lambda command: (0, f"Avail\n{1 << 30}\n" if "df" in command else "", ""))

    async def read_text(self, path: str) -> str:
        return ""


@pytest.mark.usefixtures("untuned")
def test_a_full_disk_is_reported_with_the_key_of_what_needs_less(tmp_path: Path) -> None:
    lab = lab_of(TWO | {"fsync": {"file_size": "2G"}}, "tank", out=str(tmp_path))
    folder, said = make_folder(lab), list[str]()
    assert lab.fileio
    write_cells(folder.fileio, "tank", list(lab.fileio.cells))
    asyncio.run(measured_on(Full(), lab, folder, said))
    assert "the files need 2150 MiB: make room, or choose a smaller fileio.fsync.file_size" in said[-1]
