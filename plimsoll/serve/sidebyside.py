"""Two runs side by side: a table of their figures, and what a reader has to know first. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.common.units import ABSENT, count, milliseconds, seconds, share, significant

NO_VERDICT = (
    "Two runs show what happened, not what to expect. A verdict takes four runs a side or more: plimsoll "
    "compare."
)
_TIMES = (("response", ("p50", "p90", "p99", "p99.9", "max")), ("service", ("p99.9",)), ("lag", ("p99.9",)))
_NAMES = {"max": "slowest"}


@dataclass(frozen=True)
class _Figure:
    name: str
    of: Callable[[MeasuredRun], float | None]
    shown: Callable[[MeasuredRun], str]


def side_by_side(first: MeasuredRun, second: MeasuredRun) -> Table:
    """Return the figures of two runs, and how many times as much the second has."""
    rows = [
        Row(each.name, [each.shown(first), each.shown(second), _times(each.of(first), each.of(second))])
        for each in _figures()
    ]
    columns = ["", _column(first, second), _column(second, first), "second ÷ first"]
    caption = "All requests outside the warm-up. Failures count at their time-out; what is ≥ is one of them."
    return Table("Side by side", caption, columns, rows)


def differences_of(first: MeasuredRun, second: MeasuredRun) -> list[str]:
    """Return in what the two are no pair (hostile)."""
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
            found.append(f"{run.name} is {run.status}.")
        if run.generator_limited:
            found.append(f"{run.name} was limited by its load generator.")
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


def _times(first: float | None, second: float | None) -> str:
    return ABSENT if not first or second is None else f"× {significant(second / first)}"


def _column(run: MeasuredRun, other: MeasuredRun) -> str:
    return run.name if run.name != other.name else run.directory.path.name
