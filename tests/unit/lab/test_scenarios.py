"""What scenarios say of lab.yml: their options and traits; an error where one does not answer in time."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from plimsoll.common.errors import SettingsError
from plimsoll.lab.experiment import scenarios
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.problems import read_lab
from plimsoll.lab.experiment.scenarios import ScenarioTraits, prepare_members, read_traits
from tests.support.programs import ROOT

_answer = scenarios._answer


def _lab(**options: object) -> Lab:
    return Lab.model_validate(
        {
            "name": "slow",
            "backends": [{"name": "a", "clone": {"driver": "static", "target": "http://127.0.0.1"}}],
            "scenarios": [
                {
                    "name": "rush-hour",
                    "together": [
                        {"scenario": "upload-images", "options": options},
                        {"scenario": "replay", "options": {"log": "a.log"}},
                    ],
                }
            ],
        }
    )


EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.yml")) if "\nbackends:" in path.read_text()]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_each_scenario_of_an_example_has_traits(path: Path) -> None:
    lab = read_lab(path)
    assert read_traits(lab, str(path)).keys() == {
        *(choice.called for choice in lab.scenarios),
        *(choice.called_in_full(member) for choice in lab.scenarios for member in choice.members),
    }


def test_options_of_members_are_checked_by_their_scenarios() -> None:
    lab = _lab()
    lab.scenarios[0].together[0].options["savs"] = 3
    with pytest.raises(SettingsError, match=r"scenarios\.0\.together\.0\.options\.savs: is not a setting"):
        read_traits(lab, "lab.yml")


def test_a_run_changes_the_site_if_any_member_does() -> None:
    assert read_traits(_lab(), "lab.yml") == {
        "rush-hour/upload-images": ScenarioTraits(changes=True, timed=True),
        "rush-hour/replay": ScenarioTraits(changes=False, timed=True),
        "rush-hour": ScenarioTraits(changes=True, timed=True),
    }


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Python that does not answer, and the number of a helper that it started."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nsleep 600 &\necho $! >{tmp_path}/helper\nwait\n")
    program.chmod(0o755)
    monkeypatch.setattr(scenarios, "_known", {})
    monkeypatch.setattr(scenarios, "_answer", _answer)
    monkeypatch.setattr(sys, "executable", str(program))
    return tmp_path / "helper"


def test_photographs_are_made_before_there_is_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    prepare_members(_lab(iterations=1), lambda _: None)
    (made,) = tmp_path.rglob("*.jpg")
    assert made.stat().st_size > 1_000_000


def test_photographs_that_take_too_long(slow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "_PREPARE_S", 1.0)
    with pytest.raises(
        SettingsError, match=r"^rush-hour/upload-images: .* not made within 1 s: run this again"
    ):
        prepare_members(_lab(), lambda _: None)
    helper = Path(f"/proc/{slow.read_text().strip()}")
    until_s = time.monotonic() + 30
    while helper.exists() and "Z" not in (helper / "stat").read_text().split()[2]:
        assert time.monotonic() < until_s, "a helper goes on"
        time.sleep(0.05)


def test_scenarios_that_do_not_answer(slow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "_CHECK_S", 1.0)
    with pytest.raises(
        SettingsError, match="cannot be checked: no answer within 1 s: is this machine too busy"
    ):
        read_traits(_lab(), "lab.yml")


def test_a_replay_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def never(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired(["replay"], 60)

    monkeypatch.setattr(subprocess, "run", never)
    (tmp_path / "replay").touch()
    monkeypatch.setattr(scenarios, "replay_program", lambda: str(tmp_path / "replay"))
    assert any(
        "does not answer --help within 60 s: build it again" in one
        for one in scenarios.find_problems_here(_lab())
    )
