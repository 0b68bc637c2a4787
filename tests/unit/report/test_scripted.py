"""Scripted scenarios: a headline of their own, their steps, phases and page vitals, by backend and run."""

from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.evidence.summary import outcome_lines, summarise
from plimsoll.analysis.report.charts.scripted import VITALS, Bars, Level, bars_chart
from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.report.sections.headline import (
    main_measure,
    scripted_figures,
    scripted_line,
    scripted_sentence,
)
from plimsoll.analysis.statistics.measures import damaged_measures
from plimsoll.rundir.events import Event, Measures
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.records import Request
from plimsoll.rundir.write import RunWriter
from tests.support.experiment import PAGES, PHASES, add_events, write_scripted, write_scripted_experiment
from tests.support.pages import figures_of, text_of
from tests.support.rundir import records, write_run

VERSIONS = {"event": "upgrade", "phase": "offer", "from_version": "6.1.9", "to_version": "6.8.12", "t_ns": 1}


def _run(
    folder: Path,
    scenario: str,
    measures: list[tuple[str, float, str]],
    failed: int = 0,
    events: tuple[dict[str, Any], ...] = (),
    steps: tuple[Request, ...] = (Request(0, 1000, "view", status=200, iteration=1),),
    **facts: Any,
) -> Any:
    load = {"digest": "0", "settings": {"timeout_s": 30.0}}
    run_facts = RunFacts.model_validate({"scenario": scenario, "loop": "closed", "load": load} | facts)
    with RunWriter(folder / "run", run_facts, summarise, at_once=False) as run:
        for step in steps:
            run.request(step)
        for number, (name, value, unit) in enumerate(measures, start=1):
            run.measure(name, value, unit, iteration=number, t_ns=number * 1000)
        for number in range(failed):
            at_ns = (len(measures) + number + 1) * 1000
            run.event("iteration failed", iteration=len(measures) + number + 1, took_ms=5.0, t_ns=at_ns)
        run.finish("complete")
    add_events(folder / "run", *events)
    return make_report([folder / "run"]).runs[0]


SAVES = [("article saved", 100.0 + each, "ms") for each in range(60)]
UPGRADE_PHASES = [
    ("phase: unpack", 6000.0, "ms"),
    ("phase: copy", 9000.0, "ms"),
    ("phase: start", 100.0, "ms"),
]
OUTAGE = [("outage: visitors", 3200.0, "ms"), ("outage: members", 0.0, "ms")]
HEADLINES = [
    (
        "an article's figure is the time until it is saved, with the highest percentile that there is",
        "save-article",
        SAVES,
        (),
        {"article saved": "129 ms", "p90": "153 ms", "slowest": "159 ms"},
        "An article was saved in 129 ms (median of 60 saves); one in ten took 153 ms or more.",
    ),
    (
        "images have one each, and one of all",
        "upload-images",
        [*(("image ready", 3000.0 + each, "ms") for each in range(5)), ("all images ready", 310.0, "s")],
        (),
        {"image ready": "3 s", "slowest": "3 s", "all images ready": "5 min 10 s"},
        "An image was ready in 3 s (median of 5 images).",
    ),
    (
        "a download has a rate, of which the lowest is the slowest",
        "download",
        [("throughput", 600.0, "MB/s"), ("throughput", 620.0, "MB/s"), ("throughput", 640.0, "MB/s")],
        (),
        {"throughput": "620 MB/s", "slowest": "600 MB/s"},
        "A download came with 620 MB/s (median of 3 downloads); the slowest with 600 MB/s.",
    ),
    (
        "an upgrade says from what to what, its longest phases, and who was without the site",
        "upgrade-wordpress",
        [*UPGRADE_PHASES, *OUTAGE, ("upgrade", 20_000.0, "ms")],
        (VERSIONS,),
        {
            "upgrade": "20 s",
            "copy": "9 s",
            "unpack": "6 s",
            "start": "100 ms",
            "visitors without the site": "3.2 s",
            "members without the site": "0 s",
        },
        "WordPress 6.1.9 to 6.8.12 took 20 s, most of it in copy 9 s, unpack 6 s and start 100 ms. "
        "Without the site meanwhile: visitors for 3.2 s.",
    ),
    (
        "a forum's upgrade measures in seconds",
        "upgrade-xenforo",
        [("upgrade_total", 48.0, "s"), ("phase: users", 30.0, "s")],
        (),
        {"upgrade": "48 s", "users": "30 s"},
        "The upgrade took 48 s, most of it in users 30 s.",
    ),
]


@pytest.mark.parametrize(
    ("what", "scenario", "measures", "events", "bigs", "sentence"),
    HEADLINES,
    ids=[row[0] for row in HEADLINES],
)
def test_the_headline_is_the_scenarios_own(
    tmp_path: Path,
    what: str,
    scenario: str,
    measures: list[tuple[str, float, str]],
    events: tuple[dict[str, Any], ...],
    bigs: dict[str, str],
    sentence: str,
) -> None:
    run = _run(tmp_path, scenario, measures, events=events)
    assert {big.name: big.value for big in scripted_figures(run)} == bigs, what
    assert scripted_sentence(run) == sentence, what
    assert sum(big.first for big in scripted_figures(run)) == 1
    assert sentence.split(",")[0].split(" (")[0] in (tmp_path / "run" / "report.html").read_text()


def test_an_upgrade_whose_phases_are_unknown_says_why(tmp_path: Path) -> None:
    unknown = {"event": "phases unknown", "detail": "set fastcgi_buffering off", "t_ns": 2}
    run = _run(tmp_path, "upgrade-wordpress", [("upgrade", 20_000.0, "ms")], events=(VERSIONS, unknown))
    said = "WordPress 6.1.9 to 6.8.12 took 20 s. Its phases are unknown: set fastcgi_buffering off."
    assert scripted_sentence(run) == said
    assert "phases unknown: set fastcgi_buffering off" in outcome_lines(run.directory.path)


def _loaded(scenario: str) -> dict[str, Any]:
    return {"load": {"digest": "0", "settings": {"scenario": scenario, "timeout_s": 30.0}}}


NAMES: list[tuple[str, str, dict[str, Any], str]] = [
    ("a member", "rush-hour/save-article", _loaded("save-article"), "article saved"),
    ("a member by a name of its own", "rush-hour/writers", _loaded("save-article"), "article saved"),
    ("a member by the name of another", "rush-hour/download", _loaded("save-article"), "article saved"),
    ("an entry by a name of its own", "writers", _loaded("save-article"), "article saved"),
    ("a member that does not say what it loaded", "rush-hour/save-article", {}, "article saved"),
    ("a replay by the name of a scenario", "save-article", {"program": {"name": "replay"}}, ""),
    ("another scenario by its name", "save-article", _loaded("visitors"), ""),
]


@pytest.mark.parametrize(("what", "called", "facts", "measure"), NAMES, ids=[row[0] for row in NAMES])
def test_the_scenario_is_known_by_what_ran(
    tmp_path: Path, what: str, called: str, facts: dict[str, Any], measure: str
) -> None:
    run = _run(tmp_path, called, SAVES, **facts)
    assert main_measure([run]) == (measure or None), what
    assert scripted_line(run) == (measure and f"{measure} 129 ms (median of 60 saves)")


FAILURES = [
    (
        "the usual save is a failure",
        3,
        4,
        ["≥ 30 s", "≥ 30 s"],
        "4 of 7 saves failed. So the usual one is a failure.",
    ),
    ("all fail", 0, 2, [], ""),
    (
        "one in ten fails",
        18,
        2,
        ["109 ms", "117 ms", "≥ 30 s"],
        "2 of 20 saves failed. An article was saved in 109 ms (median of 20 saves, 2 failed); "
        "one in ten took 117 ms or more.",
    ),
    (
        "so does one in seven",
        17,
        3,
        ["109 ms", "≥ 30 s", "≥ 30 s"],
        "3 of 20 saves failed. An article was saved in 109 ms (median of 20 saves, 3 failed); "
        "one in ten failed.",
    ),
]


@pytest.mark.parametrize(
    ("what", "good", "failed", "values", "sentence"), FAILURES, ids=[row[0] for row in FAILURES]
)
def test_a_failure_is_never_fast_in_a_headline(
    tmp_path: Path, what: str, good: int, failed: int, values: list[str], sentence: str
) -> None:
    run = _run(tmp_path, "save-article", SAVES[:good], failed=failed)
    assert scripted_sentence(run) == sentence, what
    assert [big.value for big in scripted_figures(run)] == values, what
    assert not good or f"{failed} failed" in scripted_line(run)


def test_what_measured_nothing_of_its_own_keeps_its_percentiles(tmp_path: Path) -> None:
    run = _run(tmp_path, "save-article", [])
    assert (scripted_figures(run), scripted_sentence(run), scripted_line(run)) == ([], "", "")
    assert ">p99.9<" in (tmp_path / "run" / "report.html").read_text()


def test_clean_up_is_in_no_figure(tmp_path: Path) -> None:
    steps = (
        Request(0, 1000, "publish", status=201, iteration=1),
        Request(2000, 9_000_000, "clean up", status=200, iteration=1, warmup=True),
    )
    run = _run(tmp_path, "save-article", SAVES, steps=steps)
    assert run.statistics.samples["response"].figures()["max"] == 1.0
    assert [name.partition(" ")[2] for name in run.statistics.routes] == ["publish"]
    assert (
        "1 request of warm-up, set-up or clean-up was left out."
        in (tmp_path / "run" / "report.html").read_text()
    )


def test_the_terminal_has_p999_where_there_are_enough(tmp_path: Path) -> None:
    many = tuple(Request(number * 1000, 1000 + number, "save", status=200) for number in range(1000))
    _run(tmp_path, "save-article", SAVES, steps=many)
    head, row = outcome_lines(tmp_path / "run")[:2]
    assert head.split() == [
        "step",
        "requests",
        "failed",
        "p50",
        "ms",
        "p99",
        "ms",
        "p99.9",
        "ms",
        "max",
        "ms",
    ]
    assert row.split() == ["save", "1,000", "0", "1.50", "1.99", "2.00", "2.00"]
    few = _run(tmp_path / "few", "save-article", SAVES)
    assert "p99.9" not in outcome_lines(few.directory.path)[0]


def test_a_long_step_is_not_cut_to_look_like_another(tmp_path: Path) -> None:
    names = [f"verify: the thing that has a rather long name, number {number}" for number in (1, 2)]
    steps = tuple(Request(0, 1000, name, status=200) for name in names)
    _run(tmp_path, "save-article", SAVES, steps=steps)
    assert all(any(line.startswith(name) for line in outcome_lines(tmp_path / "run")) for name in names)


def _chart(places: list[str], values: list[float]) -> dict[str, Any]:
    bars = Bars("rust", 0, [[Level("run", value, 1)] for value in values])
    chart = bars_chart("k", "t", "c", places, [bars])
    return {"ticks": chart.layout["xaxis"]["ticktext"], "texts": chart.data[0]["text"]}


def test_labels_of_bars_differ_where_their_places_do() -> None:
    places = ["phase: rebuilding the search index of threads", "phase: rebuilding the search index of posts"]
    ticks = _chart(places, [1.0, 2.0])["ticks"]
    assert len(set(ticks)) == 2
    assert [tick.endswith(end) for tick, end in zip(ticks, ("threads", "posts"), strict=True)] == [True, True]
    same = ["a" * 30 + "b" * 30 + "c" * 30, "a" * 30 + "x" * 30 + "c" * 30]
    assert len(set(_chart(same, [1.0, 2.0])["ticks"])) == 2


def test_of_many_bars_the_highest_is_labelled() -> None:
    values = [float(value) for value in np.arange(1, 31)]
    texts = _chart([f"phase {number}" for number in range(30)], values)["texts"]
    assert texts == [""] * 29 + ["30 ms"]


def test_of_many_phases_none_is_dropped(tmp_path: Path) -> None:
    phases = [(f"phase: step {number}", 100.0 + number, "ms") for number in range(40)]
    run = _run(tmp_path, "upgrade-wordpress", [*phases, ("upgrade", 9000.0, "ms")])
    page = (tmp_path / "run" / "report.html").read_text()
    assert "25 shorter ones, together" in page
    assert run.measures["phase: step 0"]["max"] == 100.0


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


ATTACK = "<img src=x onerror=alert(1)>"
EVENTS = [
    {"t_ns": 5, "event": "measure", "name": "image ready", "value": 1500.0, "unit": "ms", "iteration": 1},
    {"t_ns": 6, "event": "measure", "name": "image ready", "value": 2500.0, "unit": "ms", "iteration": 2},
    {"t_ns": 7, "event": "measure", "name": ATTACK, "value": 1.0, "unit": ATTACK},
    {"t_ns": 8, "event": "measure", "name": "no figure", "value": "many", "unit": "ms"},
    {"t_ns": 9, "event": "measure", "name": "image ready", "value": 1.0, "unit": "s"},
    {"t_ns": 2_000_000, "event": "error", "step": "save", "kind": "nonce_expired", "detail": ATTACK},
]


def test_measures_and_failed_steps_are_shown_and_harmless(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(20), events=EVENTS, scenario="upload-images", logs=[])
    make_report([run], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for text in ("image ready (ms)", "2,000", "Steps that failed", "nonce_expired", "By step"):
        assert text in page
    assert ATTACK not in page
    assert "<td>no figure" not in page
    assert "Values of image ready, no figure in events.jsonl are not usable numbers" in page
    assert "other size</th>" not in page, "it has no log to differ from"


def test_a_killed_run_has_its_measures_from_its_events(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", records(20), events=EVENTS, status="running")
    made = make_report([run], tmp_path / "report.html").as_json()
    assert made["runs"][0]["measures"]["image ready"]["mean"] == 2000.0  # type: ignore[index]
