"""The host under test in the last minute: the rows of analysis/report/host_subjects.py, as text."""

import csv
import math
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plimsoll.analysis.report.host_rows import HostRow
from plimsoll.analysis.report.host_subjects import SUBJECTS
from plimsoll.common.hostile import is_figure
from plimsoll.common.units import ABSENT, significant
from plimsoll.lab.experiment.status.tail import Tail

_OVER = 60  # samples, one a second


@dataclass(frozen=True)
class HostLine:
    """A row: its subject, what it says, its last value, and the least and most of the last minute."""

    subject: str
    name: str
    now: str
    least: str
    most: str


class HostNow:
    """Reads host.csv as it grows. Rows in which nothing was are left out."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._head: list[str] | None = None
        self._columns: list[tuple[str, HostRow, list[int]]] = []
        self._last: deque[list[float]] = deque(maxlen=_OVER)

    def look(self) -> list[HostLine]:
        """Return what is known now; empty where nobody observes the host."""
        for line in self._tail.lines():
            row = next(csv.reader([line.decode(errors="replace")]), [])
            if self._head is None:
                self._head, self._columns = row, list(_chosen(row))
            elif len(row) == len(self._head):
                self._last.append([_number(cell) for cell in row])
        return [found for chosen in self._columns if (found := self._line(*chosen))]

    def _line(self, subject: str, row: HostRow, places: list[int]) -> HostLine | None:
        values = [_joined([sample[place] for place in places], row) for sample in self._last]
        known = [value for value in values if value is not None]
        if not known or max(known) <= 0:
            return None
        shown = [_shown(value, row.unit) for value in (values[-1], min(known), max(known))]
        return HostLine(subject, row.said, *shown)


def _chosen(head: list[str]) -> Iterator[tuple[str, HostRow, list[int]]]:
    for subject in SUBJECTS:
        for row in subject.rows:
            pattern = re.compile(row.column, re.DOTALL)
            if places := [place for place, name in enumerate(head) if pattern.fullmatch(name)]:
                yield subject.title, row, places


def _number(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        return math.nan
    return value if is_figure(value) and value >= 0 else math.nan


def _joined(values: list[float], row: HostRow) -> float | None:
    """Return one value of several devices, as the report joins them. Pure."""
    known = [value / row.scale for value in values if not math.isnan(value)]
    if not known or (row.join == "sum" and len(known) < len(values)):
        return None
    return max(known) if row.join == "max" else sum(known) / (1 if row.join == "sum" else len(known))


def _shown(value: float | None, unit: str) -> str:
    return ABSENT if value is None else f"{significant(value)} {unit}".strip()
