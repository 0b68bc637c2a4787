"""Weeks before and after a move, from access logs: what `plimsoll compare` says of the same imports."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plimsoll.analysis.page.section import Row, Section, Sentence, Table

if TYPE_CHECKING:
    from plimsoll.analysis.evidence.weeks import WeeksBeside


def weeks_sections(weeks: "Sequence[WeeksBeside]") -> list[Section]:
    """Return a section on each two sides."""
    return [
        Section(title="Before and after", sentences=[Sentence(each.claim)], tables=[_table(each)])
        for each in weeks
    ]


def weeks_lines(weeks: "Sequence[WeeksBeside]") -> list[str]:
    """Return the same for the terminal (hostile), a line a quantile."""
    found = []
    for each in weeks:
        before, after = each.names
        found += [
            f"{name} over one mix: {one} ({before}), {other} ({after}), {ratio} ({interval})"
            for name, (one, other, ratio, interval) in each.rows()
        ]
    return found


def _table(weeks: "WeeksBeside") -> Table:
    caption = " ".join(weeks.sentences()) + " To judge them by limits, run plimsoll compare."
    columns = ["", *weeks.names, "ratio", "95 % interval"]
    title = "Over one mix of routes and hours of the week"
    return Table(title, caption, columns, [Row(name, cells) for name, cells in weeks.rows()])
