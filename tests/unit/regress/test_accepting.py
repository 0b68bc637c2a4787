"""Red until it is mended or accepted: in exit code, text, JUnit, Markdown, page and JSON alike."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.support.comparable import regress, write_night

NOTE = "the new kernel costs that much"
STEP = 16  # the first slow night


class Nights:
    """A history of one backend, night by night, whose figures hardly vary."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.history, self.out = folder, folder / "history.sqlite", folder / "sent"
        self.number = 0

    def go_on(self, nights: int, times: float = 1.0, *options: str) -> list[int]:
        """Judge so many more nights, so many times as slow, and return the exit codes."""
        return [self._night(times, options) for _ in range(nights)]

    def _night(self, times: float, options: tuple[str, ...]) -> int:
        tails = {"nvme": (50 + self.number % 3) * times}
        night = write_night(self.folder, self.number, tails, count=1000)
        self.number += 1
        notify = f"""sh -c 'cat >/dev/null; echo "$PLIMSOLL_SUBJECT" >>{self.out}'"""
        return regress(self.history, night, "--notify-command", notify, *options).exit_code

    def sent(self) -> list[str]:
        return self.out.read_text().splitlines() if self.out.exists() else []

    def all_outputs(self, *options: str) -> dict[str, str]:
        """The last night in every form that there is, and its exit code."""
        files = {name: self.folder / name for name in ("junit", "markdown", "html")}
        words = [word for name, path in files.items() for word in (f"--{name}", str(path))]
        text = regress(self.history, *words, *options)
        document = regress(self.history, "--json", *options)
        assert text.exit_code == document.exit_code
        return {
            "text": " ".join(text.stdout.split()),
            "json": document.stdout,
            "code": str(text.exit_code),
            **{name: path.read_text() for name, path in files.items()},
        }


@pytest.fixture
def slower(tmp_path: Path) -> Nights:
    """Three nights after the one that reported a regression."""
    nights = Nights(tmp_path)
    assert set(nights.go_on(STEP)) == {0}
    codes = nights.go_on(6, 1.5)
    assert codes == [0, 0, 1, 1, 1, 1]
    return nights


def test_a_known_regression_is_red_everywhere(slower: Nights) -> None:
    shown = slower.all_outputs()
    assert shown["code"] == "1"
    assert shown["text"].startswith("WORSE: nightly")
    assert "still worse replay on nvme, whole: p99.9" in shown["text"]
    assert "# Plimsoll: worse" in shown["markdown"]
    assert '<span class="verdict FAIL">worse</span>' in shown["html"]
    failures = ET.fromstring(shown["junit"]).findall("testsuite/testcase/failure")  # noqa: S314 our own
    assert failures
    assert "50 % slower since nightly-20260117T020000Z, reported before" in str(failures[0].get("message"))
    (experiment,) = json.loads(shown["json"])["experiments"]
    assert experiment["verdict"] == "worse"
    assert {each["state"] for each in experiment["series"] if each["fails"]} == {"known"}
    assert len(slower.sent()) == 1, "it is told once all the same"


def test_told_once_is_how_it_was(slower: Nights) -> None:
    shown = slower.all_outputs("--tell-once")
    assert shown["code"] == "0"
    assert "still worse" in shown["text"]
    assert "<failure" not in shown["junit"]
    assert json.loads(shown["json"])["verdict"] == "steady"


def test_what_is_accepted_is_red_no_more_and_says_why_and_who(slower: Nights) -> None:
    assert regress(slower.history, "--accept", "--note", NOTE, "--by", "Ada").exit_code == 0
    for later in (0, 3):
        slower.go_on(later, 1.5)
        shown = slower.all_outputs()
        assert shown["code"] == "0"
        assert "<failure" not in shown["junit"]
        assert re.search(
            r"decided: accepted replay on nvme since nightly-20260117T020000Z, \S+ by Ada: "
            "the new kernel costs that much",
            shown["text"],
        )
        for name in ("markdown", "html"):
            assert NOTE in shown[name]
            assert "Ada" in shown[name]
        (decision,) = json.loads(shown["json"])["experiments"][0]["decisions"]
        assert (decision["kind"], decision["by"], decision["note"]) == ("accept", "Ada", NOTE)


def test_who_accepts_is_the_login_unless_said(slower: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    document = json.loads(regress(slower.history, "--accept", "--note", NOTE, "--json").stdout)
    assert document["experiments"][0]["decisions"][0]["by"] == "grace"


WRONG = [
    ("nobody says why", ["--accept"], "--note TEXT"),
    ("the reason is empty", ["--accept", "--note", " "], "--note TEXT"),
    ("a reason for nothing", ["--note", NOTE], "--note: belongs to --accept"),
    ("a name for nothing", ["--by", "Ada"], "--by: belongs to --accept"),
    ("dropping without a reason", ["--drop", "nvme"], "--note TEXT"),
]


@pytest.mark.parametrize(("what", "options", "says"), WRONG, ids=[row[0] for row in WRONG])
def test_a_decision_has_a_reason(tmp_path: Path, what: str, options: list[str], says: str) -> None:
    result = regress(tmp_path / "history.sqlite", *options)
    assert result.exit_code == 2, what
    assert says in result.stderr


def test_accepting_where_nothing_was_reported_says_so(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    nights.go_on(1)
    result = regress(nights.history, "--accept", "--note", NOTE)
    assert (result.exit_code, "nothing was reported" in result.stderr) == (0, True)
    assert json.loads(regress(nights.history, "--json").stdout)["experiments"][0]["decisions"] == []


def test_what_is_mended_is_told_once_and_a_return_anew(slower: Nights) -> None:
    codes = slower.go_on(3)
    assert codes[0] == 1, "a night that is better is no mend yet"
    assert codes[-1] == 0
    shown = slower.all_outputs()
    says = "as before since nightly-20260123T020000Z; was 50 % slower since nightly-20260117T020000Z"
    for name in ("text", "html", "junit", "json"):
        assert says in shown[name], name
    assert "**recovered**" in shown["markdown"]
    assert "recovered replay on nvme, whole: p99.9" in shown["text"]
    assert slower.sent()[1:] == [f"nightly recovered: replay on nvme, whole: p99.9 {says}"]
    assert set(slower.go_on(3)) == {0}
    assert "recovered" not in slower.all_outputs()["text"]
    assert slower.go_on(4, 1.5) == [0, 0, 1, 1]
    assert len(slower.sent()) == 3, "worse, recovered, worse"


def test_what_is_mended_in_part_stays_red(slower: Nights) -> None:
    assert set(slower.go_on(6, 1.25)) == {1}
    assert "still worse" in slower.all_outputs()["text"] or "better" in slower.all_outputs()["text"]


def test_the_same_night_again_finds_the_same_mend(slower: Nights) -> None:
    slower.go_on(3)
    assert slower.all_outputs() == slower.all_outputs()
    assert len(slower.sent()) == 2
