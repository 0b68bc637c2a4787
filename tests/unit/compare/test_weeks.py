"""`plimsoll compare` of imported access logs: weeks before a move against weeks after it."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from plimsoll.analysis.evidence.weeks import CLAIM
from plimsoll.cli import main
from tests.support.rundir import DAY_NS, IMAGE, MONDAY, day, even_requests, write_imported, write_run

BEFORE, AFTER = MONDAY, day(28)
UNREAD = [{"path": "access.log", "lines": 1000, "valid": 900, "failed": 100}]


def compare(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, words)])


def sides(folder: Path, days: int, images: float, factor: float, **facts: Any) -> tuple[Path, Path]:
    before = write_imported(folder / "before", BEFORE, even_requests(days, 0.5, 1.0, 1))
    return before, write_imported(folder / "after", AFTER, even_requests(days, images, factor, 2), **facts)


@pytest.mark.parametrize(
    ("why", "days", "images", "factor", "code", "verdict"),
    [
        ("the same server, another mix of requests", 14, 0.1, 1.0, 0, "PASS"),
        ("half as slow again, hidden behind many images", 14, 0.9, 1.5, 1, "FAIL"),
        ("at the limit", 14, 0.5, 1.1, 3, "INCONCLUSIVE"),
        ("a week is too little for a verdict", 7, 0.5, 1.0, 3, "INCONCLUSIVE"),
    ],
)
def test_verdicts(
    why: str, days: int, images: float, factor: float, code: int, verdict: str, tmp_path: Path
) -> None:
    result = compare(*sides(tmp_path, days, images, factor), "--json")
    assert result.exit_code == code, why + result.output
    found = json.loads(result.output)
    assert (found["verdict"], found["kind"]) == (verdict, "accesslogs"), why
    for name in ("p50", "p99"):
        assert found["ratios"][name]["estimate"] == pytest.approx(factor, rel=0.08)
    assert found["claim"] == CLAIM
    if days < 14:
        assert "before has 7 days; a verdict takes 14" in found["reasons"][0]


def test_the_text_says_what_is_compared_and_what_it_does_not_claim(tmp_path: Path) -> None:
    result = compare(*sides(tmp_path, 14, 0.1, 1.0))
    assert result.output.startswith("PASS: after against before, from access logs\n")
    for words in ("p99.9", "67,200 requests of 14 days", "in the 336 cells", "were not an experiment"):
        assert words in result.output


@pytest.mark.parametrize(
    ("why", "facts", "says"),
    [
        (
            "a log that was read in another way",
            {"log_format": "G"},
            "not read in the same way: log_format differs",
        ),
        ("an import that was cut off", {"status": "interrupted"}, "was interrupted. Import its log again"),
        ("the same days", {"started_at": f"{BEFORE:%Y-%m-%dT%H:%M:%S.%fZ}"}, "requests of the same days"),
        (
            "durations of whole seconds",
            {"scenario_settings": {"durations_multiple_of_us": 1e6}},
            "are multiples of 1 s, too coarse for a p99 as short",
        ),
        ("another site", {"routes": ["blog", "shop"]}, "Only 0 % of the requests of before have their like"),
    ],
)
def test_what_forbids_a_verdict(why: str, facts: dict[str, Any], says: str, tmp_path: Path) -> None:
    result = compare(*sides(tmp_path, 14, 0.5, 1.0, **facts))
    assert result.exit_code == 3, why
    assert says in " ".join(result.output.split()), result.output


def test_more_failures_forbid_a_verdict(tmp_path: Path) -> None:
    before = write_imported(tmp_path / "before", BEFORE, even_requests(14, 0.5, 1.0, 1))
    after = write_imported(tmp_path / "after", AFTER, even_requests(14, 0.5, 0.5, 2, failures=0.02))
    result = compare(before, after)
    assert result.exit_code == 3
    assert "of the requests of after failed" in result.output
    assert "No p99 can be given:" in result.output


def test_a_tail_that_is_missing_from_a_log_forbids_a_pass(tmp_path: Path) -> None:
    """Times are 1.3 as long, and what took over 0.6 s was not logged: fewer requests, and a hard edge."""
    before = write_imported(tmp_path / "before", BEFORE, even_requests(14, 0.5, 1.0, 1))
    slower = even_requests(14, 0.5, 1.3, 2)
    whole = write_imported(tmp_path / "whole", AFTER, slower)
    assert json.loads(compare(before, whole, "--json").output)["verdict"] == "FAIL", "without the fault"
    after = write_imported(tmp_path / "after", AFTER, slower[slower["total_us"] < 250_000])
    found = json.loads(compare(before, after, "--json").output)
    assert found["verdict"] == "INCONCLUSIVE"
    assert found["ratios"]["p99.9"]["upper"] < 1.1, "it would pass"
    assert found["reasons"][0].startswith("The log of after has no request over 250 ms")
    same = json.loads(compare(*sides(tmp_path / "same", 14, 0.5, 1.0), "--json").output)
    assert (same["verdict"], same["doubts"]) == ("PASS", []), "a whole tail has no edge"


def test_requests_that_no_longer_reach_the_log_are_doubts(tmp_path: Path) -> None:
    before, after = even_requests(14, 0.5, 1.0, 1), even_requests(14, 0.5, 1.0, 2)
    images = np.flatnonzero(after["route"] == IMAGE)
    paths = (
        write_imported(tmp_path / "before", BEFORE, before),
        write_imported(tmp_path / "after", AFTER, np.delete(after, images[::5])),
        write_imported(tmp_path / "cached", AFTER, np.delete(after, images[images % 3 > 0])),
    )
    for path, says in (
        (paths[1], ["what is missing may be"]),
        (paths[2], ["what is missing", "A cache in front"]),
    ):
        found = json.loads(compare(paths[0], path, "--json").output)
        assert found["verdict"] == "PASS"
        assert len(found["doubts"]) == len(says)
        assert all(words in doubt for words, doubt in zip(says, found["doubts"], strict=True))


ALIKE = [
    ("nothing is wrong", 14, None, {}, set()),
    ("the slow end is cut off", 14, 250_000, {}, {"cut-tail"}),
    ("a week is too little", 7, None, {}, {"unlike-logs"}),
    ("lines that could not be read", 14, None, {"logs": UNREAD}, {"unread-log"}),
    ("an import that was cut off", 14, None, {"status": "interrupted"}, {"incomplete"}),
]


@pytest.mark.parametrize(("what", "days", "longest_us", "facts", "names"), ALIKE, ids=[r[0] for r in ALIKE])
def test_a_report_on_the_same_imports_says_the_same(
    what: str, days: int, longest_us: int | None, facts: dict[str, Any], names: set[str], tmp_path: Path
) -> None:
    after = even_requests(days, 0.5, 1.3, 2)
    paths = (
        write_imported(tmp_path / "before", BEFORE, even_requests(days, 0.5, 1.0, 1)),
        write_imported(
            tmp_path / "after", AFTER, after[after["total_us"] < (longest_us or 1 << 31)], **facts
        ),
    )
    compared = json.loads(compare(*paths, "--json").output)
    made = CliRunner().invoke(main, ["report", *map(str, paths), "--json"])
    report = json.loads(made.stdout)
    (weeks,) = report["weeks"]
    for side in ("baseline", "candidate", "cells", "claim", "confidence"):
        assert weeks[side] == compared[side]
    for name, ratio in weeks["ratios"].items():
        assert ratio == {key: compared["ratios"][name][key] for key in ratio}
    found = {each["name"]: each for each in compared["findings"]}
    assert found.keys() == names | {"from-log"}
    assert "answers" not in report, "one figure, not two"
    said = [*report["findings"], *(each for run in report["runs"] for each in run["findings"])]
    named = {each["name"]: each for each in said if each["name"] not in ("warn", "bad", "note")}
    assert named.keys() == found.keys()
    for name, each in found.items():
        words = (
            each["text"].replace("run ", "The run ", 1) if each["text"].startswith("run ") else each["text"]
        )
        assert (named[name]["text"], named[name]["remedy"]) == (words, each["remedy"])
    page = (paths[0] / "report.html").read_text()
    for shown in (CLAIM, *(f"{ratio['estimate']:.2f}" for ratio in weeks["ratios"].values())):
        assert shown in page


def test_several_runs_of_a_side_are_its_weeks_and_routes_go_by_name(tmp_path: Path) -> None:
    """The second week of `before` numbers its routes the other way round."""
    first, second = even_requests(7, 0.5, 1.0, 1), even_requests(7, 0.5, 1.0, 3)
    second["route"] = 1 - second["route"]
    write_imported(tmp_path / "before", BEFORE, first)
    later = write_imported(
        tmp_path / "x", BEFORE + timedelta(days=7), second, routes=["image", "page"], backend="before"
    )
    (later / "run").rename(tmp_path / "before" / "later")
    after = write_imported(tmp_path / "after", AFTER, even_requests(14, 0.2, 1.0, 2))
    result = compare(tmp_path / "before", after, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["baseline"]["days"] == 14


def test_hours_are_those_of_a_time_zone_whose_clocks_change(tmp_path: Path) -> None:
    """Pages at Berlin's noon and images else, before and after its clocks went back: by UTC few are alike."""
    before, after = even_requests(14, 0.5, 1.0, 1), even_requests(14, 0.5, 1.0, 2)
    for requests, ahead in ((before, 2), (after, 1)):
        requests["route"] = (requests["due_ns"] // (DAY_NS // 24) + ahead) % 24 != 12
    paths = (
        write_imported(tmp_path / "before", BEFORE, before),
        write_imported(tmp_path / "after", AFTER, after),
    )
    for words, cells in (((), 154), (("--time-zone", "Europe/Berlin"), 168)):
        found = json.loads(compare(*paths, "--json", *words).output)
        assert found["cells"] == cells, found["reasons"]


def test_there_is_no_such_zone(tmp_path: Path) -> None:
    result = compare(*sides(tmp_path, 1, 0.5, 1.0), "--time-zone", "Mars/Olympus")
    assert result.exit_code == 2
    assert "Mars/Olympus is not a time zone" in result.output


def test_gates_and_a_page_are_not_for_logs(tmp_path: Path) -> None:
    result = compare(*sides(tmp_path, 1, 0.5, 1.0), "--html", tmp_path / "page.html")
    assert result.exit_code == 2
    assert "without --gates, --planned, --html, --junit and --markdown" in result.output


def test_a_log_and_a_load_test_are_not_of_one_load(tmp_path: Path) -> None:
    log = write_imported(tmp_path / "log", BEFORE, even_requests(1, 0.5, 1.0, 1), scenario="replay")
    replay = write_run(tmp_path / "replay" / "run", even_requests(1, 0.5, 1.0, 2), backend="b").parent
    result = compare(log, replay)
    assert result.exit_code == 3
    for words in ("is not a load test", "are not of one load"):
        assert words in " ".join(result.output.split())
