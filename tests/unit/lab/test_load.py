"""What loads a clone in a run: its commands, which begin in order and end as they should; nothing runs on."""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plimsoll.common.programs import project
from plimsoll.lab.clones.clone import Target
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.design import variants
from plimsoll.lab.experiment.labfile import Member, Phases
from plimsoll.lab.experiment.load import (
    BEGIN_FILE,
    Beginning,
    Events,
    MemberCommand,
    MemberRun,
    RunClock,
    RunLoad,
    build_loads,
    member_command,
    saturate,
)
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.lab.experiment.scenarios import ScenarioTraits, read_traits
from plimsoll.lab.experiment.slices import describe_slices
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.saturators.saturator import OnEvent
from tests.support.labfile import ALONE, ENDLESS, TOGETHER, UPGRADES, parse_lab


def command(text: str, kind: ScenarioTraits, ours: bool = True) -> str:
    lab = parse_lab(text)
    run = PlannedRun(1, 2, "a", lab.scenarios[0].called)
    (member,) = lab.scenarios[0].members
    words = member_command(lab, run, member, kind, Target("http://127.0.0.1:1", "10.0.0.1:80"), "/out", ours)
    return " ".join(Path(word).name if i == 0 else word for i, word in enumerate(words))


def test_a_replay_lasts_as_long_as_its_phases() -> None:
    text = ALONE.replace(
        "scenario: download", "scenario: replay\n    options: {log: [a.log, b.log], speed: 2}"
    )
    assert command(text, ScenarioTraits(False, True)) == (
        "replay run a.log b.log --speed 2 --loops 0 --duration 125s --warmup 5s --seed 1 --quiet "
        "--target http://127.0.0.1:1 --connect-to 10.0.0.1:80 --backend a --repeat 2 --out /out"
    )


LOG = str(project() / "examples/access.log")  # of 60 s, from 23:55:22 on
STARTS = [f"2026-11-20T23:{each}Z" for each in ("55:22", "55:42", "56:02")]
# Options of the replay, seconds of a run, and where blocks 1, 2, 3 and 4 begin; None: where all others do.
SLICES: list[tuple[str, str, int, list[str] | None]] = [
    ("a slice a block, dealt in turn", "", 20, [*STARTS, STARTS[0]]),
    ("of the log's time, whatever the speed", "speed: 2", 10, [*STARTS, STARTS[0]]),
    ("a log of one slice", "", 40, None),
    ("a log that is too short", "", 90, None),
    ("a pace of one's own", "rate: 5", 20, None),
    ("users", "users: 5", 20, None),
    ("as fast as it goes", "speed: max", 20, None),
    ("a part of the log that lab.yml names", "flags: [--from=2026-11-20T23:55:40Z]", 20, None),
    ("as many requests as lab.yml says", 'flags: [--limit, "5"]', 20, None),
    ("a log that is not there", "format: none", 20, None),
]


@pytest.mark.parametrize(("what", "options", "lasts_s", "starts"), SLICES, ids=[row[0] for row in SLICES])
def test_all_runs_of_a_block_replay_one_slice_of_the_log(
    what: str, options: str, lasts_s: int, starts: list[str] | None
) -> None:
    scenario = f"scenario: replay\n    options: {{log: {LOG}, {options}}}"
    lab = parse_lab(
        ALONE.replace("scenario: download", scenario)
        + f"warmup_s: 0\nphases: {{before_s: 0, during_s: {lasts_s}, after_s: 0}}\n"
    )
    (member,) = lab.scenarios[0].members
    begins: list[str | None] = []
    for block in (1, 2, 3, 4, None):
        runs = [PlannedRun(at, 2, "a", "replay", block) for at in (1, 2)]
        first, second = (
            member_command(lab, run, member, ScenarioTraits(False, True), Target("http://h"), "/out", True)
            for run in runs
        )
        assert first == second
        begins.append(first[first.index("--from") + 1] if "--from" in first else None)
    assert begins[:4] == ([None] * 4 if starts is None else starts), what
    assert begins[4] is None, "a run in no block"


def test_the_plan_says_which_slices_there_are() -> None:
    text = ALONE.replace("scenario: download", f"scenario: replay\n    options: {{log: {LOG}, speed: 2}}")
    text += "warmup_s: 0\nphases: {before_s: 0, during_s: 10, after_s: 0}\n"
    assert describe_slices(parse_lab(text)) == [], "a single backend has no blocks"
    other = "  - {name: b, clone: {driver: static, target: 'http://127.0.0.1:8081'}}\nscenarios:"
    assert describe_slices(parse_lab(text.replace("scenarios:", other))) == [
        "replay: the log holds 3 slices of 20 s; all runs of a block play one, those of the first from "
        f"{STARTS[0]} on, of the second from {STARTS[1]}."
    ]


def test_a_scenario_gets_what_lab_yml_says_and_may_change_a_clone_of_ours_only() -> None:
    text = ALONE.replace("scenario: download", "scenario: save-article\n    options: {saves: 3}")
    words = (
        "plimsoll scenario save-article --target http://127.0.0.1:1 --connect-to 10.0.0.1:80 --backend a "
        "--repeat 2 --out /out --saves 3 --duration-s 125 --seed 1"
    )
    assert command(text, ScenarioTraits(True, True)) == f"{words} --i-may-change-this-site --no-progress"
    assert command(text, ScenarioTraits(True, True), ours=False) == f"{words} --no-progress"


def test_what_ends_by_itself_gets_no_duration() -> None:
    text = ALONE.replace("scenario: download", "scenario: upgrade-wordpress") + "phases: {during_s: null}\n"
    assert "--duration" not in command(text, ScenarioTraits(True, False))


def loads(text: str) -> list[MemberCommand]:
    lab = parse_lab(text)
    return build_loads(
        lab, PlannedRun(1, 2, "a", "rush-hour"), read_traits(lab, "lab.yml"), Target("http://h"), "/out", True
    )


def commands(text: str) -> list[str]:
    return [" ".join([Path(load.command[0]).name, *load.command[1:]]) for load in loads(text)]


def with_member(said: str, text: str = TOGETHER) -> str:
    return text.replace("- scenario: save-article", f"- {{scenario: save-article, {said}}}")


@pytest.mark.parametrize(
    ("what", "text", "says"),
    [
        ("what goes on as long as the run does begins with it", TOGETHER, None),
        (
            "what ends by itself begins with the saturator, after the warm-up and before_s",
            with_member("options: {iterations: 100}"),
            "begins at 15 s, with the saturator",
        ),
        (
            "so does an upgrade",
            UPGRADES,
            "begins at 15 s, with the saturator",
        ),
        (
            "without an end of the phases all but the crowd end by themselves; so none is in the warm-up",
            ENDLESS.replace("during_s: null", "before_s: 0, during_s: null"),
            "begins at 5 s, with the saturator",
        ),
        (
            "begin_s has the last word on what ends by itself",
            with_member("options: {iterations: 100}, begin_s: 0"),
            None,
        ),
        ("and on what does not", with_member("begin_s: 12.5"), "begins at 12.5 s"),
        (
            "a browser, on k6, waits for nobody",
            ENDLESS.replace("save-article", "browser"),
            None,
        ),
    ],
)
def test_members_begin_when_they_should(what: str, text: str, says: str | None) -> None:
    crowd, timed = (load.begins for load in loads(text))
    assert crowd is None
    assert (timed.sentence if timed else None) == says, what


def test_a_member_that_begins_later_knows_what_to_wait_for_and_the_plan_says_when() -> None:
    _, timed = loads(with_member("begin_s: 12"))
    assert timed.command[:2] == ["env", "PLIMSOLL_BEGIN_FILE=/out/save-article/begin"]
    assert timed.says == "run the scenario, which begins at 12 s"


def test_the_beginning_of_a_member_can_be_a_factor() -> None:
    text = TOGETHER + (
        "factors:\n  - {name: late, key: scenarios.rush-hour/save-article.begin_s, values: [0, 20]}\n"
    )
    begins = [variant.lab.scenario("rush-hour").members[0].begin_s for variant in variants(parse_lab(text))]
    assert begins == [0, 20]


def test_the_crowd_is_started_first_and_outlasts_what_is_timed_within_it() -> None:
    assert commands(TOGETHER) == [
        "replay run a.log --speed 1 --loops 0 --duration 65s --warmup 5s --seed 1 --quiet --target http://h "
        "--backend a --repeat 2 --out /out/replay",
        "plimsoll scenario save-article --target http://h --backend a --repeat 2 --out /out/save-article "
        "--duration-s 45 --seed 1 --i-may-change-this-site --no-progress",
    ]


def test_an_upgrade_has_its_own_end_among_phases_that_have_theirs() -> None:
    crowd, upgrade = commands(UPGRADES)
    assert "--duration 65s" in crowd
    assert "--duration" not in upgrade


def test_without_an_end_of_the_phases_the_crowd_goes_on_until_it_is_stopped() -> None:
    crowd, author = commands(ENDLESS)
    assert "--loops 0 --duration 7200s" in crowd
    assert "--duration" not in author


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
ScriptedMember = tuple[str, str, float, str]  # scenario, name, seconds that it lasts, status


def parts(folder: Path, *scripted: ScriptedMember) -> list[MemberRun]:
    found = []
    for scenario, name, lasts_s, status in scripted:
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
    ("why", "scripted", "said"),
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
    why: str, scripted: ScriptedMember, said: str, endless: bool, tmp_path: Path
) -> None:
    with pytest.raises(LabError, match=said):
        loaded(parts(tmp_path, ("download", "a", 600, "complete"), scripted), endless)


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


def test_a_member_whose_signal_to_begin_cannot_be_written_is_an_error_of_the_run(tmp_path: Path) -> None:
    part, clock = waiting(tmp_path, Beginning(0))
    (tmp_path / "late").rmdir()
    with pytest.raises(LabError, match="begin cannot be written: No such file"):
        asyncio.run(part.let_begin(clock, None))


class SlowToStart:
    """A saturator that gets ready, `ready_s` long, before it works."""

    failure: str | None = None

    def __init__(self, ready_s: float, on_event: OnEvent) -> None:
        self._ready_s, self._on_event = ready_s, on_event

    async def start(self) -> None:
        await asyncio.sleep(self._ready_s)
        self._on_event({"event": "slow", "phase": "start"})

    async def stop(self) -> None:
        """Nothing of it runs."""


READY = [
    ("one that is ready in time", 0.0, 5.0, True),
    ("one that is not ready when the load ends", 3600.0, 5.0, False),
    ("one whose phase has not begun when the load ends", 3600.0, -60.0, True),
]


@pytest.mark.parametrize(("what", "ready_s", "begun_s", "well"), READY, ids=[row[0] for row in READY])
def test_a_run_whose_saturator_never_started_is_no_run_under_it(
    tmp_path: Path, what: str, ready_s: float, begun_s: float, well: bool
) -> None:
    async def load_ends_first() -> Events:
        events = Events(tmp_path / "events.jsonl")
        busy = SlowToStart(ready_s, events.note)
        events.clock = RunClock(datetime.now(UTC) - timedelta(seconds=10))
        phases = Phases(before_s=max(10 - begun_s, 0), during_s=60, after_s=0)
        working = asyncio.create_task(saturate(busy, events.clock, 0.0, phases))
        while ready_s == 0 and not events.saturated.is_set():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        return events

    events = asyncio.run(load_ends_first())
    if well:
        events.require_saturated(10 - begun_s)
        return
    with pytest.raises(LabError, match=r"still getting ready \d+ s after its phase began"):
        events.require_saturated(10 - begun_s)


def test_the_saturator_works_as_long_as_its_phase_after_the_warm_up(tmp_path: Path) -> None:
    """Its phase would be over by now were the warm-up none."""

    async def begins() -> bool:
        events = Events(tmp_path / "events.jsonl")
        clock = RunClock(datetime.now(UTC) - timedelta(seconds=1500))
        phases = Phases(before_s=0, during_s=1000, after_s=0)
        working = asyncio.create_task(saturate(SlowToStart(0.0, events.note), clock, 1000.0, phases))
        await asyncio.wait([working], timeout=0.1)
        works = not working.done()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return works

    assert asyncio.run(begins())
