"""sysbench's matrix as it is run: prepared, resumed, interrupted, and nothing left behind."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.fileio.bench import FileioError
from plimsoll.lab.fileio.measure import cache_caution, measure_cells, read_cells, space_problem
from plimsoll.lab.fileio.sysbench import TESTS, FileioSettings, SysbenchBench
from tests.support.scripted import BenchAnswer, ScriptedMachine, bench_machine
from tests.unit.lab.test_fileio import SMALL, recorded


def machine(folder_exists: bool = False, free: int = 1 << 30, fails: str = "") -> ScriptedMachine:
    """A machine with sysbench, as recorded."""

    def measured(words: list[str]) -> BenchAnswer:
        mode = next((w.partition("=")[2] for w in words if w.startswith("--file-test-mode=")), "")
        if mode and mode == fails:
            return 1, "FATAL: Failed to read file! errno = 5 (Input/output error)\n", ""
        return 0, recorded(mode) if mode else "", ""

    return bench_machine(measured, folder_exists=folder_exists, free=free)


def verbs(on: ScriptedMachine) -> list[str]:
    return [command[-1] if "sysbench" in command else command[0] for command in on.ran]


def test_a_matrix_is_prepared_run_and_cleaned_up(tmp_path: Path) -> None:
    on, seen = machine(), []
    cells = asyncio.run(
        measure_cells(on, SMALL, tmp_path / "c", on_progress=lambda done, total: seen.append((done, total)))
    )
    assert [one.test for one in cells] == list(TESTS)
    assert verbs(on) == ["mkdir", "df", "prepare", *["run"] * 4, "prepare", "run", "cleanup", "rmdir"], (
        "what a sequential write that was cut off left short is made whole again"
    )
    assert seen == [(i, 5) for i in range(6)]


def test_what_is_finished_is_not_measured_again(tmp_path: Path) -> None:
    failing = machine(fails="rndwr")
    with pytest.raises(FileioError, match=r"rndwr with 2 threads.*Input/output error.*--resume"):
        asyncio.run(measure_cells(failing, SMALL, tmp_path / "c"))
    assert verbs(failing)[-2:] == ["cleanup", "rmdir"], "files are removed after a failure too"

    with pytest.raises(FileioError, match="2 cells of this matrix are already finished"):
        asyncio.run(measure_cells(machine(), SMALL, tmp_path / "c"))
    after = machine(folder_exists=True)
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
    finished = machine()
    assert asyncio.run(measure_cells(finished, SMALL, tmp_path / "c", resume=True)) == cells
    assert verbs(finished) == ["find"], "nothing is left to do"
    killed = machine(folder_exists=True)
    assert asyncio.run(measure_cells(killed, SMALL, tmp_path / "c", resume=True)) == cells
    assert verbs(killed) == ["find", "cleanup", "rmdir"], "killed between the last cell and the end"
    other = SMALL.model_copy(update={"time_s": 3})
    assert len(asyncio.run(measure_cells(machine(), other, tmp_path / "c"))) == 5, "another time, other cells"


def test_a_folder_that_we_did_not_make_is_left_alone(tmp_path: Path) -> None:
    on = machine(folder_exists=True)
    with pytest.raises(FileioError, match="another plimsoll fileio"):
        asyncio.run(measure_cells(on, SMALL, tmp_path / "c"))
    assert verbs(on) == ["mkdir", "find"]


def test_no_symbolic_link_is_taken_over(tmp_path: Path) -> None:
    on = ScriptedMachine(lambda command: (1, "", "File exists") if command[0] == "mkdir" else (0, "", ""))
    with pytest.raises(FileioError, match="cannot make /srv/disk/plimsoll-fileio: File exists"):
        asyncio.run(measure_cells(on, SMALL, tmp_path / "c", resume=True))
    assert verbs(on) == ["mkdir", "find"]


def test_a_full_disk_is_seen_before_anything_is_written(tmp_path: Path) -> None:
    on = machine(free=64 << 20)
    with pytest.raises(FileioError, match="64 MiB are free, but the files need 67 MiB"):
        asyncio.run(measure_cells(on, SMALL, tmp_path / "c"))
    assert verbs(on) == ["mkdir", "df", "cleanup", "rmdir"]
    assert space_problem(SMALL, 68 << 20) is None


def test_files_are_removed_when_it_is_interrupted(tmp_path: Path) -> None:
    on = machine()

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
def test_files_that_cannot_be_made_are_told(tmp_path: Path, status: int, out: str, says: str) -> None:
    whole = machine()
    on = ScriptedMachine(
        lambda command: (status, out, "") if command[-1] == "prepare" else whole._answer(command)
    )
    with pytest.raises(LabError, match=says):
        asyncio.run(measure_cells(on, SMALL, tmp_path / "c"))
    assert verbs(on)[-2:] == ["cleanup", "rmdir"]


def test_a_folder_that_stays_is_told(tmp_path: Path) -> None:
    whole = machine()
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
