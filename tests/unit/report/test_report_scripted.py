"""Figures of scripted scenarios: steps, phases, page vitals, by backend and run."""

from pathlib import Path
from statistics import median
from typing import Any

import pytest

from plimsoll.analysis.report import make_report
from plimsoll.analysis.report.charts.scripted import VITALS
from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.statistics.measures import damaged_measures
from plimsoll.rundir.events import Event, Measures
from tests.support.experiment import PAGES, PHASES, add_events, write_scripted, write_scripted_experiment
from tests.unit.report.test_comparison import figures_of, text_of


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("scripted")
    write_scripted_experiment(folder, ["browser", "download", "save-article", "upgrade-wordpress"])
    return make_report([folder])


def _bars(figure: dict[str, Any], backend: str, yaxis: str = "y") -> dict[str, Any]:
    return next(
        trace
        for trace in figure["data"]
        if trace["type"] == "bar" and trace["name"] == backend and trace["yaxis"] == yaxis
    )


@pytest.mark.parametrize(
    ("key", "places"),
    [
        ("phases-3", list(PHASES)),
        ("steps-2", ["article saved", "publish", "open editor", "save", "read back", "view"]),
        ("rates-1", ["throughput"]),
        ("steps-1", ["download"]),
        ("vitals-0", list(PAGES)),
    ],
    ids=lambda value: str(value)[:20],
)
def test_each_scenario_has_the_bars_of_what_it_measures(made: Report, key: str, places: list[str]) -> None:
    figure = figures_of(made)[key]
    assert figure["layout"]["xaxis"]["ticktext"] == places
    assert {trace["name"] for trace in figure["data"]} == {"nvme-mirror", "rotating"}


def test_a_bar_is_the_median_of_the_runs_and_every_run_is_a_point(made: Report) -> None:
    figure = figures_of(made)["phases-3"]
    runs = [run for run in made.runs if run.directory.facts.scenario == "upgrade-wordpress"]
    of_backend = [
        event.further["value"]
        for run in runs
        if run.backend == "rotating"
        for event in run.directory.events
        if event.further.get("name") == "phase: copy"
    ]
    bars = _bars(figure, "rotating")
    assert bars["y"][PHASES.index("copy")] == pytest.approx(median(of_backend), rel=1e-5)
    assert "4 runs" in bars["hovertext"][0]
    points = [trace for trace in figure["data"] if trace["type"] == "scatter" and trace["name"] == "rotating"]
    assert sum(len(trace["x"]) for trace in points) == 4 * len(PHASES)
    assert all("n = 1" in text for text in points[0]["hovertext"])


def test_vitals_stand_beside_the_published_limits(made: Report) -> None:
    figure = figures_of(made)["vitals-0"]
    titles = [figure["layout"][f"yaxis{n}"]["title"]["text"] for n in ("", 2, 3, 4, 5)]
    assert titles == ["LCP (ms)", "INP (ms)", "CLS (score)", "FCP (ms)", "TTFB (ms)"]
    lines = {(shape["yref"], shape["y0"]) for shape in figure["layout"]["shapes"]}
    assert {("y", 2500), ("y", 4000), ("y2", 200), ("y3", 0.1)} <= lines
    assert "p75" in text_of(made)
    assert VITALS["cls"].poor == 0.25


def test_few_page_loads_have_no_p75(tmp_path: Path) -> None:
    for repeat in (1, 2):
        write_scripted(tmp_path / str(repeat), "browser", "nvme", repeat, iterations=2)
    assert "A p75 takes four page loads a run." in text_of(make_report([tmp_path]))


def test_a_single_run_has_its_phases_too(tmp_path: Path) -> None:
    made = make_report([write_scripted(tmp_path / "run", "upgrade-wordpress", "nvme", 1)])
    assert {"phases-0", "steps-0", "tail"} <= figures_of(made).keys()


def test_a_replay_has_no_bars_of_steps(tmp_path: Path, busy_run: Path) -> None:
    made = make_report([busy_run], tmp_path / "report.html")
    assert not [key for key in figures_of(made) if key.startswith(("steps", "phases", "vitals", "rates"))]


def test_a_measure_of_one_run_only_leaves_the_other_place_empty(tmp_path: Path) -> None:
    paths = write_scripted_experiment(tmp_path, ["save-article"], 2)
    event = {"t_ns": 1, "event": "measure", "name": "tea", "value": 9000.0, "unit": "ms"}
    add_events(paths[0], event)
    figure = figures_of(make_report([tmp_path]))["steps-0"]
    assert figure["layout"]["xaxis"]["ticktext"][0] == "tea"
    assert 0 not in [round(x) for x in _bars(figure, "rotating")["x"]], "nothing is drawn, and no zero"


VALUES: list[tuple[str, dict[str, Any], bool]] = [
    ("a figure", {"name": "a", "value": 1.5, "unit": "ms"}, True),
    ("a whole number", {"name": "a", "value": 2, "unit": "ms"}, True),
    ("NaN", {"name": "a", "value": float("nan"), "unit": "ms"}, False),
    ("an infinity", {"name": "a", "value": float("inf"), "unit": "ms"}, False),
    ("larger than any float", {"name": "a", "value": 10**400, "unit": "ms"}, False),
    ("a word", {"name": "a", "value": "1", "unit": "ms"}, False),
    ("a truth", {"name": "a", "value": True, "unit": "ms"}, False),
    ("no unit", {"name": "a", "value": 1.0}, False),
    ("another unit than before", {"name": "b", "value": 1.0, "unit": "s"}, False),
]


@pytest.mark.parametrize(("what", "further", "counts"), VALUES, ids=[row[0] for row in VALUES])
def test_a_value_that_is_no_figure_is_named_and_not_counted(
    what: str, further: dict[str, Any], counts: bool
) -> None:
    before = Event(0, "measure", None, {"name": "b", "value": 1.0, "unit": "ms"})
    events = [before, Event(1, "measure", None, further)]
    assert bool(damaged_measures(events)) is not counts, what
    assert sum(map(len, Measures.of(events).values.values())) == 1 + counts
