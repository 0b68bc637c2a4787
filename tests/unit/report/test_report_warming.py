"""The warm-up curve of a report: p99.9 and hits of the cache, by minute after a start."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.report import make_report
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.analysis.statistics.windows import Timeline, minutes_of
from tests.support.rundir import change, records, write_run
from tests.unit.report.test_comparison import figures_of, text_of

A_MINUTE = 1500  # requests
SLOW_MS = {"sata": (400, 90, 30), "nvme": (40, 9, 3)}  # the slowest, minute by minute
STORAGE = {"clone": {"driver": "compose"}, "cache": {"state": "cold", "how": ["drop the page cache"]}}


def write_warming(folder: Path, storage: dict[str, Any], arc: bool = False, minutes: int = 3) -> Path:
    """Two runs on each of two backends, of three minutes, which get faster."""
    for number, (backend, repeat) in enumerate((b, r) for r in (1, 2) for b in SLOW_MS):
        count = A_MINUTE * minutes
        table = records(count, due_ns=(np.arange(count) + 0.5) * 60e9 / A_MINUTE)
        for minute in range(minutes):
            table["total_us"][minute * A_MINUTE : minute * A_MINUTE + 5] = (
                SLOW_MS[backend][minute] * 1000 * repeat
            )
        path = folder / f"{number}-{backend}"
        summary = {"requests": {"total": count, "sent": count}, "duration_s": 60.0 * minutes}
        write_run(path, table, summary=summary, backend=backend, repeat=repeat, storage=storage)
        if arc:
            rows = [f"{second}000000000,{30 + second // 60 * 20}" for second in range(60 * minutes)]
            rows[3] = "3000000000,"
            (path / "host.csv").write_text("\n".join(["t_ns,arcstats.hit_percent", *rows]) + "\n")
    return folder


def test_each_backend_has_the_medians_of_its_runs_by_minute(tmp_path: Path) -> None:
    made = make_report([write_warming(tmp_path, STORAGE)])
    figure = figures_of(made)["warming-0"]
    curves = {trace["name"]: (trace["x"], trace["y"]) for trace in figure["data"]}
    assert curves == {
        "sata": ([1, 2, 3], [600, 135, 45]),
        "nvme": ([1, 2, 3], [60, 13.5, 4.5]),
    }
    assert "the median of 2 runs" in figure["data"][0]["hovertext"][0]
    assert figure["layout"]["yaxis"]["type"] == "log"
    assert "yaxis2" not in figure["layout"], "nobody knows of a cache"
    assert "Warming up: p99.9 by minute after a start" in text_of(made)
    assert "Caches at the start: cold." in text_of(made)


def test_hits_of_the_arc_stand_below(tmp_path: Path) -> None:
    figure = figures_of(make_report([write_warming(tmp_path, STORAGE, arc=True)]))["warming-0"]
    below = [trace for trace in figure["data"] if trace.get("yaxis") == "y2"]
    assert [(trace["x"], trace["y"]) for trace in below] == 2 * [([1, 2, 3], [30, 50, 70])]
    assert not any(trace["showlegend"] for trace in below)


NONE = [
    ("runs that no lab started", {}, {}),
    ("an experiment of an older version", {"clone": {"driver": "compose"}}, {}),
    ("a run of one minute is no curve", STORAGE, {"minutes": 1}),
]


@pytest.mark.parametrize(("storage", "more"), [row[1:] for row in NONE], ids=[row[0] for row in NONE])
def test_there_is_none(storage: dict[str, Any], more: dict[str, Any], tmp_path: Path) -> None:
    assert "warming-0" not in figures_of(make_report([write_warming(tmp_path, storage, **more)]))


def test_a_state_that_says_something_else_is_harmless(tmp_path: Path) -> None:
    folder = write_warming(tmp_path, STORAGE)
    change(folder / "0-sata", storage={"cache": {"state": "<script>x", "how": ["<b>"]}})
    assert "<script>x" not in text_of(make_report([folder]))


def timeline_of(due_s: list[float], took_ms: list[float]) -> Timeline:
    timeline = Timeline()
    due_ns, took_us = [round(s * 1e9) for s in due_s], [round(ms * 1000) for ms in took_ms]
    timeline.add(CountedRequests(records(len(due_s), due_ns=due_ns, lag_us=0, total_us=took_us), None))
    return timeline


def test_minutes_are_cut_by_the_instant_that_a_request_was_due() -> None:
    found = minutes_of(timeline_of([0, 59.99, 60, 61, 190], [1, 2, 3, 4, 5]))
    assert [minute.n for minute in found] == [2, 2, 0, 1], "one without a request is there too"
    assert [minute.max_ms for minute in found] == [2, 4, None, 5]
    assert [minute.p999_ms for minute in found] == [None] * 4, "too few"


def test_a_run_of_days_has_none() -> None:
    assert minutes_of(timeline_of([0, 86_400 * 3], [1, 1])) == []
