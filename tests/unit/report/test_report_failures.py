"""What a report says of runs in which requests failed: nothing that failed at once looks fast anywhere."""

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.report import make_report
from plimsoll.analysis.report.sections.headline import sentence
from plimsoll.cli import main
from tests.support.rundir import records, write_run

EVENTS = [
    {"t_ns": 3_000_000_000, "event": "zfs-send", "phase": "start"},
    {"t_ns": 9_000_000_000, "event": "zfs-send", "phase": "stop"},
]


def load(timeout_s: float | None) -> dict[str, Any]:
    settings = {} if timeout_s is None else {"timeout_s": timeout_s}
    return {"digest": "d", "settings": settings}


def failing(
    count: int = 12_000, every: int = 8, from_: int = 4000, error: int = 0, **columns: Any
) -> np.ndarray:
    """A server that refuses one request in `every` from some instant on, in 0.1 ms.

    With an `error` it does not even answer.
    """
    table = records(count, total_us=20_000, **columns)
    bad = (np.arange(count) >= from_) & (np.arange(count) % every == 0)
    table["status"][bad], table["total_us"][bad], table["error"][bad] = 0 if error else 503, 100, error
    return table


def text_of(made: Report) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", made.path.read_text(encoding="utf-8")))


def figures_of(made: Report) -> dict[str, Any]:
    page = made.path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)
    assert found
    return dict(json.loads(found.group(1)))


SENTENCES = [
    (
        "wrong answers",
        failing(),
        30.0,
        "8.33 % of requests failed: p99.9 is a wrong answer, and counts as 30 s.",
    ),
    ("of an older run", failing(), None, "8.33 % of requests failed: p99.9 is a wrong answer."),
    ("no answer", failing(error=1), 30.0, "8.33 % of requests failed: p99.9 is at least 30 s."),
    (
        "none, of an older run",
        failing(error=1),
        None,
        "8.33 % of requests failed: p99.9 is one of them, and how",
    ),
    ("few fail", failing(every=11_000), 30.0, "under 0.01 % of requests failed. The slowest request in a"),
    (
        "too few requests",
        failing(400, 8, 0),
        30.0,
        "12.5 % of requests failed: the slowest is a wrong answer, and counts as 30 s.",
    ),
    ("none fails", records(2000), 30.0, "The slowest request in a thousand took 1 ms or more."),
]


@pytest.mark.parametrize(("what", "table", "timeout_s", "says"), SENTENCES, ids=[row[0] for row in SENTENCES])
def test_the_headline_says_it_plainly(
    tmp_path: Path, what: str, table: np.ndarray, timeout_s: float | None, says: str
) -> None:
    made = make_report([write_run(tmp_path / "run", table, load=load(timeout_s))])
    assert sentence(made.runs[0]).startswith(says), what
    assert says in text_of(made)


def test_headline_tables_charts_and_json_agree(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", failing(), load=load(30))
    done = CliRunner().invoke(main, ["report", str(run)])
    assert "1,000 failed, p50 20 ms, p99 wrong answer, p99.9 wrong answer, max wrong answer" in done.stdout
    made = make_report([run])
    text = text_of(made)
    cells = re.findall(r"<td[^>]*>wrong answer</td>", made.path.read_text(encoding="utf-8"))
    assert len(cells) == 16, "two times from p95 on, the route and the total from p99 on"
    assert "≥ 30" not in text
    assert "1,000 requests of 12,000 failed (8.33 %): 1,000 wrong answers. They count as 30 s" in text
    figures = figures_of(made)
    points = next(trace for trace in figures["tail"]["data"] if trace["name"] == "p99.9")
    assert set(points["y"]) == {20.0, 30_000.0}
    assert [s == "triangle-up" for s in points["marker"]["symbol"]] == [y == 30_000 for y in points["y"]]
    assert any("p99.9 <b>wrong answer</b>" in hover for hover in points["hovertext"])
    assert any("the slowest: wrong answer" in hover for hover in figures["tail"]["data"][0]["hovertext"])
    assert "1,000 wrong answers (8.33 %) came: each stands at its time-out." in text
    curve = next(trace for trace in figures["percentiles"]["data"] if trace["name"] == "response")
    assert max(curve["y"]) == 30_000
    assert min(y for y in figures["heat-0"]["data"][0]["y"]) > 10, "no refusal is drawn as fast"
    said = json.loads(CliRunner().invoke(main, ["report", "--json", str(run)]).stdout)["runs"][0]
    assert said["response_ms"]["p99.9"] is None
    assert said["response_ms"]["censored"]["p99.9"] == 30_000
    assert said["total"]["response_ms"]["censored"]["p99"] == 30_000
    assert said["requests"]["failures"] == said["total"]["failures"] == 1000


def test_what_has_no_time_out_is_drawn_nowhere(tmp_path: Path) -> None:
    made = make_report([write_run(tmp_path / "run", failing(), load=None)])
    text, figures = text_of(made), figures_of(made)
    assert "slower than every answer, and not drawn, since their time-out is not known" in text
    drawn = [y for key in ("tail", "percentiles") for trace in figures[key]["data"] for y in trace["y"] if y]
    assert set(drawn) == {20.0}
    assert not any(trace["name"] == "average line" for trace in figures["tail"]["data"])


def test_a_run_of_nothing_but_failures_has_a_report(tmp_path: Path) -> None:
    for number, timeout_s in enumerate((None, 30.0)):
        table = records(3000, error=1, status=0, ttfb_us=0)
        made = make_report([write_run(tmp_path / f"{number}", table, load=load(timeout_s), events=EVENTS)])
        assert "100 % of requests failed" in text_of(made)


def test_a_backend_that_dies_is_not_the_fast_one(tmp_path: Path) -> None:
    """A server that was killed: 36 ms on one, and 1.49 ms on two, which was the dead one."""
    dead = records(12_000, total_us=20_000)
    dead["error"][4000:], dead["total_us"][4000:] = 1, 100
    tables = {"one": records(12_000, total_us=36_000), "two": dead}
    for name, table in tables.items():
        for repeat in (1, 2):
            facts: dict[str, Any] = {"backend": name, "repeat": repeat, "load": load(30)}
            write_run(tmp_path / "runs" / f"{name}{repeat}", table, events=EVENTS, **facts)
    made = make_report([tmp_path / "runs"])
    text = text_of(made)
    assert (
        "While zfs send ran, the slowest request in a thousand failed on two (at least 30 s), "
        "and took 36 ms on one"
    ) in text
    (compared,) = made.compared
    two = next(each for each in compared.backends if each.backend.name == "two")
    assert two.phases["during"].response_ms.censored["p99.9"] == 30_000
    assert two.ratios == {"p50": None, "p99": None, "p99.9": None}
    said = made.as_json()["phases"][0]["backends"][1]  # type: ignore[index]
    assert said["phases"]["during"]["response_ms"] == {
        "p50": None,
        "p99": None,
        "p99.9": None,
        "censored": {"p50": 30_000, "p99": 30_000, "p99.9": 30_000},
    }
    figures = figures_of(made)
    for key in ("scatter-0", "repeats-0"):
        of_two = [t for t in figures[key]["data"] if t["name"] == "two" and t["mode"] == "markers"]
        assert max(y for trace in of_two for y in trace["y"]) == 30_000, key
    assert "An arrow is a failure, at its time-out" in text
    assert "A triangle is a failure, at its time-out" in text


def test_repeats_whose_time_out_is_not_known_make_no_median_faster(tmp_path: Path) -> None:
    for repeat in (1, 2, 3):
        table = records(3000, total_us=36_000)
        if repeat > 1:
            table["error"][1000:] = 1
        write_run(tmp_path / f"r{repeat}", table, backend="two", repeat=repeat)
    made = make_report([tmp_path])
    bars = [t for t in figures_of(made)["repeats-0"]["data"] if t["mode"] == "lines"]
    assert [y for trace in bars for y in trace["y"] if y] == []
    assert "2 figures are failures of unknown time-out: above all others, and not drawn." in text_of(made)
