"""Saturators at work: they repeat, tell, give up, stop, and leave only what was there."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.lab.machine import Line
from plimsoll.lab.saturators.backup import Backup
from plimsoll.lab.saturators.btrfs_send import BtrfsSend
from plimsoll.lab.saturators.fio import Fio
from plimsoll.lab.saturators.rsync import Rsync
from plimsoll.lab.saturators.saturator import Meter, Saturator, SaturatorSettings
from plimsoll.lab.saturators.sinks import LocalSink
from plimsoll.lab.saturators.zfs_send import ZfsSend
from tests.support.programs import awaited
from tests.support.scripted import ScriptedMachine, ScriptedProcess, at_work

ZFS = ZfsSend(kind="zfs-send", dataset="tank/site", retries=1)
RATED = ZFS.model_copy(update={"rate_bytes_per_s": 1000})
BTRFS = BtrfsSend(kind="btrfs-send", subvolume="/srv/site", snapshots="/srv/.snap shots")
FIO = Fio(kind="fio", folder="/srv/disk", jobs=2)
RSYNC = Rsync(kind="rsync", folder="/srv/site", sink=LocalSink(to="local", into="/backup"))
BY = "nightly"
FIRST, SECOND = (f"tank/site@plimsoll-{BY}-00000{number}" for number in (1, 2))


class Pool:
    """A pool with snapshots, as far as `zfs` shows it."""

    def __init__(self, *snapshots: str, openzfs: bool = True) -> None:
        self.snapshots, self.openzfs = list(snapshots), openzfs
        self.busy = 0

    def answer(self, command: Sequence[str]) -> tuple[int, str, str]:
        match list(command):
            case ["zfs", "version"]:
                return (0, "zfs-2.1.11\n", "") if self.openzfs else (2, "", "unrecognized command")
            case ["zfs", "list", *_]:
                return 0, "\n".join(self.snapshots), ""
            case ["zfs", "snapshot", name]:
                self.snapshots.append(name)
            case ["zfs", "destroy", name]:
                if self.busy:
                    self.busy -= 1
                    return 1, "", "dataset is busy"
                self.snapshots.remove(name)
        return 0, "", ""


def test_it_sends_again_and_again_and_leaves_only_what_was_there() -> None:
    theirs = ["tank/site@daily", "tank/site@plimsoll-other-000001"]
    pool = Pool(*theirs, "tank/site@plimsoll-nightly-000009")
    events: list[dict[str, Any]] = []
    lines = [Line("err", "size\t500", 0), Line("err", "12:00:01\t400\ttank/site@x", 0)]
    begun: list[ScriptedProcess] = []

    def begin(command: Sequence[str]) -> ScriptedProcess:
        begun.append(ScriptedProcess(lines, None if len(begun) == 2 else 0))
        return begun[-1]

    async def drive() -> None:
        async with at_work(ScriptedMachine(pool.answer, begin), ZFS, BY, events) as one:
            await awaited("three sends", lambda: len(begun) == 3)
            assert pool.snapshots == [*theirs, "tank/site@plimsoll-nightly-000003"]
            await awaited("a throughput", lambda: has_throughput(events))
            pool.busy = 2  # for a moment after it was stopped
            await one.stop()
        assert one.failure is None

    asyncio.run(drive())
    assert pool.snapshots == theirs
    assert begun[2].stopped
    assert events[0] == {"event": "zfs-send", "phase": "start", "saturator": True}
    del events[-1]["at_ns"]
    assert events[-1] == {"event": "zfs-send", "phase": "stop", "bytes": 500 + 500 + 400}
    assert {"zfs-send", "zfs-send bytes"} == {event["event"] for event in events}


def has_throughput(events: list[dict[str, Any]]) -> bool:
    return any("bytes_per_s" in event for event in events)


class _SlowToEnd(ScriptedProcess):
    """Writes its last line when it is told to end, and ends long after."""

    last_ns = 0

    async def lines(self) -> AsyncIterator[Line]:
        if self.stopped:
            yield Line("out", "bytes 900", self.last_ns)
            return
        async for line in super().lines():
            yield line

    async def stop(self, grace_s: float = 5.0) -> int:
        self.last_ns = time.monotonic_ns()
        await asyncio.sleep(0.3)
        return await super().stop()


def stop_slowly(since_ns: int, holds: Callable[[list[dict[str, Any]]], object]) -> list[dict[str, Any]]:
    """What a send tells that wrote a line at `since_ns`, is stopped after `holds`, then writes another."""
    events: list[dict[str, Any]] = []
    begun = _SlowToEnd([Line("out", "bytes 500", since_ns)], None)

    async def drive() -> None:
        machine = ScriptedMachine(Pool(openzfs=False).answer, lambda command: begun)
        async with at_work(machine, RATED, "n", events):
            await awaited("what it is to tell", lambda: machine.processes and holds(events))
            await asyncio.sleep(0.1)  # long enough for a throughput

    asyncio.run(drive())
    assert events[-1] == {"event": "zfs-send", "phase": "stop", "bytes": 900, "at_ns": begun.last_ns}
    return events


def test_it_stopped_at_its_last_byte_however_long_its_program_takes_to_end() -> None:
    *_, last_part, stop = stop_slowly(0, lambda events: True)
    assert (last_part["event"], last_part["at_ns"]) == ("zfs-send bytes", stop["at_ns"])
    assert last_part["bytes_per_s"] > 0, "the second that was cut off"


def test_the_last_throughput_is_over_the_time_since_the_line_before_it() -> None:
    since_ns = time.monotonic_ns()
    *_, last_part, stop = stop_slowly(since_ns, has_throughput)
    since_s = (stop["at_ns"] - since_ns) / 1e9
    assert last_part["bytes_per_s"] == round(400 / since_s), "no spike after a report that lagged behind"


def test_reports_that_are_overdue_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.lab.saturators.saturator._PERIOD_NS", 20_000_000)
    monkeypatch.setattr("plimsoll.lab.saturators.saturator._SHORTEST_NS", 5_000_000)
    events: list[dict[str, Any]] = []

    async def drive() -> None:
        async with at_work(ScriptedMachine(Pool(openzfs=False).answer), ZFS, "n", events):
            await awaited("a report", lambda: has_throughput(events))
            time.sleep(0.1)  # the machine stands still, and five reports become due
            reports = len(events)
            await awaited("three more", lambda: len(events) > reports + 2)

    asyncio.run(drive())
    reported_ns = [event["at_ns"] for event in events if "bytes_per_s" in event]
    assert min(later - before for before, later in pairwise(reported_ns)) > 1_000_000


def test_increments_follow_each_other() -> None:
    pool, sent = Pool(openzfs=False), []

    def begin(command: Sequence[str]) -> ScriptedProcess:
        sent.append(list(command)[list(command).index("zfs") :])
        return ScriptedProcess([Line("out", "bytes 7", 0)], None if len(sent) == 2 else 0)

    async def drive() -> None:
        settings = ZFS.model_copy(update={"mode": "incremental"})
        async with at_work(ScriptedMachine(pool.answer, begin), settings, BY):
            await awaited("two sends", lambda: len(sent) == 2)

    asyncio.run(drive())
    assert sent == [["zfs", "send", FIRST], ["zfs", "send", "-i", FIRST, SECOND]]
    assert pool.snapshots == []


def test_it_gives_up_after_so_many_failures_and_says_why() -> None:
    pool = Pool()
    events: list[dict[str, Any]] = []
    failed = [Line("err", "cannot send: I/O error", 0), Line("err", "size\t9", 0)]

    async def drive() -> Saturator:
        machine = ScriptedMachine(pool.answer, lambda command: ScriptedProcess(failed, 1))
        async with at_work(machine, ZFS, BY, events) as one:
            await awaited("its failure", lambda: one.failure)
        return one

    one = asyncio.run(drive())
    assert one.failure and "status 1" in one.failure and "I/O error" in one.failure
    reported = [event for event in events if event["event"] != "zfs-send bytes"]
    assert [(event["event"], event.get("phase")) for event in reported] == [
        ("zfs-send", "start"),
        ("zfs-send retry", None),
        ("zfs-send", "stop"),
    ]
    assert reported[-1]["error"] == one.failure
    assert pool.snapshots == [], "also what the failed sends left"


@pytest.mark.parametrize("settings", [BTRFS, FIO])
def test_the_others_start_and_stop_alike(settings: BtrfsSend | Fio) -> None:
    events: list[dict[str, Any]] = []

    async def drive() -> ScriptedMachine:
        machine = ScriptedMachine()
        async with at_work(machine, settings, BY, events):
            await awaited("its work", lambda: machine.processes)
        return machine

    machine = asyncio.run(drive())
    assert machine.processes[0].stopped
    assert [event["phase"] for event in events if "phase" in event] == ["start", "stop"]
    assert machine.ran[-1][0] in ("find", "rm"), "it cleans up at the end"


@given(st.lists(st.one_of(st.integers(0, 1 << 50), st.none())))
def test_a_meter_counts_over_processes(said: list[int | None]) -> None:
    meter, total, largest = Meter(), 0, 0
    for one in said:
        if one is None:
            meter.next_process()
            total, largest = total + largest, 0
        else:
            meter.now(one)
            largest = max(largest, one)
        assert meter.total == total + largest
    assert meter.per_second(1.0) == meter.total
    assert meter.per_second(1.0) == 0


def test_more_time_to_end_for_what_needs_it() -> None:
    graces: list[float] = []

    class Patient(ScriptedProcess):
        async def stop(self, grace_s: float = 5.0) -> int:
            graces.append(grace_s)
            return await super().stop()

    async def drive(settings: SaturatorSettings) -> None:
        machine = ScriptedMachine(begun=lambda command: Patient([], None))
        async with at_work(machine, settings, BY):
            await awaited("its work", lambda: machine.processes)

    for settings in (RSYNC, Backup(kind="backup", guest=9001)):
        asyncio.run(drive(settings))
    assert graces == [5.0, 60.0]
