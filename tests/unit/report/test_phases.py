"""Measures by phase, backends with too few requests, and the curve of a cache that warms up."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.summary import outcome_lines, summarise
from plimsoll.analysis.page.chart import MISSING
from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.report.report import report
from plimsoll.analysis.report.sections.phases import medians_of
from plimsoll.analysis.statistics.measures import began_ns, measured_steps, measures_by_phase
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.analysis.statistics.windows import PhaseWindow, Timeline, line_of, minutes_of
from plimsoll.rundir.events import Event, Measures, Saturation
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.records import RECORD
from plimsoll.rundir.write import RunWriter
from tests.support.experiment import add_events
from tests.support.pages import check_figure, figures_of, text_of
from tests.support.rundir import change, records, write_run

# An author saves articles before, during and after a send, on disks one of which is slow.
_ARTICLES_BEFORE_S, _ARTICLES_DURING_S, _ARTICLES_AFTER_S = 30, 60, 30
ARTICLE = "article saved"
_STEPS_MS = {"open editor": 60.0, "publish": 90.0, "read back": 40.0}
# The last has too few requests while the send runs for any percentile of the tail.
DISKS = (("nvme-mirror", 1.3), ("sata-mirror", 4.0), ("worst <b>disk</b>", 40.0))
FAILED = {"event": "iteration failed", "took_ms": 900.0}
WORST = "worst <b>disk</b>"
_SHOWN_WORST = "worst &lt;b&gt;disk&lt;/b&gt;"


def write_articles(path: Path, backend: str, slower: float, repeat: int = 1, number: int = 1) -> Path:
    """Write one run; while the send lasts, each request takes `slower` times as long."""
    random = np.random.default_rng([repeat, *backend.encode()])
    facts = RunFacts.model_validate(
        {"scenario": "save-article", "backend": backend, "repeat": repeat, "loop": "closed"}
    )
    stop_s = _ARTICLES_BEFORE_S + _ARTICLES_DURING_S
    with RunWriter(path, facts, summarise, at_once=False) as run:
        run.event("zfs-send", phase="start", t_ns=_ARTICLES_BEFORE_S * 10**9)
        for second in range(_ARTICLES_BEFORE_S + 1, stop_s + 1):
            run.event("zfs-send bytes", t_ns=second * 10**9, bytes_per_s=round(1e8 * random.normal(1, 0.05)))
        at_s, iteration = 0.0, 0
        while at_s < stop_s + _ARTICLES_AFTER_S:
            iteration += 1
            factor = slower if _ARTICLES_BEFORE_S <= at_s < stop_s else 1.0
            began_s, rows = at_s, np.zeros(len(_STEPS_MS), dtype=RECORD)
            for row, (step, ms) in zip(rows, _STEPS_MS.items(), strict=True):
                took_s = ms * factor * float(random.lognormal(0, 0.3)) / 1000
                row["route"], row["status"], row["line"] = run.route_number(step), 200, iteration
                row["due_ns"], row["total_us"], row["ttfb_us"] = at_s * 1e9, took_s * 1e6, took_s * 9e5
                at_s += took_s
            run.records(rows)
            run.measure(ARTICLE, (at_s - began_s) * 1000, "ms", iteration=iteration, t_ns=int(at_s * 1e9))
            at_s += float(random.exponential(0.3))
        run.event("zfs-send", phase="stop", t_ns=stop_s * 10**9)
        run.finish("complete")
    change(
        path,
        experiment={"name": "articles", "run": number, "of": 12},
        started_at=f"2026-11-20T{number:02d}:00:00Z",
        ended_at=f"2026-11-20T{number:02d}:03:00Z",
    )
    return path


def write_article_runs(
    folder: Path, repeats: int = 2, disks: Sequence[tuple[str, float]] = DISKS
) -> list[Path]:
    """Write `repeats` runs on each of `disks`."""
    places = [(repeat, disk) for repeat in range(1, repeats + 1) for disk in disks]
    return [
        write_articles(folder / f"{number:02d}", *disk, repeat, number)
        for number, (repeat, disk) in enumerate(places, 1)
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("articles")
    write_article_runs(folder)
    return make_report([folder])


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Two disks, on one of which every save fails while the send runs, but for a few."""
    folder = tmp_path_factory.mktemp("failing")
    for path in write_article_runs(folder, disks=(("old", 1.0), ("new", 1.0))):
        if json.loads((path / "run.json").read_text())["backend"] == "old":
            add_events(path, *(FAILED | {"t_ns": 60 * 10**9, "iteration": 9000 + i} for i in range(900)))
    return make_report([folder])


def test_failed_saves_stand_beside_the_saves_and_count_as_at_least_their_time_out(failing: Report) -> None:
    text = text_of(failing)
    assert "article saved, old" in text
    assert re.search(r"\(\d+, 1,800 failed\)", text)
    assert re.search(r"“article saved” failed during the saturator: 1,800 of [\d,]+ tries on old", text)
    assert "A side that fails more is never the faster one" in text
    (old,) = [medians_of([run]) for run in failing.runs if run.backend == "old"][:1]
    during = old[ARTICLE]["during"]
    assert during.is_bound, "most tries failed, so the median is a failure's"
    assert old[ARTICLE]["before"].failed == 0


def test_where_nothing_failed_nothing_is_said_of_failures(made: Report) -> None:
    assert "failed during the saturator" not in text_of(made)


BUSY = Saturation("zfs-send", 10 * 10**9, 20 * 10**9, None, [])
BEGINNINGS: list[tuple[str, float, object, str, str | None]] = [
    ("a short one before", 5.0, 200.0, "ms", "before"),
    ("one that reached into the send belongs to what was before", 11.0, 3000.0, "ms", "before"),
    ("one that the send had all of", 14.0, 3.9, "s", "during"),
    ("one that began during, and ended after", 25.0, 8000.0, "ms", "during"),
    ("one after", 29.0, 3.0, "s", "after"),
    ("what is no time counts where it was written", 15.0, 99.0, "MB/s", "during"),
    ("one longer than the run began at its start", 12.0, 1e12, "s", "before"),
    ("a word is no time", 12.0, "long", "ms", "during"),
]


@pytest.mark.parametrize(
    ("what", "at_s", "value", "unit", "phase"), BEGINNINGS, ids=[b[0] for b in BEGINNINGS]
)
def test_a_measure_belongs_to_the_phase_in_which_it_began(
    what: str, at_s: float, value: object, unit: str, phase: str
) -> None:
    event = Event(int(at_s * 1e9), "measure", None, {"name": "m", "value": value, "unit": unit})
    assert began_ns(event) >= 0
    assert measures_by_phase([event], BUSY) == {phase: [event]}, what
    assert measures_by_phase([event], None) == {}, "a run that nothing saturated has no phases"


def test_values_of_a_phase_keep_their_unit_where_the_run_has_two() -> None:
    """The page warns of such a measure; its figure in that phase must not be a thousandth of what it was."""
    events = [Event(1, "measure", None, {"name": "m", "value": 3.0, "unit": "s"})]
    (step,) = measured_steps(Measures.of(events), {}, {"m": "ms"}).values()
    assert (step.median, step.unit) == (3.0, "s")


def test_what_medians_of_whole_runs_hide_is_seen_by_phase(made: Report) -> None:
    worst = next(each for each in made.compared[0].scenario.backends if each.name == WORST)
    medians = medians_of(worst.runs)[ARTICLE]
    assert medians["during"].value > 20 * medians["before"].value
    whole = [run.values[ARTICLE].least for run in worst.runs]
    assert max(whole) < 2 * medians["before"].value, "the defect: whole runs say nothing of it"
    text = text_of(made)
    row = re.search(rf"<td>{ARTICLE}, {_SHOWN_WORST}</td>(.*?)</tr>", text)
    assert row
    cells = re.findall(r"<td>(.*?)</td>", row[1])
    assert re.fullmatch(r"[\d.]+ ms \(\d+\)", cells[0])
    assert re.fullmatch(r"[\d.]+ s \(\d+\)", cells[1])
    assert re.fullmatch(r"\d+ ×", cells[3])
    assert re.search(rf"“{ARTICLE}” typically took, while zfs send ran, [\d.]+ s on {_SHOWN_WORST}", text)
    assert f"<td>{ARTICLE} (ms)</td>" in text
    assert "<td>… during</td>" in text


def test_a_median_over_unlike_steps_is_no_headline(made: Report) -> None:
    """Fewer uploads and more looks at small files would be "0.02 times as long as before"."""
    assert "half of the requests" not in text_of(made)


def test_the_figure_has_a_bar_for_each_phase(made: Report) -> None:
    figure = figures_of(made)["measures-0"]
    check_figure(figure)
    assert figure["layout"]["xaxis"]["ticktext"] == [
        f"{ARTICLE}:<br>{p}" for p in ("before", "during", "after")
    ]
    bars = {trace["name"]: trace["y"] for trace in figure["data"] if trace["type"] == "bar"}
    assert bars[_SHOWN_WORST][1] > 20 * bars[_SHOWN_WORST][0]


def test_a_backend_with_too_few_requests_is_named_in_the_scatter(made: Report) -> None:
    figure = figures_of(made)["scatter-0"]
    check_figure(figure)
    notes = [note for note in figure["layout"]["annotations"] if note.get("name") == MISSING]
    assert len(notes) == 1
    said = notes[0]["text"].replace("<br>", " ")
    assert re.fullmatch(rf"{_SHOWN_WORST}: \d+( to \d+)? requests a run: too few, a p99 takes 100", said)
    assert 0 < notes[0]["x"] < 60, "where its points would be: while the send runs"
    assert f"Without a point: {_SHOWN_WORST}" in text_of(made)
    assert _SHOWN_WORST in {trace["name"] for trace in figure["data"] if trace.get("showlegend", True)}


def test_one_without_any_point_keeps_its_place_in_the_legend(tmp_path: Path) -> None:
    for number, (backend, slower) in enumerate((("a", 1.0), ("b", 1.0), ("dead", 5000.0)), 1):
        write_articles(tmp_path / backend, backend, slower, number=number)
    figure = figures_of(make_report([tmp_path]))["scatter-0"]
    drawn = {trace["name"] for trace in figure["data"] if trace.get("showlegend", True)}
    assert drawn == {"a", "b", "dead"}


def test_the_repeats_name_it_too(made: Report) -> None:
    figure = figures_of(made)["repeats-0"]
    notes = [note for note in figure["layout"]["annotations"] if note.get("name") == MISSING]
    assert [note["x"] for note in notes] == [1]
    assert "a p99 takes 100" in notes[0]["text"].replace("<br>", " ")


def test_the_terminal_and_json_say_it(made: Report) -> None:
    folder = made.path.parent
    result = CliRunner().invoke(report, [str(folder), "--no-progress"])
    assert result.exit_code == 0, result.output
    assert re.search(rf"  {ARTICLE}: [\d.]+ ms before \(\d+\), [\d.]+ s during \(\d+\), ", result.output)
    assert f"“{ARTICLE}” typically took, while zfs send ran" in result.output
    found = json.loads(CliRunner().invoke(report, [str(folder), "--json", "--no-progress"]).output)
    phases = found["runs"][0]["measures_by_phase"]
    assert list(phases) == ["before", "during", "after"]
    assert (
        sum(phase[ARTICLE]["count"] for phase in phases.values())
        == found["runs"][0]["measures"][ARTICLE]["count"]
    )
    lines = outcome_lines(folder / "01")
    at = next(number for number, line in enumerate(lines) if line.startswith(ARTICLE))
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["before", "during", "after"]


def _window(middle_s: float, value_ms: float) -> PhaseWindow:
    return PhaseWindow("during", middle_s - 15, middle_s + 15, 100, True, value_ms)


LINES = [
    ("windows that all lie at one place have no slope", [30.0 + number / 10 for number in range(9)], 0.0),
    ("those that lie apart have one", [15.0 + 30 * number for number in range(9)], 10 / 3),
    ("three have none", [15.0, 45.0, 75.0], 0.0),
]


@pytest.mark.parametrize(("what", "middles", "slope"), LINES, ids=[row[0] for row in LINES])
def test_an_average_line_does_not_leave_its_points(what: str, middles: list[float], slope: float) -> None:
    line = line_of([_window(middle, 100.0 + 100 * place) for place, middle in enumerate(middles)])
    assert line is not None
    assert line.at_ms(60) - line.at_ms(0) == pytest.approx(60 * slope), what


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
