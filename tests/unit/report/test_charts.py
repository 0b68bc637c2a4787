"""A chart, and a section, of the report is one file and one line of a list; ticks and labels have room."""

from importlib import import_module
from pathlib import Path

import pytest

from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.page.chart import MISSING, Missing, TimeUnit, spaced_ticks, wrap_label
from plimsoll.analysis.page.section import Row, Section, Sentence, Table
from plimsoll.analysis.report import charts, contents
from plimsoll.analysis.report.charts.over_time import span_shapes
from plimsoll.analysis.report.charts.scatter import Scatter, ScatterBackend, scatter_chart
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.statistics.windows import PhaseWindow
from plimsoll.common.errors import Severity
from plimsoll.rundir.events import Span
from tests.support.rundir import traffic, write_run

TOY = '''
from plimsoll.analysis.page.chart import Chart, axis, layout, points


def toy_chart(runs):
    """Return how many requests each run had."""
    trace = points("requests", [run.number for run in runs], [run.statistics.requests for run in runs])
    return Chart("toy", "A toy of a chart", "By run.", [trace], layout(axis("run"), axis("requests")))


def nothing(runs):
    return None
'''


def test_a_chart_that_is_named_in_the_list_is_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy_charts.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    toys = import_module("toy_charts")
    run = write_run(tmp_path / "run", traffic(60, 30))
    before = make_report([run], tmp_path / "before.html").path.read_text(encoding="utf-8")
    monkeypatch.setattr(charts, "RUN_CHARTS", [*charts.RUN_CHARTS, toys.nothing, toys.toy_chart])
    after = make_report([run], tmp_path / "after.html").path.read_text(encoding="utf-8")
    assert "A toy of a chart" not in before
    assert 'id="figure-toy"' in after
    assert after.index('id="figure-lag"') < after.index('id="figure-toy"')


def test_a_section_that_is_named_in_the_list_is_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def toy(made: contents.Report) -> list[Section]:
        table = Table("Its table", "", ["", "requests"], [Row(run.name, ["<3>"]) for run in made.runs])
        doubt = Finding(Severity.WARN, "A toy is in doubt")
        return [
            Section("A toy of a section", [Sentence("It says <this>.")], tables=[table], findings=[doubt])
        ]

    monkeypatch.setattr(contents, "SECTIONS", [*contents.SECTIONS, toy])
    run = write_run(tmp_path / "run", traffic(60, 30))
    page = make_report([run]).path.read_text(encoding="utf-8")
    said = ["A toy is in doubt", "A toy of a section", "It says &lt;this&gt;.", "Its table", "&lt;3&gt;"]
    assert sorted(said, key=page.index) == said


TICKS = [
    ("those that lie apart are all kept, in order", [1, 2, 0.5], 0.4, 3, [0.5, 1, 2]),
    ("of those too close the one that is wanted more", [1, 1.05, 0.95, 1.2], 0.9, 1.6, [1, 1.2]),
    ("those outside the axis are none of its ticks", [1, 0.1, 10], 0.5, 2, [1]),
]


@pytest.mark.parametrize(("what", "ticks", "low", "high", "kept"), TICKS, ids=[row[0] for row in TICKS])
def test_ticks_have_room(what: str, ticks: list[float], low: float, high: float, kept: list[float]) -> None:
    assert spaced_ticks(ticks, low, high) == kept, what


LABELS = [
    ("a short one stays", "replay: p99", 20, "replay: p99"),
    ("a long one goes on below", "upgrade-wordpress during: p99", 12, "upgrade-<br>wordpress<br>during: p99"),
    ("the end of one that is too long is left out", "a b c d e f g", 3, "a b<br>c d<br>e …"),
    ("what plotly would read is spelled", "<b>a</b> & b", 20, "&lt;b&gt;a&lt;/b&gt; &amp; b"),
]


@pytest.mark.parametrize(("what", "text", "columns", "lines"), LABELS, ids=[row[0] for row in LABELS])
def test_labels_in_lines(what: str, text: str, columns: int, lines: str) -> None:
    assert wrap_label(text, columns) == lines, what


SPAN_LABELS: list[tuple[str, list[Span], list[tuple[str, float]]]] = [
    ("one alone", [Span("zfs-send", 100, 200)], [("zfs-send", 0)]),
    ("two that begin together", [Span("a", 100, 200), Span("b", 100, 300)], [("a", 0), ("b", -14)]),
    ("one of each run", [Span("zfs-send", 100 + n, 200) for n in range(4)], [("zfs-send", 0)]),
    ("the same again later", [Span("a", 100, 110), Span("a", 600, 610)], [("a", 0), ("a", 0)]),
    (
        "more than there is room for",
        [Span(name, 100, 200) for name in "abcde"],
        [("a", 0), ("b", -14), ("c", -28)],
    ),
]


@pytest.mark.parametrize(("what", "spans", "shown"), SPAN_LABELS, ids=[row[0] for row in SPAN_LABELS])
def test_labels_of_spans_do_not_lie_over_one_another(
    tmp_path: Path, what: str, spans: list[Span], shown: list[tuple[str, float]]
) -> None:
    run = write_run(tmp_path / "run", traffic(1000, 2))
    (found,) = make_report([run]).runs
    vars(found)["spans"] = spans
    labels = span_shapes([found], TimeUnit("seconds", 1, 1000.0))["annotations"]
    assert [(label["text"], label["yshift"]) for label in labels] == shown, what


TOO_FEW = "768 requests a run: too few, a p99.9 takes 1,000"


@pytest.mark.parametrize(
    ("why", "drawn", "noted"),
    [
        ("all phases are drawn", [("before", -20, 0), ("during", 0, 25), ("after", 25, 45)], [-10, 35]),
        ("the axis ends with the send, so no note hangs over its edges", [("during", 0, 25)], []),
        ("only what comes after is drawn", [("during", 0, 25), ("after", 25, 45)], [35]),
    ],
)
def test_notes_stand_in_phases_that_are_drawn(
    why: str, drawn: list[tuple[str, float, float]], noted: list[float]
) -> None:
    windows = [PhaseWindow(phase, start, stop, 1000, False, 12.0) for phase, start, stop in drawn]
    chart = scatter_chart(
        Scatter(
            key="scatter",
            of="",
            backends=[ScatterBackend("nvme", 0, [("one", windows)], [])],
            shown="p99.9",
            width_s=25.0,
            left_out=0,
            saturators=["zfs send"],
            busy_s=25.0,
            missing=[Missing(phase, "rust", 1, TOO_FEW) for phase in ("before", "after")],
        )
    )
    notes = [note for note in chart.layout["annotations"] if note.get("name") == MISSING]
    assert [note["x"] for note in notes] == pytest.approx(noted), why
    assert "(before); rust: 768 requests" in chart.caption
