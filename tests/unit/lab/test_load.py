"""What loads a clone in a run: members begin in order and end as they should, and nothing runs on."""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.labfile import Member
from plimsoll.lab.experiment.load import (
    BEGIN_FILE,
    Beginning,
    Events,
    MemberCommand,
    MemberRun,
    RunClock,
    RunLoad,
)
from plimsoll.lab.machine import LocalMachine

# A scenario as the lab sees it: it begins, does what it is for, and says how it ended.
SCENARIO = """
import json, signal, sys, time
from datetime import datetime, UTC
from pathlib import Path
folder, lasts_s, status = Path(sys.argv[1]) / "run", float(sys.argv[2]), sys.argv[3]
def say(status):
    facts = {"format": 1, "scenario": "x", "status": status, "started_at": started}
    if status == "failed" and sys.argv[4:]:
        facts["reason"] = sys.argv[4]
    (folder / ".run.json").write_text(json.dumps(facts))
    (folder / ".run.json").rename(folder / "run.json")
def interrupted(*_):
    say("interrupted")
    sys.exit(1)
signal.signal(signal.SIGTERM, interrupted)
folder.mkdir()
started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
say("running")
time.sleep(lasts_s)
say(status)
print("its last words", file=sys.stderr)
"""
Told = tuple[str, str, float, str]  # scenario, name, seconds that it lasts, status


def parts(folder: Path, *told: Told) -> list[MemberRun]:
    found = []
    for scenario, name, lasts_s, status in told:
        below = folder / name
        command = [sys.executable, "-c", SCENARIO, str(below), str(lasts_s), status]
        found.append(
            MemberRun(MemberCommand(Member(scenario=scenario, name=name), str(below), command), name)
        )
    return found


def loaded(members: Sequence[MemberRun], endless: bool = False) -> None:
    """Carry it out as a run does, and see that nothing runs on, whatever happens."""

    async def go() -> None:
        load = RunLoad(members, endless)
        machine = LocalMachine()
        try:
            await load.begin(machine)
            await load.end()
        finally:
            with contextlib.suppress(LabError):
                await load.stop()
            assert all(part.program.is_over() for part in members if hasattr(part, "program"))
            await machine.close()

    asyncio.run(asyncio.wait_for(go(), 60))


def test_all_members_are_waited_for_and_the_clock_is_that_of_the_last_to_begin(tmp_path: Path) -> None:
    crowd, author = parts(tmp_path, ("replay", "a", 1.0, "complete"), ("download", "b", 0.1, "complete"))
    loaded([author, crowd])
    assert crowd.clock.start_ns < author.clock.start_ns, "the crowd is there before what is timed within it"
    assert not crowd.stopped


def test_a_crowd_without_an_end_is_stopped_when_all_others_have_ended(tmp_path: Path) -> None:
    crowd, author = parts(tmp_path, ("replay", "a", 600, "complete"), ("download", "b", 0.1, "complete"))
    loaded([crowd, author], endless=True)
    assert crowd.stopped
    assert not author.stopped


@pytest.mark.parametrize(
    ("why", "told", "said"),
    [
        ("a member fails", ("download", "b", 0.1, "failed"), "b: the run is failed: its last words"),
        (
            "a member is interrupted",
            ("download", "b", 0.1, "interrupted"),
            "b: the run is interrupted: its last",
        ),
        ("a crowd fails", ("replay", "b", 0.1, "failed"), "b: the run is failed"),
    ],
)
@pytest.mark.parametrize("endless", [False, True])
def test_a_member_that_does_not_end_well_ends_the_others(
    why: str, told: Told, said: str, endless: bool, tmp_path: Path
) -> None:
    with pytest.raises(LabError, match=said):
        loaded(parts(tmp_path, ("download", "a", 600, "complete"), told), endless)


def test_what_the_run_itself_says_of_its_failure_counts_more_than_last_words(tmp_path: Path) -> None:
    (author,) = parts(tmp_path, ("save-article", "a", 0.1, "failed"))
    author.load.command.append("the password of admin is wrong")
    with pytest.raises(LabError, match="a: the run is failed: the password of admin is wrong"):
        loaded([author])


def test_a_member_that_does_not_begin_is_named_with_its_last_words(tmp_path: Path) -> None:
    first, second = parts(tmp_path, ("replay", "a", 600, "complete"), ("download", "b", 1, "complete"))
    (tmp_path / "b" / "run").mkdir(parents=True)  # it cannot make its directory
    with pytest.raises(LabError, match="b: it ended before the run began: FileExistsError"):
        loaded([first, second])


def waiting(folder: Path, begins: Beginning) -> tuple[MemberRun, RunClock]:
    (part,) = parts(folder, ("download", "late", 0.1, "complete"))
    part.load = replace(part.load, begins=begins)
    (folder / "late").mkdir()
    part.clock = RunClock(datetime.now(UTC))
    return part, part.clock


def test_a_member_begins_at_its_second_of_the_run(tmp_path: Path) -> None:
    part, clock = waiting(tmp_path, Beginning(0.3))
    asyncio.run(part.let_begin(clock, asyncio.Event()))
    assert (tmp_path / "late" / BEGIN_FILE).exists()
    assert part.began_ns is not None
    assert clock.since_ns(part.began_ns) >= 0.3e9, "not before"


def test_what_begins_with_the_saturator_waits_until_that_works(tmp_path: Path) -> None:
    part, clock = waiting(tmp_path, Beginning(0, with_saturator=True))

    async def go() -> None:
        events = Events(tmp_path / "events.jsonl")
        beginning = asyncio.create_task(part.let_begin(clock, events.saturated))
        await asyncio.sleep(0.05)
        assert not (tmp_path / "late" / BEGIN_FILE).exists()
        events.note({"event": "zfs-send", "phase": "start"})
        await beginning

    asyncio.run(go())
    assert (tmp_path / "late" / BEGIN_FILE).exists()


def test_what_begins_with_the_saturator_begins_at_its_second_where_there_is_none(tmp_path: Path) -> None:
    part, clock = waiting(tmp_path, Beginning(0, with_saturator=True))
    asyncio.run(part.let_begin(clock, None))
    assert (tmp_path / "late" / BEGIN_FILE).exists()


def test_a_member_that_cannot_be_told_is_an_error_of_the_run(tmp_path: Path) -> None:
    part, clock = waiting(tmp_path, Beginning(0))
    (tmp_path / "late").rmdir()
    with pytest.raises(LabError, match="begin cannot be written: No such file"):
        asyncio.run(part.let_begin(clock, None))
