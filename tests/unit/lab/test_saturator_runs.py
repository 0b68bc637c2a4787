"""Saturators at work: they repeat, tell, give up, stop, and leave only what was there."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from plimsoll.lab.machine import Line
from plimsoll.lab.saturators import make_saturator
from plimsoll.lab.saturators.btrfs_send import BtrfsSend
from plimsoll.lab.saturators.fio import Fio
from plimsoll.lab.saturators.saturator import Runner, Saturator
from tests.support.scripted import ScriptedMachine, ScriptedProcess
from tests.unit.lab.test_saturators import BTRFS, FIO, OWN, ZFS


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


async def _until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def _quick(one: Saturator) -> Saturator:
    assert isinstance(one, Runner)
    one.retry_s = 0.001
    return one


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
        one = make_saturator(ScriptedMachine(pool.answer, begin), ZFS, "nightly", events.append)
        await _quick(one).start()
        await _until(lambda: len(begun) == 3)
        assert pool.snapshots == [*theirs, "tank/site@plimsoll-nightly-000003"]
        await _until(lambda: any("bytes_per_s" in event for event in events))
        pool.busy = 2  # for a moment after it was stopped
        await one.stop()
        await one.stop()
        assert one.failure is None

    asyncio.run(drive())
    assert pool.snapshots == theirs
    assert begun[2].stopped
    assert events[0] == {"event": "zfs-send", "phase": "start", "saturator": True}
    del events[-1]["at_ns"]
    assert events[-1] == {"event": "zfs-send", "phase": "stop", "bytes": 500 + 500 + 400}
    assert {"zfs-send", "zfs-send bytes"} == {event["event"] for event in events}


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


def test_it_stopped_at_its_last_byte_however_long_its_program_takes_to_end() -> None:
    events: list[dict[str, Any]] = []
    begun: list[_SlowToEnd] = []

    def begin(command: Sequence[str]) -> ScriptedProcess:
        begun.append(_SlowToEnd([Line("out", "bytes 500", 0)], None))
        return begun[-1]

    async def drive() -> None:
        settings = ZFS.model_copy(update={"rate_bytes_per_s": 1000})
        one = make_saturator(ScriptedMachine(Pool(openzfs=False).answer, begin), settings, "n", events.append)
        await one.start()
        await _until(lambda: begun)
        await asyncio.sleep(0.1)  # long enough for a throughput
        await one.stop()

    asyncio.run(drive())
    *_, last_part, stop = events
    assert stop == {"event": "zfs-send", "phase": "stop", "bytes": 900, "at_ns": begun[0].last_ns}
    assert (last_part["event"], last_part["at_ns"]) == ("zfs-send bytes", begun[0].last_ns)
    assert last_part["bytes_per_s"] > 0, "the second that was cut off"


def test_the_last_throughput_is_over_the_time_since_the_line_before_it() -> None:
    events: list[dict[str, Any]] = []
    begun: list[_SlowToEnd] = []

    def begin(command: Sequence[str]) -> ScriptedProcess:
        begun.append(_SlowToEnd([Line("out", "bytes 500", time.monotonic_ns())], None))
        return begun[-1]

    async def drive() -> None:
        settings = ZFS.model_copy(update={"rate_bytes_per_s": 1000})
        one = make_saturator(ScriptedMachine(Pool(openzfs=False).answer, begin), settings, "n", events.append)
        await one.start()
        await _until(lambda: any("bytes_per_s" in event for event in events))
        await asyncio.sleep(0.1)
        await one.stop()

    asyncio.run(drive())
    *_, last_part, stop = events
    since_s = (stop["at_ns"] - begun[0]._lines[0].t_ns) / 1e9
    assert last_part["bytes_per_s"] == round(400 / since_s), "no spike after a report that lagged behind"


def test_reports_that_are_overdue_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.lab.saturators.saturator._PERIOD_NS", 20_000_000)
    monkeypatch.setattr("plimsoll.lab.saturators.saturator._SHORTEST_NS", 5_000_000)
    reported_ns: list[int] = []

    def note(event: dict[str, Any]) -> None:
        if "bytes_per_s" in event:
            reported_ns.append(event["at_ns"])

    async def drive() -> None:
        one = make_saturator(ScriptedMachine(Pool(openzfs=False).answer), ZFS, "n", note)
        await one.start()
        await _until(lambda: reported_ns)
        time.sleep(0.1)  # the machine stands still, and five reports become due
        reports = len(reported_ns)
        await _until(lambda: len(reported_ns) > reports + 2)
        await one.stop()

    asyncio.run(drive())
    assert min(later - before for before, later in pairwise(reported_ns)) > 1_000_000


def test_increments_follow_each_other() -> None:
    pool, sent = Pool(openzfs=False), []

    def begin(command: Sequence[str]) -> ScriptedProcess:
        sent.append(list(command)[list(command).index("zfs") :])
        return ScriptedProcess([Line("out", "bytes 7", 0)], None if len(sent) == 2 else 0)

    async def drive() -> None:
        settings = ZFS.model_copy(update={"mode": "incremental"})
        one = make_saturator(ScriptedMachine(pool.answer, begin), settings, "nightly", lambda event: None)
        await one.start()
        await _until(lambda: len(sent) == 2)
        await one.stop()

    asyncio.run(drive())
    second = "tank/site@plimsoll-nightly-000002"
    assert sent == [["zfs", "send", OWN], ["zfs", "send", "-i", OWN, second]]
    assert pool.snapshots == []


def test_it_gives_up_after_so_many_failures_and_says_why() -> None:
    pool = Pool()
    events: list[dict[str, Any]] = []
    failed = [Line("err", "cannot send: I/O error", 0), Line("err", "size\t9", 0)]

    async def drive() -> Saturator:
        machine = ScriptedMachine(pool.answer, lambda command: ScriptedProcess(failed, 1))
        one = _quick(make_saturator(machine, ZFS, "nightly", events.append))
        await one.start()
        await _until(lambda: one.failure)
        await one.stop()
        return one

    one = asyncio.run(drive())
    assert one.failure and "status 1" in one.failure and "I/O error" in one.failure
    told = [event for event in events if event["event"] != "zfs-send bytes"]
    assert [(event["event"], event.get("phase")) for event in told] == [
        ("zfs-send", "start"),
        ("zfs-send retry", None),
        ("zfs-send", "stop"),
    ]
    assert told[-1]["error"] == one.failure
    assert pool.snapshots == [], "also what the failed sends left"


@pytest.mark.parametrize("settings", [BTRFS, FIO])
def test_the_others_start_and_stop_alike(settings: BtrfsSend | Fio) -> None:
    events: list[dict[str, Any]] = []

    async def drive() -> ScriptedMachine:
        machine = ScriptedMachine()
        one = make_saturator(machine, settings, "nightly", events.append)
        await one.start()
        await _until(lambda: machine.processes)
        await one.stop()
        return machine

    machine = asyncio.run(drive())
    assert machine.processes[0].stopped
    assert [event["phase"] for event in events if "phase" in event] == ["start", "stop"]
    assert machine.ran[-1][0] in ("find", "rm"), "it cleans up at the end"
