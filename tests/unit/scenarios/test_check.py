"""The side door through which the lab checks scenarios' settings: a process of its own, JSON in and out."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from plimsoll.scenarios import MODULES
from plimsoll.scenarios.check import main, problems
from tests.support.programs import ROOT

URL = "http://127.0.0.1:8080"


def asked(text: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "plimsoll.scenarios.check", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.parametrize(
    ("name", "given", "keys", "why"),
    [
        ("download", {"target": URL}, [], "nothing more is needed"),
        ("download", {"target": URL, "duration_s": 40, "path": "/x"}, [], "numbers are numbers"),
        ("visitors", {"target": URL, "duration_s": 40, "rate": 2.5}, [], "visitors have a duration too"),
        ("download", {}, ["target"], "the target is missing"),
        ("download", {"target": "x", "users": 0, "saves": 1}, ["target", "users", "saves"], "all at once"),
        ("browser", {"target": URL, "iterations": 1, "duration_s": 1}, ["duration_s"], "one of the two"),
        ("upgrade-xenforo", {"target": URL, "ssh_key": "k"}, ["ssh"], "one setting needs another"),
        ("upgrade-wordpress", {"target": URL, "duration_s": 5}, ["duration_s"], "is done once, and whole"),
        ("save-artcle", {}, ["scenario"], "there is no such scenario"),
    ],
)
def test_what_is_wrong_is_said_by_key(name: str, given: dict[str, Any], keys: list[str], why: str) -> None:
    found = problems(name, given)
    assert sorted(problem["key"] for problem in found) == sorted(keys), why
    assert all(problem["problem"] and not problem["problem"].startswith("--") for problem in found)


def test_the_answer_is_json(tmp_path: Path) -> None:
    right = asked(json.dumps({"target": URL, "out": str(tmp_path / "results")}), "download")
    assert (right.returncode, json.loads(right.stdout)) == (0, [])
    assert not (tmp_path / "results").exists(), "nothing is begun"
    idle = asked(json.dumps({"target": URL, "stages": "9s:1"}), "visitors")
    assert (idle.returncode, [each["key"] for each in json.loads(idle.stdout)]) == (1, ["stages"])
    wrong = asked("{}", "nonsense")
    assert wrong.returncode == 1
    assert json.loads(wrong.stdout)[0]["key"] == "scenario"


@pytest.mark.parametrize(
    ("text", "arguments"),
    [("{", ["download"]), ("[]", ["download"]), ("{}", []), ('[{"scenario": "download"}]', [])],
)
def test_what_is_no_question_is_refused_without_a_trace(
    text: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["check", *arguments])
    monkeypatch.setattr(sys, "stdin", StringIO(text))
    with pytest.raises(SystemExit) as refused:
        main()
    assert (refused.value.code, capsys.readouterr().out) == (2, "")


def test_many_questions_have_one_answer_which_says_what_each_scenario_changes_and_its_keys() -> None:
    questions = [
        {"scenario": "download", "settings": {"target": URL}, "duration_s": 40},
        {"scenario": "download", "settings": {"users": 0}},
        {"scenario": "save-artcle", "settings": {}},
    ]
    answer = asked(json.dumps(questions))
    assert answer.returncode == 1
    told = json.loads(answer.stdout)
    assert [sorted(one["key"] for one in each) for each in told["problems"]] == [
        [],
        ["target", "users"],
        ["scenario"],
    ]
    described = told["scenarios"]
    assert list(described) == list(MODULES)
    assert described["download"]["changes"] is None
    assert described["save-article"]["changes"]
    assert "duration_s" in described["download"]["keys"]
    assert json.loads(asked("[]").stdout) == {"scenarios": described, "problems": [], "idle": []}
