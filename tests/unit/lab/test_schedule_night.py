"""Nights: what is run, when it is not, and what comes of it; the clock is ours."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from plimsoll.lab.schedule import night as nightly
from plimsoll.lab.schedule.installation import (
    InstalledSchedule,
    Schedule,
    ScheduleFolders,
    environment,
    read_environment,
)
from plimsoll.lab.schedule.night import exit_code, outcome, run_night
from plimsoll.lab.schedule.nights import (
    Night,
    Nights,
    ScheduleStatus,
    find_missed,
    find_status,
    hold_lock,
    still_running,
)
from plimsoll.lab.schedule.timers import parse_calendar
from tests.support.programs import LONGEST_S, ROOT, wait_for
from tests.support.stand_ins import called, program, scheduled, tell

CODES = [
    (0, 0, 0, "passed", "nothing is worse"),
    (0, 1, 1, "regression", "something is"),
    (0, 3, 3, "undecided", "it cannot be judged"),
    (0, 2, 2, "wrong", "an option of regress is wrong"),
    (0, 137, 3, "failed", "regress was killed"),
    (1, 0, 3, "failed", "half an experiment is no good night, whatever it says"),
    (1, 1, 1, "regression", "what is worse is worse, also where some runs failed"),
    (1, None, 3, "failed", "there was nothing to judge"),
    (2, None, 2, "wrong", "lab.yml is wrong"),
    (2, 0, 2, "wrong", "lab.yml is wrong now, though runs were there"),
    (137, 0, 3, "failed", "the experiment was killed"),
]


@pytest.mark.parametrize(
    ("experiment", "regress", "code", "called", "why"), CODES, ids=[row[4] for row in CODES]
)
def test_one_exit_code(experiment: int, regress: int | None, code: int, called: str, why: str) -> None:
    assert (exit_code(experiment, regress), outcome(experiment, regress)) == (code, called)


def _clock(*texts: str) -> Callable[[], datetime]:
    """A clock that says these times one after the other, and then the last one again."""
    instants = [datetime.fromisoformat(f"{text}+00:00") for text in texts]
    return lambda: instants.pop(0) if len(instants) > 1 else instants[0]


def _at(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


def _outcomes(place: ScheduleFolders) -> list[str]:
    return [night.outcome for night in Nights(place.folder("quiet")).read()]


def _status(schedule: Schedule, place: ScheduleFolders, at: str) -> ScheduleStatus:
    return find_status("quiet", place, InstalledSchedule({}, [], None, schedule), _at(at))


def test_a_night(tmp_path: Path) -> None:
    program(tmp_path, says="× 1.01: nothing is worse")
    schedule, place = scheduled(tmp_path, options=("--keep-raw-days", "30"))
    done = run_night(schedule, place, True, _clock("2026-11-02T03:00:01", "2026-11-02T03:20:00"))
    assert done is not None
    assert (done.outcome, done.exit, done.said) == ("passed", 0, "× 1.01: nothing is worse")
    assert done.due == _at("2026-11-02T03:00:00")
    assert done.ended == _at("2026-11-02T03:20:00")
    assert Nights(place.folder("quiet")).read() == [done]
    run, regress = called(tmp_path)
    assert run == ["run", "--json", "--no-progress", str(tmp_path / "lab.yml")]
    out = tmp_path / "nights" / "quiet"
    assert regress == [
        *("regress", "--history", f"{out}/history.sqlite", "--new", f"--junit={out}/junit.xml"),
        *(f"--markdown={out}/summary.md", f"--html={out}/history.html", "--keep-raw-days", "30"),
        *("--", done.folder),
    ]
    assert Path(str(done.folder)).parent == tmp_path / "results"


def test_only_the_first_night_that_is_judged_begins_the_history(tmp_path: Path) -> None:
    program(tmp_path, run=2)
    schedule, place = scheduled(tmp_path)
    assert run_night(schedule, place, True, _clock("2026-11-02T03:00:00")) is not None  # nothing to judge
    for regress, day in ((2, 3), (0, 4), (0, 5)):  # it could not be judged; it was; its history is gone
        program(tmp_path, regress=regress)
        assert run_night(schedule, place, True, _clock(f"2026-11-{day:02}T03:00:00")) is not None
    judged = [words for words in called(tmp_path) if words[0] == "regress"]
    assert ["--new" in words for words in judged] == [True, True, False]


def test_a_night_that_was_done_is_not_done_again_but_by_hand(tmp_path: Path) -> None:
    program(tmp_path)
    schedule, place = scheduled(tmp_path)
    assert run_night(schedule, place, True, _clock("2026-11-01T13:00:00")) is None  # none is due yet
    assert run_night(schedule, place, True, _clock("2026-11-02T03:00:00")) is not None
    assert run_night(schedule, place, True, _clock("2026-11-02T03:30:00")) is None
    by_hand = run_night(schedule, place, False, _clock("2026-11-02T12:00:00"))
    assert by_hand is not None
    assert by_hand.due is None
    assert _outcomes(place) == ["passed", "passed"]


EXITS = [
    ({"run": 0, "regress": 1}, 1, "regression", True, "a regression"),
    ({"run": 0, "regress": 3}, 3, "undecided", True, "not all of the night could be judged"),
    ({"run": 1, "regress": 0}, 3, "failed", True, "an experiment that did not finish is judged all the same"),
    ({"run": 2}, 2, "wrong", False, "an experiment that could not begin leaves nothing to judge"),
]


@pytest.mark.parametrize(("exits", "code", "called_", "judged", "why"), EXITS, ids=[row[4] for row in EXITS])
def test_bad_nights(
    tmp_path: Path, exits: dict[str, int], code: int, called_: str, judged: bool, why: str
) -> None:
    program(tmp_path, **exits)
    schedule, place = scheduled(tmp_path)
    done = run_night(schedule, place, True, _clock("2026-11-02T03:00:00"))
    assert done is not None
    assert (done.exit, done.outcome) == (code, called_)
    assert [words[0] for words in called(tmp_path)] == ["run", "regress"][: 1 + judged]
    status = _status(schedule, place, "2026-11-02T04:00:00")
    assert any(called_ in problem for problem in status.problems)


def test_missed_nights_are_recorded_and_reported(tmp_path: Path) -> None:
    program(tmp_path)
    schedule, place = scheduled(tmp_path)
    run_night(schedule, place, True, _clock("2026-11-02T03:00:00"))
    before = _status(schedule, place, "2026-11-05T02:00:00")
    assert [night.due for night in before.missed] == [_at("2026-11-03T03:00:00"), _at("2026-11-04T03:00:00")]
    assert any(problem.startswith("2 nights missed, since the last night") for problem in before.problems)
    # The machine is on again at noon: the last of the missed nights is made up for, once
    done = run_night(schedule, place, True, _clock("2026-11-05T12:00:00"))
    assert done is not None
    assert done.due == _at("2026-11-05T03:00:00")
    assert run_night(schedule, place, True, _clock("2026-11-05T12:30:00")) is None
    assert _outcomes(place) == ["passed", "missed", "missed", "passed"]
    after = _status(schedule, place, "2026-11-05T13:00:00")
    assert not any("nights missed" in problem for problem in after.problems)
    assert any(note.startswith("2 nights missed") for note in after.notes)
    assert after.next == _at("2026-11-06T03:00:00")


def test_a_night_that_begins_in_these_minutes_is_not_missed_yet(tmp_path: Path) -> None:
    program(tmp_path)
    schedule, place = scheduled(tmp_path)
    assert _status(schedule, place, "2026-11-02T03:04:00").missed == []
    assert len(_status(schedule, place, "2026-11-02T03:06:00").missed) == 1


def test_a_night_that_lasts_past_the_next_one_skips_it(tmp_path: Path) -> None:
    program(tmp_path)
    schedule, place = scheduled(tmp_path)
    run_night(schedule, place, True, _clock("2026-11-02T03:00:00", "2026-11-03T04:00:00"))
    # systemd holds the timer back while the service runs, and lets it go when it ends
    done = run_night(schedule, place, True, _clock("2026-11-03T04:00:01"))
    assert done is not None
    assert (done.outcome, done.exit) == ("skipped", 0)
    assert done.said == "skipped: still running since 2026-11-02 03:00:00 UTC"
    status = _status(schedule, place, "2026-11-03T05:00:00")
    assert "1 night skipped: still running since 2026-11-02 03:00:00 UTC" in status.problems
    assert status.last is not None
    assert status.last.outcome == "passed"
    # Nor does it matter any more once a night was done
    run_night(schedule, place, True, _clock("2026-11-04T03:00:00"))
    assert not any(
        "skipped" in problem for problem in _status(schedule, place, "2026-11-04T05:00:00").problems
    )


def test_two_at_once_and_one_is_skipped(tmp_path: Path) -> None:
    program(tmp_path)
    schedule, place = scheduled(tmp_path)
    nights = Nights(place.folder("quiet"))
    nights.add(Night(due=_at("2026-11-02T03:00:00"), began=_at("2026-11-02T03:00:00"), outcome="running"))
    with hold_lock(place.folder("quiet")) as lock:
        assert lock is not None
        done = run_night(schedule, place, True, _clock("2026-11-03T03:00:00"))
        running = _status(schedule, place, "2026-11-03T03:01:00").running
    assert done is not None
    assert done.said == "skipped: still running since 2026-11-02 03:00:00 UTC"
    assert running is not None
    assert _outcomes(place) == ["running", "skipped"]
    assert not (tmp_path / "called.txt").exists()


def test_another_experiment_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path)
    monkeypatch.setattr(nightly, "_EACH_S", 0.01)
    schedule, place = scheduled(tmp_path)
    (tmp_path / "busy").touch()
    done = run_night(schedule, place, True, _clock("2026-11-02T03:00:00"))
    assert done is not None
    assert done.outcome == "passed"
    assert [words[0] for words in called(tmp_path)] == ["run", "run", "regress"]
    (tmp_path / "busy").touch()
    skipped = run_night(schedule, place, True, _clock("2026-11-03T03:00:00"), patience_s=0)
    assert skipped is not None
    assert (skipped.outcome, skipped.exit) == ("skipped", 0)
    assert skipped.said == "skipped: others"


def _command(place: ScheduleFolders, tmp_path: Path) -> list[str]:
    state = ["--state", str(place.state)]
    return [sys.executable, "-m", "plimsoll", "schedule", "now", "quiet", *state]


def _begun(tmp_path: Path, place: ScheduleFolders) -> "subprocess.Popen[str]":
    """A night whose experiment hangs."""
    started = subprocess.Popen(
        _command(place, tmp_path), cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for("the experiment begins", (tmp_path / "hangs").exists)
    return started


def _is_free(place: ScheduleFolders) -> bool:
    with hold_lock(place.folder("quiet")) as lock:
        return lock is not None


def _tidied(tmp_path: Path) -> bool:
    return any("tidied" in path.read_text() for path in (tmp_path / "results").glob("*/journal.jsonl"))


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "interrupted"), (signal.SIGKILL, "killed")],
)
def test_a_night_that_is_cut_off_is_gone_on_with(tmp_path: Path, number: signal.Signals, said: str) -> None:
    program(tmp_path, hangs=True)
    schedule, place = scheduled(tmp_path)
    started = _begun(tmp_path, place)
    second = subprocess.run(
        _command(place, tmp_path), cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_S
    )
    assert second.returncode == 0
    assert "skipped: still running since" in second.stdout
    started.send_signal(number)
    started.communicate(timeout=LONGEST_S)
    assert started.returncode == (3 if said == "interrupted" else -signal.SIGKILL)
    wait_for("nobody holds the lock", lambda: _is_free(place))
    assert _tidied(tmp_path)  # it was told to end, also by kill -9 of its parent
    seen = find_status("quiet", place, InstalledSchedule({}, [], None, schedule), datetime.now(UTC))
    assert seen.last is not None
    assert seen.last.outcome == said
    tell(tmp_path)
    done = run_night(schedule, place, False)
    assert done is not None
    assert done.resumed
    assert done.outcome == "passed"
    assert done.folder == called(tmp_path)[1][-1]
    assert [one for one in _outcomes(place) if one != "missed"] == [said, "skipped", "passed"]
    assert len(list((tmp_path / "results").iterdir())) == 1
    again = run_night(schedule, place, False)
    assert again is not None
    assert not again.resumed  # it came to its end


@pytest.mark.parametrize("why", ["the file was changed", "it is over a day old"])
def test_what_is_not_gone_on_with(tmp_path: Path, why: str) -> None:
    program(tmp_path, hangs=True)
    schedule, place = scheduled(tmp_path)
    started = _begun(tmp_path, place)
    started.terminate()
    started.communicate(timeout=LONGEST_S)
    tell(tmp_path)
    clock = None
    if why == "the file was changed":
        text = (tmp_path / "lab.yml").read_text()
        (tmp_path / "lab.yml").write_text(text + "repeats: 7\n")
        clock = datetime.now(UTC)
    else:
        clock = datetime.now(UTC) + timedelta(days=1, minutes=5)
    done = run_night(schedule, place, False, lambda: clock)
    assert done is not None
    assert not done.resumed


def test_a_killed_night_is_reported(tmp_path: Path) -> None:
    program(tmp_path)
    schedule, place = scheduled(tmp_path)
    nights = Nights(place.folder("quiet"))
    nights.add(Night(due=_at("2026-11-02T03:00:00"), began=_at("2026-11-02T03:00:00"), outcome="running"))
    status = _status(schedule, place, "2026-11-02T09:00:00")
    assert status.running is None
    assert any("killed" in problem for problem in status.problems)
    # cron's @reboot: the same night goes on
    done = run_night(schedule, place, True, _clock("2026-11-02T10:00:00"))
    assert done is not None
    assert done.due == _at("2026-11-02T03:00:00")
    assert _outcomes(place) == ["killed", "passed"]


def test_what_a_night_may_not_read(tmp_path: Path) -> None:
    program(tmp_path)
    schedule, place = scheduled(tmp_path)
    secrets = place.folder("quiet") / "environment"
    secrets.write_text("PLIMSOLL_PASSWORD=hush\n")
    secrets.chmod(0o644)
    done = run_night(schedule, place, True, _clock("2026-11-02T03:00:00"))
    assert done is not None
    assert (done.outcome, done.exit) == ("wrong", 2)
    assert "chmod 600" in done.said
    assert "hush" not in done.said
    assert any("chmod 600" in problem for problem in _status(schedule, place, "2026-11-02T04:00:00").problems)
    secrets.chmod(0o600)
    assert read_environment(secrets) == {"PLIMSOLL_PASSWORD": "hush"}


def test_what_the_experiment_gets() -> None:
    merged = environment({"PATH": "/usr/bin:/bin", "A": "1"}, {"A": "2", "B": "x=y"})
    assert merged["PATH"].split(":")[:2] == ["/usr/bin", "/bin"]
    assert "/usr/local/sbin" in merged["PATH"].split(":")
    assert (merged["A"], merged["B"]) == ("2", "x=y")


def test_lines_of_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "environment"
    path.write_text('# mine\n\nA=1 2 \nB="as it stands"\n')
    path.chmod(0o600)
    assert read_environment(path) == {"A": "1 2 ", "B": '"as it stands"'}
    path.write_text("export A=1\nsecret\n")
    with pytest.raises(Exception, match=r":1: must be NAME=VALUE(.|\n)*:2: must be") as raised:
        read_environment(path)
    assert "secret" not in str(raised.value).replace(str(path), "")


def test_overlaps_are_not_missed() -> None:
    ran = Night(due=_at("2026-11-02T03:00:00"), began=_at("2026-11-02T03:00:00"), outcome="passed")
    ran.ended = _at("2026-11-04T01:00:00")
    found = find_missed(
        [ran], parse_calendar("03:00"), UTC, _at("2026-11-01T12:00:00"), _at("2026-11-05T12:00:00")
    )
    assert [night.outcome for night in found] == ["skipped", "missed", "missed"]
    assert still_running([ran], _at("2026-11-04T01:00:00")) is None


def test_only_so_many_nights_are_kept(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    nights.add(*[Night(due=None, outcome="passed", said=str(i)) for i in range(500)])
    assert [nights.read()[i].said for i in (0, -1)] == ["100", "499"]
    assert json.loads(nights.path.read_text())["format"] == 1
