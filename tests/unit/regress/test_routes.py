"""`plimsoll regress`: a kind of requests that became slower while all requests together did not."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.comparable import regress, runs_of, write_night
from tests.support.rundir import change_records

# How many requests of each kind a run has, and what they take; one in a hundred of all takes 300 ms.
KINDS: dict[str, tuple[int, float]] = {
    "page": (200, 2.0),
    "image": (320, 0.5),
    "css-js": (150, 4.0),
    "article": (150, 6.0),
    "search": (120, 8.0),
    "feed": (60, 3.0),
}
QUIET = 16
Times = Mapping[str, float]
NOTHING: Times = {}


class Nights:
    """A history whose nights hardly vary; kinds of requests may be so many times as slow."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.history, self.sent = folder, folder / "history.sqlite", folder / "sent"
        self.number = 0

    def go_on(self, nights: int, times: Times = NOTHING, tail: float = 1.0, *options: str) -> list[int]:
        """Judge so many more nights, and return the exit codes."""
        return [self._night(times, tail, options) for _ in range(nights)]

    def _night(self, times: Times, tail: float, options: tuple[str, ...]) -> int:
        vary = 1 + 0.01 * (self.number % 3)
        night = write_night(self.folder, self.number, {"nvme": 300 * vary * tail}, count=1000, saturator=None)
        route = np.repeat(np.arange(len(KINDS)), [count for count, _ in KINDS.values()])
        ms = np.array([base * times.get(name, 1.0) for name, (_, base) in KINDS.items()])[route] * vary
        order = np.random.default_rng(1).permutation(1000)
        (run,) = runs_of(night)
        change_records(run, route=route[order], ttfb_us=0)
        fast = np.arange(1000) % 100 != 0
        change_records(run, fast, total_us=(1000 * ms[order])[fast])
        (run / "routes.json").write_text(json.dumps(list(KINDS)))
        self.number += 1
        notify = f"""sh -c 'cat >/dev/null; echo "$PLIMSOLL_SUBJECT" >>{self.sent}'"""
        result = regress(self.history, night, "--notify-command", notify, *options)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        return result.exit_code

    def told(self) -> dict[str, str]:
        """The state of each kind of requests that the last night has a row of."""
        series: list[dict[str, Any]] = self.document()["series"]
        return {
            each["metric"].removeprefix("route "): each["state"]
            for each in series
            if each["metric"].startswith("route ")
        }

    def document(self) -> dict[str, Any]:
        (found,) = json.loads(regress(self.history, "--json").stdout)["experiments"]
        return dict(found)

    def messages(self) -> list[str]:
        return self.sent.read_text().splitlines() if self.sent.exists() else []


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    nights = Nights(tmp_path_factory.mktemp("quiet"))
    assert set(nights.go_on(QUIET)) == {0}
    assert nights.told() == {}
    return nights


@pytest.fixture
def nights(quiet: Nights, tmp_path: Path) -> Nights:
    """A history of its own that had the quiet nights."""
    mine = Nights(tmp_path)
    shutil.copy(quiet.history, mine.history)
    mine.number = quiet.number
    return mine


ROWS: list[tuple[str, Times, float, set[str]]] = [
    ("nothing", {}, 1.0, set()),
    ("all requests together are faster", {}, 0.9, set()),
    ("a kind × 36, all together faster", {"page": 36}, 0.9, {"page"}),
    ("a kind × 1.5", {"css-js": 1.5}, 1.0, {"css-js"}),
    ("a kind × 1.08", {"article": 1.08}, 1.0, set()),
    ("a kind × 2, by half a millisecond", {"image": 2}, 1.0, set()),
    ("a kind with too few requests", {"feed": 36}, 1.0, set()),
    (
        "four kinds",
        {"page": 9, "css-js": 6, "article": 3, "search": 4},
        1.0,
        {"page", "css-js", "search"},
    ),
]


@pytest.mark.parametrize(("what", "times", "tail", "kinds"), ROWS, ids=[row[0] for row in ROWS])
def test_a_kind_of_requests_that_became_slower_is_told(
    nights: Nights, what: str, times: Times, tail: float, kinds: set[str]
) -> None:
    codes = nights.go_on(3, times, tail)
    assert codes == [0, 0, int(bool(kinds))], what
    assert nights.told() == dict.fromkeys(kinds, "news")
    assert len(nights.messages()) == bool(kinds)
    found = nights.document()
    tails = {each["metric"]: each["state"] for each in found["series"] if "route" not in each["metric"]}
    assert "news" not in tails.values(), "it is not what the series of all requests show"
    more = "replay on nvme: 1 more kind of requests moved as those above did"
    assert (more in found["notes"]) == (len(times) > 3)


def test_it_is_red_until_it_is_mended_and_told_once(nights: Nights) -> None:
    assert nights.go_on(5, {"page": 36}) == [0, 0, 1, 1, 1]
    assert nights.told() == {"page": "known"}
    text = regress(nights.history).stdout
    assert "still worse  replay on nvme, whole: p50 of page" in text
    assert " times as slow since" in text
    assert nights.go_on(3) == [1, 1, 0]
    assert nights.told() == {"page": "recovered"}
    assert nights.go_on(1) == [0]
    assert nights.told() == {}
    first, last = nights.messages()
    assert "worse: replay on nvme, whole: p50 of page 36.0 times as slow" in first
    assert "recovered" in last


def test_it_is_red_until_it_is_accepted(nights: Nights) -> None:
    nights.go_on(3, {"page": 36})
    assert regress(nights.history, "--accept", "--note", "pages are drawn anew").exit_code == 0
    assert nights.go_on(1, {"page": 36}) == [0]
    assert nights.told() == {}


def test_a_kind_that_is_gone_leaves_the_night_judged(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "page", (50, 2.0))
    monkeypatch.setitem(KINDS, "image", (470, 0.5))
    assert nights.go_on(1) == [0]
    assert nights.told() == {}
