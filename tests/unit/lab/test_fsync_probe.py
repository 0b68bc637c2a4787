"""The fsync probe: no stall is lost, whatever ends it, and its file is nobody else's."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.observers import ObserverSettings
from plimsoll.lab.observers.fsync import FsyncProbe, FsyncWatch, ProbeFile, command, parse, with_probe
from plimsoll.lab.observers.sampler import prepare_sampler
from plimsoll.lab.steps.runner import StepRunner
from tests.support.programs import ROOT
from tests.support.scripted import FakeMachine, FakeProcess

NAME = "plimsoll-bench--nvme"
# As if the disk took no fdatasync while the file `stalled` is there.
STALLING = """
import os, sys, time
from pathlib import Path
real, gate = os.fdatasync, Path(sys.argv[1]) / "stalled"
def stall(file):
    while gate.exists():
        time.sleep(0.01)
    real(file)
os.fdatasync = stall
"""

LINES = [
    ("a probe that ended", "probe 1000 2000 3000", {"write": 1000, "fdatasync": 2000, "both": 3000}),
    ("one that waits for its write", "probe 9000000000 - 9000000000", {"write": 9e9, "both": 9e9}),
    ("one without a total", "probe 1 2 -", None),
    ("another word", "bytes 1 2 3", None),
    ("one field more", "probe 1 2 3 4", None),
    ("nothing", "", None),
]


@pytest.mark.parametrize(("line", "found"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])
def test_what_a_line_of_the_probe_says(line: str, found: dict[str, float] | None) -> None:
    read = parse(line)
    assert (read and {("both" if "+" in key else key): value for key, value in read.items()}) == found


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    return folder


@pytest.fixture
def stalling(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    folder = _folder(tmp_path)
    python, option, source, *names = command(str(folder), f"{NAME}.fsync")
    words = [sys.executable, option, STALLING + source, *names]
    assert python == "python3"
    (folder / "stalled").touch()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def _numbers(process: "subprocess.Popen[str]") -> list[int | None]:
    assert process.stdout
    return [None if word == "-" else int(word) for word in process.stdout.readline().split()[1:]]


def test_a_stall_is_in_each_of_its_seconds(stalling: "subprocess.Popen[str]", tmp_path: Path) -> None:
    waits = [_numbers(stalling) for _ in range(3)]
    (tmp_path / "clone" / "stalled").unlink()
    ended, after = _numbers(stalling), _numbers(stalling)
    totals = [total for *_, total in [*waits, ended]]
    known = [total for total in totals if total is not None]
    assert totals == sorted(set(known)), "it has waited longer in each second"
    assert len({write for write, *_ in [*waits, ended]}) == 1, "and it is one and the same probe"
    assert after[0] != ended[0], "the next one begins when it has ended"


def test_it_ends_when_told_though_the_disk_does_not_answer(
    stalling: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    _numbers(stalling)
    stalling.terminate()
    assert stalling.wait(60) == 0
    assert [path.name for path in (tmp_path / "clone").iterdir()] == ["stalled"]


def _watch(place: ProbeFile, said: list[str]) -> list[list[float | None]]:
    """Rows of the probe on this machine, until one has a figure or it has complained."""

    async def run() -> list[list[float | None]]:
        rows, watch = list[list[float | None]](), FsyncWatch(FsyncProbe(LocalMachine(), place))
        await watch.start(said.append)
        while not said and not any(value is not None for row in rows for value in row):
            await asyncio.sleep(0.05)
            rows.append(watch.sample())
        await watch.stop()
        return rows

    return asyncio.run(run())


def test_what_a_kill_left_is_found_and_the_next_probe_replaces_it(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    place, said = ProbeFile(str(folder), NAME), list[str]()
    with subprocess.Popen(command(place.folder, place.name), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    left = asyncio.run(place.find(LocalMachine(), "nvme"))
    assert [one.what for one in left] == [f"the file of the fsync probe {folder}/{NAME}.fsync"]
    [write, fdatasync, total] = _watch(place, said)[-1]
    assert said == []
    assert total == pytest.approx((write or 0) + (fdatasync or 0))
    assert list(folder.iterdir()) == [], "and removes its own"
    assert asyncio.run(place.find(LocalMachine(), "nvme")) == []


def test_the_step_that_removes_it_may_be_done_twice(tmp_path: Path) -> None:
    place = ProbeFile(str(tmp_path), NAME)
    (tmp_path / place.name).touch()
    [found] = asyncio.run(place.find(LocalMachine(), "nvme"))
    for _ in range(2):
        asyncio.run(StepRunner(LocalMachine(), None, lambda _: None).do(found.remove))
    assert list(tmp_path.iterdir()) == []


def _link(folder: Path) -> ProbeFile:
    (folder / "link").symlink_to(folder / "elsewhere")
    (folder / "elsewhere").mkdir()
    return ProbeFile(str(folder / "link"), NAME)


def _in_the_way(folder: Path) -> ProbeFile:
    (folder / f"{NAME}.fsync").mkdir()
    return ProbeFile(str(folder), NAME)


NOT_PROBED = [
    ("a folder that is not there", lambda folder: ProbeFile(str(folder / "absent"), NAME), "No such file"),
    ("a link in place of the folder", _link, "Not a directory"),
    ("a folder in place of the file", _in_the_way, ""),
]


@pytest.mark.parametrize(
    ("where", "why"), [row[1:] for row in NOT_PROBED], ids=[row[0] for row in NOT_PROBED]
)
def test_what_cannot_be_probed_says_why_and_writes_nothing(
    where: Callable[[Path], ProbeFile], why: str, tmp_path: Path
) -> None:
    place, said = where(tmp_path), list[str]()
    before = sorted(tmp_path.rglob("*"))
    rows = _watch(place, said)
    assert {value for row in rows for value in row} <= {None}
    assert said[0].startswith(f"fsync: cannot probe {place.folder}: {why}")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_in_place_of_its_file_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    folder, said = _folder(tmp_path), list[str]()
    precious = tmp_path / "precious"
    precious.write_text("kept")
    place = ProbeFile(str(folder), NAME)
    (folder / place.name).symlink_to(precious)
    _watch(place, said)
    assert said == []
    assert precious.read_text() == "kept"


def _sampled(lines: list[str]) -> list[float | None]:
    async def run() -> list[float | None]:
        machine = FakeMachine()
        machine.process = FakeProcess(lines)
        settings = ObserverSettings(observe=("fsync",))
        probed = FsyncProbe(machine, ProbeFile("/tank/site", NAME))
        sampler = await prepare_sampler(FakeMachine(), with_probe(settings, probed), lambda _: None)
        assert sampler.columns == ["fsync.write_ms", "fsync.fdatasync_ms", "fsync.total_ms"]
        watch = FsyncWatch(probed)
        await watch.start(lambda _: None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return watch.sample() + watch.sample()

    return asyncio.run(run())


def test_of_two_seconds_in_one_sample_the_worse_counts_and_none_counts_twice() -> None:
    lines = ["probe 1000000 1000000 2000000", "probe 1000000 8000000 9000000", "probe 1000000 0 1000000"]
    assert _sampled(lines) == [1.0, 8.0, 9.0, None, None, None]


def test_a_host_without_python_says_so() -> None:
    class Without(FakeMachine):
        async def start(self, command: object) -> FakeProcess:
            raise MachineError(self.name, "cannot be started: No such file or directory")

    async def run() -> list[str]:
        said, stop = list[str](), asyncio.Event()
        probed = FsyncProbe(Without(), ProbeFile("/tank/site", NAME))
        settings = with_probe(ObserverSettings(observe=("fsync",)), probed)
        sampler = await prepare_sampler(FakeMachine(), settings, said.append)
        stop.set()
        with (ROOT / "README.md").open():
            await sampler.run(None, time.monotonic_ns(), stop)  # type: ignore[arg-type]
        return said

    assert asyncio.run(run())[0].startswith("fsync: far: cannot be started")
