"""What has ended: runs measured once and kept, two runs side by side, histories of nights.

One run is measured at a time, so that no load beside it is disturbed. Nothing is written into a history, not
even what SQLite would write.
"""

import sqlite3
import statistics
import tempfile
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.analysis.evidence.run import DetailedRun
from plimsoll.analysis.page.chart import Chart, axis, colour_of, layout, points
from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.regress.nights import ChangeRow, NightRow, RunRow
from plimsoll.analysis.regress.schema import APPLICATION_ID, MIGRATIONS
from plimsoll.analysis.regress.store import HistoryStore
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import number_runs
from plimsoll.common.errors import DamagedFileError, HistoryError
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import ABSENT, count, milliseconds, seconds, share, significant
from plimsoll.rundir.names import READ
from plimsoll.rundir.read import RunDirectory
from plimsoll.serve.catalogue import is_inside

_MOST_RUNS, _MOST_REPORTS = 12, 3  # a report is some 5 MB
_Kept = TypeVar("_Kept")
Stamp = tuple[tuple[str, int, int], ...]

NO_VERDICT = (
    "Two runs show what happened, not what to expect. A verdict takes four runs a side or more: plimsoll "
    "compare."
)
_TIMES = (("response", ("p50", "p90", "p99", "p99.9", "max")), ("service", ("p99.9",)), ("lag", ("p99.9",)))
_NAMES = {"max": "slowest"}
_MOST_LINES = 8
_KINDS = {"worse": "slower or worse", "better": "better", "baseline": "beyond its limit"}
Medians = dict[tuple[str, str], dict[int, float]]  # by scenario and backend, by night


class RunCache:
    """Measures runs in the folder `root`."""

    def __init__(self, root: Path) -> None:
        self._root, self._lock = root, threading.Lock()
        self._runs: OrderedDict[Stamp, DetailedRun] = OrderedDict()
        self._reports: OrderedDict[Stamp, bytes] = OrderedDict()

    def measure(self, paths: Sequence[Path]) -> list[ReportRun]:
        """Return the runs, numbered, as a report has them. Raises RunDirectoryError."""
        with self._lock:
            return number_runs(
                [
                    _remember(self._runs, self._stamp(each), partial(_measure, each), _MOST_RUNS)
                    for each in paths
                ]
            )

    def report(self, path: Path) -> bytes:
        """Return the report on a run; nothing is written into its folder. Raises PlimsollError."""
        with self._lock:
            return _remember(self._reports, self._stamp(path), lambda: _report(path), _MOST_REPORTS)

    def _stamp(self, path: Path) -> Stamp:
        """Return what changes when a run does; also checks that none of it leads out of the folder."""
        found = [(str(path), 0, 0)]
        for name in READ:
            if not is_inside(self._root, path / name):
                raise DamagedFileError(f"{path / name}: leads out of the folder that is served")
            try:
                facts = (path / name).stat()
            except OSError:
                continue
            found.append((name, facts.st_mtime_ns, facts.st_size))
        return tuple(found)


def _remember(kept: "OrderedDict[Stamp, _Kept]", stamp: Stamp, make: Callable[[], _Kept], most: int) -> _Kept:
    if stamp not in kept:
        kept[stamp] = make()
    kept.move_to_end(stamp)
    while len(kept) > most:
        kept.popitem(last=False)
    return kept[stamp]


def _measure(path: Path) -> DetailedRun:
    return measure_in_detail(RunDirectory.open(path), sliced=True)


def _report(path: Path) -> bytes:
    with tempfile.TemporaryDirectory(prefix="plimsoll-serve-") as folder:
        return make_report([path], Path(folder) / "report.html").path.read_bytes()


@dataclass(frozen=True)
class _Figure:
    name: str
    of: Callable[[ReportRun], float | None]
    shown: Callable[[ReportRun], str]


def side_by_side(first: ReportRun, second: ReportRun) -> Table:
    """Return the figures of two runs, and how many times as much the second has."""
    rows = [
        Row(each.name, [each.shown(first), each.shown(second), _factor_text(each.of(first), each.of(second))])
        for each in _figures()
    ]
    columns = ["", _column(first, second), _column(second, first), "second ÷ first"]
    caption = "All requests outside the warm-up. Failures count at their time-out; what is ≥ is one of them."
    return Table("Side by side", caption, columns, rows)


def find_differences(first: ReportRun, second: ReportRun) -> list[str]:
    """Return in what the two runs differ (hostile)."""
    one, other = first.directory.facts, second.directory.facts
    found = []
    if one.scenario != other.scenario:
        found.append(f"They are other scenarios: {one.scenario} and {other.scenario}.")
    if one.load and other.load and one.load.digest != other.load.digest:
        keys = sorted(
            key
            for key in {*one.load.settings, *other.load.settings}
            if one.load.settings.get(key) != other.load.settings.get(key)
        )
        found.append(f"Their loads differ: {', '.join(keys[:12]) or 'in more than their settings'}.")
    for run in (first, second):
        if run.status != "complete":
            found.append(f"{run.label} is {run.status}.")
        if run.generator_limited:
            found.append(f"{run.label} was limited by its load generator.")
    return found


def _figures() -> list[_Figure]:
    figures = [
        _Figure(
            "requests", lambda run: float(run.statistics.requests), lambda run: count(run.statistics.requests)
        ),
        _Figure(
            "failed",
            lambda run: float(run.statistics.failures),
            lambda run: share(run.statistics.failures, run.statistics.requests),
        ),
        _Figure(
            "requests/s",
            lambda run: run.statistics.requests / run.elapsed_s if run.elapsed_s else None,
            lambda run: significant(run.statistics.requests / run.elapsed_s) if run.elapsed_s else ABSENT,
        ),
        _Figure("took", lambda run: run.elapsed_s, lambda run: seconds(run.elapsed_s)),
    ]
    for sample, names in _TIMES:
        figures += [_time(sample, name) for name in names]
    return figures


def _time(sample: str, name: str) -> _Figure:
    return _Figure(
        f"{sample} {_NAMES.get(name, name)}",
        lambda run: run.statistics.samples[sample].figures()[name],
        lambda run: run.statistics.samples[sample].figures().shown(name, milliseconds),
    )


def _factor_text(first: float | None, second: float | None) -> str:
    return ABSENT if not first or second is None else f"× {significant(second / first)}"


def _column(run: ReportRun, other: ReportRun) -> str:
    return run.label if run.label != other.label else run.directory.path.name


@dataclass(frozen=True)
class NightHistory:
    """The nights of one experiment (hostile name; empty where there was none)."""

    name: str
    nights: Table
    changes: Table | None
    chart: Chart | None


def read_nights(path: Path) -> list[NightHistory]:
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
            raise HistoryError(f"{path}: is not a history of Plimsoll")
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


def _experiment(history: HistoryStore, number: int, name: str) -> NightHistory:
    nights, runs = history.nights(name), history.runs(name)
    by_run = {
        figure.run: figure.value for figure in history.figures(name, ["p99.9"]) if figure.phase == "whole"
    }
    medians = _medians(runs, by_run)
    changes = history.changes(name)
    return NightHistory(
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
        "The last night first. Fit: runs that something can be decided by. Worse: what was reported that "
        "night for the first time."
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
                "accepted" if each.accepted else "recovered" if each.recovered else "open",
            ],
            "" if each.accepted or each.recovered or each.kind == "better" else "amiss",
        )
        for each in reversed(changes)
    ]
    return Table(
        "Changes",
        "What plimsoll regress reported, latest first.",
        ["series", "is", "since", "before", "after", "now"],
        rows,
    )


def _level(change: ChangeRow, value: float) -> str:
    return milliseconds(value) if change.metric.startswith("p") or change.metric == "mean" else f"{value:.4g}"


def _chart(number: int, nights: Sequence[NightRow], medians: Medians) -> Chart | None:
    """Return the p99.9 of each night, None where it is unknown."""
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
