"""Sampling once a second, and the file that the samples are written to."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.common.errors import OutputError
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.observers import ObserverSettings, WithOwnKeys, proc
from plimsoll.lab.observers.mariadb import MariadbSettings
from plimsoll.lab.observers.observer import files_command, part_files, read_files
from plimsoll.lab.observers.sampler import (
    HostCsv,
    Sampler,
    copy_host_samples,
    csv_figure,
    next_due_ns,
    prepare_sampler,
    shift_rows,
)
from plimsoll.rundir.hostfile import read_samples
from tests.support.programs import ROOT
from tests.support.recorded import DISKSTATS, IOSTAT_LATENCY, MARIADB, MEMINFO, PRESSURE, STAT
from tests.support.scripted import FakeMachine, FakeProcess

SECOND_NS = 1_000_000_000


DUE = [
    ("the next whole second", 0, 1, 1),
    ("a deadline that is met counts as past", 0, 1_000_000_000, 2),
    ("seconds that were missed are left out", 0, 3_500_000_000, 4),
    ("before the start", 5_000_000_000, 0, 6),
]


@pytest.mark.parametrize(
    ("start_ns", "now_ns", "due_s"), [row[1:] for row in DUE], ids=[row[0] for row in DUE]
)
def test_deadlines_are_absolute(start_ns: int, now_ns: int, due_s: int) -> None:
    assert next_due_ns(start_ns, now_ns) == due_s * SECOND_NS


def test_the_marks_part_the_files_and_say_which_is_missing() -> None:
    assert part_files("\x1eone\n\x1e\x1ethree\x1e", 3) == ["one\n", None, "three"]


@pytest.mark.parametrize("out", ["", "\x1eone\x1e", "sudo: no\n\x1eone\x1etwo\x1e", "\x1eone\x1etwo"])
def test_an_answer_of_another_shape_is_not_trusted(out: str) -> None:
    with pytest.raises(ValueError, match="2 files"):
        part_files(out, 2)


def test_the_script_reads_real_files_in_one_go(tmp_path: Path) -> None:
    odd = tmp_path / "a '$(x)' name"
    odd.write_text("inside\n")

    async def run() -> list[str | None]:
        machine = LocalMachine()
        done = await machine.run(files_command(["/proc/stat", str(tmp_path / "absent"), str(odd)]))
        assert (await read_files(machine, [str(odd), "/absent"])) == ["inside\n", None]
        return part_files(done.out, 3)

    stat, absent, inside = asyncio.run(run())
    assert stat
    assert "user" in proc.parse_cpu(stat)
    assert absent is None
    assert inside == "inside\n"


SHOWN = [
    ("missing", None, ""),
    ("no number", float("nan"), ""),
    ("whole", 6442450944.0, "6442450944"),
    ("six digits", 1.23456789, "1.23457"),
    ("bytes keep their digits", 45088768.4, "45088768"),
    ("none is not nothing", 0.0, "0"),
]


@pytest.mark.parametrize(("value", "text"), [row[1:] for row in SHOWN], ids=[row[0] for row in SHOWN])
def test_how_a_figure_is_written(value: float | None, text: str) -> None:
    assert csv_figure(value) == text


def test_what_is_written_is_what_the_analysis_reads(tmp_path: Path) -> None:
    path = tmp_path / "host.csv"
    with HostCsv(path, ["cpu.user_percent", 'diskstats.a"b,c_queue_count']) as file:
        file.sample(17, [12.5, None])
        file.sample(1_000_000_017, [0.0, 3.0])
        columns = read_samples(path).columns  # before it is closed: a kill loses nothing
    assert list(columns) == ["t_ns", "cpu.user_percent", 'diskstats.a"b,c_queue_count']
    assert columns["t_ns"].tolist() == [17, 1_000_000_017]
    assert columns["cpu.user_percent"].tolist() == [12.5, 0]
    assert str(columns['diskstats.a"b,c_queue_count'].tolist()) == "[nan, 3.0]"


def test_a_run_has_one_host_csv(tmp_path: Path) -> None:
    HostCsv(tmp_path / "host.csv", []).close()
    with pytest.raises(OutputError, match=r"host\.csv: cannot be written: File exists"):
        HostCsv(tmp_path / "host.csv", [])
    with pytest.raises(OutputError):
        HostCsv(tmp_path / "absent" / "host.csv", [])


WRITES = """
import itertools, sys
from pathlib import Path
from plimsoll.lab.observers.sampler import HostCsv
file = HostCsv(Path(sys.argv[1]), ["cpu.user_percent"])
for number in itertools.count():
    file.sample(number, [number / 4])
"""


def test_a_kill_leaves_every_row_whole(tmp_path: Path) -> None:
    path = tmp_path / "host.csv"
    with subprocess.Popen([sys.executable, "-c", WRITES, str(path)], cwd=ROOT) as writer:
        while not path.exists() or path.stat().st_size < 10_000:
            time.sleep(0.01)
        writer.kill()
    columns = read_samples(path).columns
    assert path.read_bytes().endswith(b"\n")
    assert columns["t_ns"].tolist() == list(range(len(columns["t_ns"])))
    assert (columns["cpu.user_percent"] * 4).tolist() == columns["t_ns"].tolist()


def test_samples_are_moved_to_a_run_that_began_later(tmp_path: Path) -> None:
    source = tmp_path / "early.csv"
    source.write_text("t_ns,cpu.user_percent\n0,\n1000000000,5\n2000000000,6\n30000")
    (tmp_path / "run").mkdir()
    columns = read_samples(copy_host_samples(source, tmp_path / "run", 1_500_000_000)).columns
    assert columns["t_ns"].tolist() == [-1_500_000_000, -500_000_000, 500_000_000]
    assert columns["cpu.user_percent"].tolist()[1:] == [5, 6]
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["host.csv"]
    with pytest.raises(OutputError):
        copy_host_samples(source, tmp_path / "absent", 0)


@given(st.text(), st.integers(-(2**63), 2**63))
def test_no_text_crashes_the_move(text: str, later_ns: int) -> None:
    assert shift_rows(text, later_ns).endswith("\n")


def _far(**answers: str) -> FakeMachine:
    files = {"/proc/diskstats": DISKSTATS, "/proc/stat": STAT, "/proc/meminfo": MEMINFO}
    files |= {f"/proc/pressure/{resource}": text for resource, text in PRESSURE.items()}
    return FakeMachine(files, {"ls /sys/block": "loop0\nvda\nzram0\n"} | answers)


def test_all_files_take_one_round_trip_and_what_is_absent_is_reported_once() -> None:
    async def run() -> tuple[FakeMachine, list[str], Sampler, list[list[float | None]]]:
        machine, said = _far(), list[str]()
        found = await prepare_sampler(machine, ObserverSettings(), said.append)
        machine.ran.clear()
        rows = [(await found.once())[1] for _ in range(3)]
        return machine, said, found, rows

    machine, said, found, rows = asyncio.run(run())
    assert len(machine.ran) == 3
    assert len(found.columns) == len(set(found.columns)) == len(rows[0])
    assert said == [
        "txg, zpool, poolwaits, vdevs, poolstate: no pool is imported here, so there is none to observe",
        "fsync: where the site's data lie is not known here: name a folder on its disk, fsync.folder",
        "arcstats: /proc/spl/kstat/zfs/arcstats cannot be read here; its columns stay empty",
        "zil: /proc/spl/kstat/zfs/zil cannot be read here; its columns stay empty",
    ]
    by_name = dict(zip(found.columns, rows[2], strict=True))
    assert by_name["diskstats.vda_reads_per_s"] == 0
    assert by_name["arcstats.size_bytes"] is None


def test_a_host_that_does_not_answer_gives_empty_rows() -> None:
    async def run() -> tuple[list[str], list[float | None]]:
        machine, said = _far(), list[str]()
        found = await prepare_sampler(machine, ObserverSettings(observe=("cpu",)), said.append)
        machine.refuses = lambda _command, _stdin: True
        await found.once()
        return said, (await found.once())[1]

    said, row = asyncio.run(run())
    assert set(row) == {None}
    assert len(said) == 1


def test_pools_and_database_stand_in_the_same_row(tmp_path: Path) -> None:
    settings = WithOwnKeys.model_validate(
        {
            "observe": ("zpool", "cpu", "mariadb"),
            "mariadb": MariadbSettings(defaults_file="/root/lab.cnf"),
        }
    )

    async def run() -> FakeMachine:
        machine = _far(**{"zpool list": "tank\n", "zpool iostat": "", "mariadb": MARIADB})
        machine.process = FakeProcess([IOSTAT_LATENCY, *MARIADB.splitlines(), "end of a round"])
        machine.process.broken = True  # at the end: what was sampled is not lost by it
        stop = asyncio.Event()
        found = await prepare_sampler(machine, settings, lambda _: None)
        with HostCsv(tmp_path / "host.csv", found.columns) as file:
            running = asyncio.create_task(found.run(file, time.monotonic_ns(), stop))
            while len((tmp_path / "host.csv").read_text().splitlines()) < 3:
                await asyncio.sleep(0.01)
            stop.set()
            await running
        return machine

    machine = asyncio.run(run())
    assert machine.process.stopped
    assert ("stdbuf", "-oL", "zpool", "iostat", "-H", "-p", "-y", "-l", "tank", "1") in machine.ran
    columns = read_samples(tmp_path / "host.csv").columns
    assert 4 in columns["mariadb.threads_running_count"]
    assert 1.04858 in columns["zpool.tank_read_latency_ms"]
    assert columns["zpool.tank_read_latency_ms"][0] != columns["zpool.tank_read_latency_ms"][1]
