"""What is not judged is never "nothing worse": however long ago, whatever the reason, until it is dropped."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.comparable import regress, write_night
from tests.support.programs import ROOT

LONG = 13  # nights: more than any look back that there was
NOTE = ["--note", "sold in October", "--by", "Ada"]


def history_of(folder: Path, nights: int = 3) -> Path:
    history = folder / "history.sqlite"
    for number in range(nights):
        night = write_night(folder / "results", number, {"nvme": 40, "sata": 90}, count=1000)
        assert regress(history, night).exit_code == 0
    return history


def codes_of(folder: Path, history: Path, **more: Any) -> list[int]:
    """The exit codes of many nights on two backends."""
    return [
        regress(
            history, write_night(folder / "results", 3 + number, {"nvme": 40, "sata": 90}, count=1000, **more)
        ).exit_code
        for number in range(LONG)
    ]


UNFIT = [
    ("every run is limited by the generator", {"generator_limited": True}),
    ("every run failed", {"status": "failed"}),
]


@pytest.mark.parametrize(("what", "facts"), UNFIT, ids=[row[0] for row in UNFIT])
def test_nights_without_a_fit_run_are_never_well(tmp_path: Path, what: str, facts: dict[str, Any]) -> None:
    history = history_of(tmp_path)
    assert set(codes_of(tmp_path, history, **facts)) == {3}, what
    result = regress(history)
    assert "CANNOT BE JUDGED" in result.output
    assert "the last was nightly-20260103T020000Z" in " ".join(result.output.split())


def test_a_history_that_never_had_a_fit_run_is_not_well(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    night = write_night(tmp_path, 0, {"nvme": 40}, generator_limited=True)
    result = regress(history, night)
    assert result.exit_code == 3
    assert "replay on nvme: there was never a figure" in " ".join(result.output.split())


def backend_gone(folder: Path, nights: int = LONG) -> Path:
    history = history_of(folder)
    codes = [
        regress(history, write_night(folder / "results", 3 + at, {"nvme": 40}, count=1000)).exit_code
        for at in range(nights)
    ]
    assert set(codes) == {3}
    return history


def test_a_backend_that_runs_no_more_is_named_until_it_is_dropped(tmp_path: Path) -> None:
    history = backend_gone(tmp_path)
    said = " ".join(regress(history).output.split())
    assert "replay on sata, during: p99: no figure tonight: did not run" in said
    assert "--drop 'replay on sata'" in said
    result = regress(history, "--drop", "sata", *NOTE)
    assert result.exit_code == 0
    shown = " ".join(regress(history).output.split())
    assert "decided: dropped sata" in shown
    assert "by Ada: sold in October" in shown
    assert "replay on sata" not in shown
    night = write_night(tmp_path / "results", 3 + LONG, {"nvme": 40}, count=1000)
    assert regress(history, night).exit_code == 0, "it stays dropped"


@pytest.mark.parametrize("name", ["sata", "replay on sata", "nightly"])
def test_it_is_dropped_by_any_of_its_names(tmp_path: Path, name: str) -> None:
    history = backend_gone(tmp_path, 1)
    assert regress(history, "--drop", name, *NOTE).exit_code == 0


def test_a_phase_is_dropped_by_the_name_of_its_series(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    assert regress(history, write_night(tmp_path, 0, {"nvme": 40})).exit_code == 0
    other = regress(history, write_night(tmp_path, 1, {"nvme": 40}, saturator=None))
    assert other.exit_code == 3, "the saturator is a part of the load"
    result = regress(history, "--accept", *NOTE)
    assert result.exit_code == 3, "now it is the load that is meant, without a part of what was judged"
    assert "--drop 'replay on nvme, during: p99.9'" in " ".join(result.output.split())
    assert regress(history, "--drop", "replay on nvme, during: p99.9", *NOTE).exit_code == 0


def test_what_was_dropped_and_runs_again_is_judged_again(tmp_path: Path) -> None:
    history = backend_gone(tmp_path, 1)
    assert regress(history, "--drop", "sata", *NOTE).exit_code == 0
    both = {"nvme": 40, "sata": 90}
    assert regress(history, write_night(tmp_path / "results", 4, both, count=1000)).exit_code == 0
    result = regress(history, write_night(tmp_path / "results", 5, {"nvme": 40}, count=1000))
    assert result.exit_code == 3


def test_a_name_that_is_none_cannot_be_dropped(tmp_path: Path) -> None:
    history = backend_gone(tmp_path, 1)
    result = regress(history, "--drop", "floppy", *NOTE)
    assert result.exit_code == 2
    assert "there is nothing of this name; there are: nightly, replay, nvme" in result.stderr
    assert json.loads(regress(history, "--json").stdout)["experiments"][0]["decisions"] == []


def test_an_old_history_is_stale_by_the_real_command(tmp_path: Path) -> None:
    history = history_of(tmp_path)
    words = [sys.executable, "-m", "plimsoll", "regress", "--history", str(history)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stdout.split())
    assert "nightly-20260103T020000Z is the newest night, and began" in said
    assert "more than 36 h (--stale-after)" in said


AGES = [
    ("a night that is due", "36h", timedelta(hours=35), 0),
    ("a night that is overdue", "36h", timedelta(hours=37), 3),
    ("a weekend", "4d", timedelta(hours=72), 0),
    ("a night of the future", "36h", -timedelta(days=3), 3),
]


@pytest.mark.parametrize(("what", "after", "age", "code"), AGES, ids=[row[0] for row in AGES])
def test_how_old_the_newest_night_may_be(
    tmp_path: Path, what: str, after: str, age: timedelta, code: int
) -> None:
    began = datetime.now(UTC) - age
    night = write_night(tmp_path, 0, {"nvme": 40}, started_at=f"{began:%Y-%m-%dT%H:%M:%S.%fZ}")
    assert regress(tmp_path / "history.sqlite", night, "--stale-after", after).exit_code == code, what


def test_a_stale_history_is_one_message(tmp_path: Path) -> None:
    history, out = history_of(tmp_path), tmp_path / "out"
    notify = ["--notify-command", f"""sh -c 'cat >/dev/null; echo "$PLIMSOLL_SUBJECT" >>{out}'"""]
    for _ in range(3):
        assert regress(history, "--stale-after", "36h", *notify).exit_code == 3
    assert len(out.read_text().splitlines()) == 1


@pytest.mark.parametrize("text", ["0h", "yesterday", "36", "-3h", "1e9d"])
def test_a_duration_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    result = regress(tmp_path / "history.sqlite", "--stale-after", text)
    assert result.exit_code == 2
    assert "such as 45m, 36h or 10d" in result.stderr


def test_an_experiment_that_is_dropped_is_not_stale(tmp_path: Path) -> None:
    history = history_of(tmp_path)
    result = regress(history, "--stale-after", "36h", "--drop", "nightly", *NOTE)
    assert result.exit_code == 0
    assert "dropped nightly" in result.output
