"""A history of nights, read as it is: nothing is written into it, not even what SQLite would write."""

import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from plimsoll.analysis.page.chart import Chart, axis, colour_of, layout, points
from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.regress.nights import ChangeRow, NightRow, RunRow
from plimsoll.analysis.regress.schema import APPLICATION_ID, MIGRATIONS
from plimsoll.analysis.regress.store import HistoryStore
from plimsoll.common.errors import HistoryError
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import ABSENT, milliseconds

_MOST_LINES = 8
_KINDS = {"worse": "slower or worse", "better": "better", "baseline": "beyond its limit"}
Medians = dict[tuple[str, str], dict[int, float]]  # by scenario and backend, by night


@dataclass(frozen=True)
class Experiment:
    """The nights of one experiment (hostile name; empty where there was none)."""

    name: str
    nights: Table
    changes: Table | None
    chart: Chart | None


def read_nights(path: Path) -> list[Experiment]:
    """Return what a history holds, by experiment. Raises HistoryError."""
    wal = path.with_name(f"{path.name}-wal").exists()
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(path.resolve()))}?mode=ro{'' if wal else '&immutable=1'}", uri=True, timeout=5.0
        )
    except sqlite3.Error as error:
        raise HistoryError(f"{path}: cannot be opened: {error}") from None
    try:
        connection.row_factory = sqlite3.Row
        whose, version = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if whose != APPLICATION_ID:
            raise HistoryError(f"{path}: is no history of Plimsoll")
        if version != len(MIGRATIONS):
            raise HistoryError(
                f"{path}: is of version {version}, and this reads {len(MIGRATIONS)}: plimsoll regress "
                "brings it up to date"
            )
        history = HistoryStore(connection)
        return [_experiment(history, number, name) for number, name in enumerate(history.experiments())]
    except sqlite3.Error as error:
        raise HistoryError(f"{path}: cannot be read: {error}") from None
    finally:
        connection.close()


def _experiment(history: HistoryStore, number: int, name: str) -> Experiment:
    nights, runs = history.nights(name), history.runs(name)
    by_run = {
        figure.run: figure.value for figure in history.figures(name, ["p99.9"]) if figure.phase == "whole"
    }
    medians = _medians(runs, by_run)
    changes = history.changes(name)
    return Experiment(
        name,
        _nights_table(nights, runs, changes),
        _changes_table(nights, changes),
        _chart(number, nights, medians),
    )


def _medians(runs: Sequence[RunRow], by_run: dict[int, float]) -> Medians:
    found: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.is_fit and run.id in by_run:
            found[run.group][run.night].append(by_run[run.id])
    return {
        group: {night: statistics.median(values) for night, values in each.items()}
        for group, each in found.items()
    }


def _nights_table(nights: Sequence[NightRow], runs: Sequence[RunRow], changes: Sequence[ChangeRow]) -> Table:
    rows = []
    for night in reversed(nights):
        own = [run for run in runs if run.night == night.id]
        worse = [each for each in changes if each.found == night.id and each.kind != "better"]
        rows.append(
            Row(
                night.name,
                [
                    night.facts.started_at[:16].replace("T", " "),
                    f"{len(own)}" + (f" of {night.facts.planned}" if night.facts.planned else ""),
                    f"{sum(run.is_fit for run in own)}",
                    f"{len(worse)}" if worse else "0",
                    "baseline" if night.baseline else "",
                ],
                "amiss" if worse else "",
            )
        )
    caption = (
        "The last night first. Fit: runs that something can be decided by. Worse: what was told that night "
        "for the first time."
    )
    return Table("Nights", caption, ["night", "began (UTC)", "runs", "fit", "worse", ""], rows)


def _changes_table(nights: Sequence[NightRow], changes: Sequence[ChangeRow]) -> Table | None:
    if not changes:
        return None
    names = {night.id: night.name for night in nights}
    rows = [
        Row(
            f"{each.scenario} on {each.backend or ABSENT}, {each.phase}: {each.metric}",
            [
                _KINDS[each.kind],
                names.get(each.night, ABSENT),
                _level(each, each.before),
                _level(each, each.after),
                "accepted" if each.accepted else "mended" if each.recovered else "open",
            ],
            "" if each.accepted or each.recovered or each.kind == "better" else "amiss",
        )
        for each in reversed(changes)
    ]
    return Table(
        "Changes",
        "What plimsoll regress told, the last one first.",
        ["series", "is", "since", "before", "after", "now"],
        rows,
    )


def _level(change: ChangeRow, value: float) -> str:
    return milliseconds(value) if change.metric.startswith("p") or change.metric == "mean" else f"{value:.4g}"


def _chart(number: int, nights: Sequence[NightRow], medians: Medians) -> Chart | None:
    """Return the p99.9 of each night; None where none is known."""
    if not medians:
        return None
    data = []
    for shade, ((scenario, backend), values) in enumerate(sorted(medians.items())[:_MOST_LINES]):
        name = plotly_text(f"{scenario} on {backend}" if backend else scenario)
        y = [values.get(night.id) for night in nights]
        look = {"mode": "lines+markers", "line": {"color": colour_of(shade)}, "connectgaps": False}
        hover = [
            f"{name}: {milliseconds(value)}, {plotly_text(night.name)}" if value else ""
            for night, value in zip(nights, y, strict=True)
        ]
        data.append(
            points(
                name,
                [float(n) for n in range(1, len(nights) + 1)],
                y,
                hovertext=hover,
                hoverinfo="text",
                **look,
            )
        )
    left_out = len(medians) - _MOST_LINES
    return Chart(
        f"nights-{number}",
        "p99.9, night by night",
        "The median of the fit runs of a night, all phases together."
        + (f" {left_out} further series are not drawn." if left_out > 0 else ""),
        data,
        layout(axis("night"), axis("p99.9 (ms)"), showlegend=True),
    )
