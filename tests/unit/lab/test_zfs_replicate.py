"""Replication at an interval: what is sent and kept on both ends, what each took, and what a kill leaves."""

import asyncio
import shlex
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import TypeAdapter

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Line
from plimsoll.lab.saturators import AnySaturator, aim_saturator, make_saturator
from plimsoll.lab.saturators.zfs_replicate import ZFS_REPLICATE
from plimsoll.lab.saturators.zfs_send import ZFS_SEND
from plimsoll.lab.steps.step import Command
from tests.support.scripted import ScriptedMachine, ScriptedProcess

SETTINGS: TypeAdapter[Any] = TypeAdapter(AnySaturator)
LOCAL = {"to": "local", "into": "backup/lab"}
REMOTE = {"to": "remote", "host": "root@backup", "into": "backup/lab"}
RECEIVED = "backup/lab/plimsoll-nightly"


def replicate(**further: Any) -> Any:
    return SETTINGS.validate_python(
        {"kind": "zfs-replicate", "dataset": "tank/site", "sink": LOCAL} | further
    )


def own(number: int, dataset: str = "tank/site") -> str:
    return f"{dataset}@plimsoll-nightly-{number:06d}"


class Pools:
    """Two pools, as far as `zfs` shows them: the snapshots of what is sent, and of what is received."""

    def __init__(self, *snapshots: str) -> None:
        self.snapshots = list(snapshots)
        self.there = True  # what is received

    def answer(self, command: Sequence[str]) -> tuple[int, str, str]:
        words = shlex.split(command[-1]) if command[0] == "ssh" else list(command)
        match words:
            case ["zfs", "list", *_]:
                return 0, "\n".join(one for one in self.snapshots if one.startswith("tank")), ""
            case ["zfs", "snapshot", name]:
                self.snapshots.append(name)
            case ["zfs", "destroy", name]:
                self.snapshots.remove(name)
            case ["sh", "-c", script, "sh", name] if "zfs destroy -r" in script:
                self.snapshots = [one for one in self.snapshots if not one.startswith(f"{name}@")]
                self.there = False
            case ["sh", "-c", _, "sh", _]:
                return int(not self.there), "", ""
        return 0, "", ""

    def sent(self, command: Sequence[str], received: str = RECEIVED) -> list[str]:
        """The words of `zfs send`, whose snapshot is there on the other end from now on."""
        words = list(command)[list(command).index("zfs") :]
        self.snapshots.append(words[-1].replace("tank/site", received))
        self.there = True
        return words


@pytest.mark.parametrize("sink", [LOCAL, REMOTE])
def test_what_is_new_is_sent_and_the_old_goes_on_both_ends(sink: dict[str, str]) -> None:
    pools, sends = Pools("tank/site@daily", own(9)), list[list[str]]()
    events: list[dict[str, Any]] = []
    lines = [Line("out", "bytes 70", 0), Line("out", "received 60", 0), Line("out", "received 70", 0)]

    def begin(command: Sequence[str]) -> ScriptedProcess:
        sends.append(pools.sent(command))
        return ScriptedProcess(lines, None if len(sends) == 4 else 0)

    async def drive() -> ScriptedMachine:
        settings = replicate(keep=2, sink=sink).model_copy(update={"interval_s": 0.01})
        machine = ScriptedMachine(pools.answer, begin)
        one = make_saturator(machine, settings, "nightly", events.append)
        await one.start()
        async with asyncio.timeout(30):
            while len(sends) < 4:
                await asyncio.sleep(0.01)
            assert pools.snapshots == [
                "tank/site@daily",
                *(own(2), own(2, RECEIVED)),
                *(own(3), own(3, RECEIVED)),
                *(own(4), own(4, RECEIVED)),
            ], "two on both ends, and the one that is sent"
            while not any("bytes_per_s" in event for event in events):
                await asyncio.sleep(0.01)
        await one.stop()
        return machine

    machine = asyncio.run(drive())
    say = ["zfs", "send", "-v", "-P"]
    assert sends[0] == [*say, own(1)]
    assert sends[1:] == [[*say, "-i", own(number - 1), own(number)] for number in (2, 3, 4)]
    assert pools.snapshots == ["tank/site@daily"]
    assert not pools.there
    assert (events[0]["event"], events[-1]["bytes"]) == ("zfs-replicate", 280)
    told = [event for event in events if event["event"] == "zfs-replicate received bytes"]
    assert bool(told) == (sink is REMOTE), "a local one takes what is sent"
    pipeline = next(words for words in machine.ran if words[0] == "python3")
    assert any("--word=received" in word for word in pipeline) == (sink is REMOTE)


def test_a_failed_round_begins_anew_with_all_of_it() -> None:
    pools, sends = Pools(), list[list[str]]()

    def begin(command: Sequence[str]) -> ScriptedProcess:
        sends.append(pools.sent(command))
        return ScriptedProcess([], {1: 0, 2: 1}.get(len(sends)))

    async def drive() -> None:
        settings = replicate().model_copy(update={"interval_s": 0.01})
        one: Any = make_saturator(
            ScriptedMachine(pools.answer, begin), settings, "nightly", lambda event: None
        )
        one.retry_s = 0.001
        await one.start()
        async with asyncio.timeout(30):
            while len(sends) < 3:
                await asyncio.sleep(0.01)
        assert pools.snapshots == [own(3), own(3, RECEIVED)], "nothing of the rounds before"
        await one.stop()

    asyncio.run(drive())
    assert "-i" not in sends[2]


def test_the_plan_shows_the_rounds_without_waiting() -> None:
    settings = replicate(keep=7, interval_s=900)
    brief = ZFS_REPLICATE.brief(settings)
    assert (brief.rhythm.every_s, ZFS_REPLICATE.rounds(brief)) == (0, 2)
    assert ZFS_REPLICATE.brief(brief) == brief
    assert ZFS_SEND.brief(settings) is settings


def test_a_clone_is_not_received_into_itself() -> None:
    settings = SETTINGS.validate_python(
        {"kind": "zfs-replicate", "sink": {"to": "local", "into": "tank/lab/x"}}
    )
    with pytest.raises(
        ValueError, match=r"sink.into: tank/lab/x lies in what is sent, tank/lab: name a dataset"
    ):
        aim_saturator(settings, DataLocation(dataset="tank/lab"))
    assert aim_saturator(settings, DataLocation(dataset="tank/la")).dataset == "tank/la"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        (replicate(), ["saturator.dataset", "saturator.sink.into", "saturator.sink.into"]),
        (replicate(dataset="@clone"), ["saturator.sink.into"]),
        (
            replicate(dataset="@clone", sink=REMOTE),
            ["saturator.sink.host", "saturator.sink.into", "saturator.sink.host"],
        ),
    ],
)
def test_what_lab_check_looks_at(settings: Any, keys: list[str]) -> None:
    checks = ZFS_REPLICATE.checks(settings)
    assert [one.problem.split(":")[0] for one in checks] == keys
    over_ssh = [one.words[0] == "ssh" for one in checks]
    assert all(over_ssh) == (settings.sink.to == "remote")


@pytest.mark.parametrize(
    ("kind", "settings", "found"),
    [
        (ZFS_REPLICATE, replicate(), [f"the snapshot {own(2)}", f"the dataset {RECEIVED}"]),
        (
            ZFS_REPLICATE,
            replicate(sink=REMOTE),
            [f"the snapshot {own(2)}", f"the dataset {RECEIVED} on root@backup"],
        ),
        (ZFS_REPLICATE, replicate(dataset="tank/plimsoll-nightly/x"), [f"the dataset {RECEIVED}"]),
        (ZFS_REPLICATE, replicate(dataset="@clone"), [f"the dataset {RECEIVED}"]),
        (
            ZFS_SEND,
            SETTINGS.validate_python({"kind": "zfs-send", "dataset": "tank/site"}),
            [f"the snapshot {own(2)}"],
        ),
        (ZFS_SEND, SETTINGS.validate_python({"kind": "zfs-send"}), []),
    ],
)
def test_what_a_kill_left_is_found_on_both_ends_and_removed(
    kind: Any, settings: Any, found: list[str]
) -> None:
    pools = Pools("tank/site@daily", own(2), own(2, RECEIVED), "tank/site@plimsoll-other-000001")

    async def look_and_remove() -> list[str]:
        machine = ScriptedMachine(pools.answer)
        remains = await kind.find(machine, settings, "nightly", "ssd")
        for step in (step for one in remains for step in one.remove):
            assert isinstance(step, Command)
            await machine.run(step.words)
        assert await kind.find(machine, settings, "nightly", "ssd") == []
        return [one.what for one in remains]

    assert asyncio.run(look_and_remove()) == found
    assert {"tank/site@daily", "tank/site@plimsoll-other-000001"} <= set(pools.snapshots)


def test_a_host_that_cannot_be_asked_is_not_clean() -> None:
    machine = ScriptedMachine(lambda command: (255, "", "ssh: connect to host backup port 22: refused"))
    remains = asyncio.run(ZFS_REPLICATE.find(machine, replicate(sink=REMOTE), "nightly", "ssd"))
    assert [one.what for one in remains] == [
        f"the dataset {RECEIVED} on root@backup, or not: it cannot be asked"
    ]
    step = remains[0].remove[0]
    assert isinstance(step, Command)
    with pytest.raises(MachineError, match="255"):
        asyncio.run(machine.run(step.words))
