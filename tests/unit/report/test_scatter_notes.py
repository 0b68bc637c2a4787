"""A note on what has no point stands where its points would be, or in the caption alone."""

import pytest

from plimsoll.analysis.page.chart import MISSING, Missing
from plimsoll.analysis.report.charts.scatter import Scatter, ScatterBackend, scatter_chart
from plimsoll.analysis.statistics.windows import PhaseWindow

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
