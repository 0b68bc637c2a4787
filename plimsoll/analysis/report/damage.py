"""Damage and contradictions in one run directory: its figures are of less than they seem."""

from collections.abc import Iterator

import numpy as np

from plimsoll.analysis.report.cautions import Caution
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.common.errors import Severity
from plimsoll.common.units import counted, seconds

_MOST_NAMES = 4
_CLOCK_SLACK_S = 1.0


def damage_cautions(run: MeasuredRun) -> list[Caution]:
    """Return what is wrong with the files of `run`, each with what it means. Texts are hostile."""
    found = (*_events(run), *_host(run), *_clock(run), *_names(run))
    return [Caution(level, text) for level, text in found]


def _events(run: MeasuredRun) -> Iterator[tuple[Severity, str]]:
    damaged = run.values.damaged
    if damaged:
        names = ", ".join(damaged[:_MOST_NAMES]) + (" and others" if len(damaged) > _MOST_NAMES else "")
        yield (
            Severity.WARN,
            f"Values of {names} in events.jsonl are no figures (NaN, beyond all measure, a word, or of a "
            "second unit) and are left out of all figures.",
        )
    lost = run.directory.unreadable_events
    if lost:
        yield Severity.WARN, f"{counted(lost, 'line')} of events.jsonl cannot be read: events may be missing."


def _host(run: MeasuredRun) -> Iterator[tuple[Severity, str]]:
    found = run.host.samples
    if found.no_numbers:
        what = "field is no number" if found.no_numbers == 1 else "fields are no numbers"
        yield (
            Severity.WARN,
            f"host.csv: {found.no_numbers:,} {what} (such as NaN) and left out of the counters.",
        )
    if found.damaged:
        yield (
            Severity.WARN,
            f"host.csv: {counted(found.damaged, 'line')} with more or fewer fields than the first: left out.",
        )
    t_ns = found.columns.get("t_ns", np.empty(0))
    samples = int((~np.isnan(t_ns)).sum())
    latest_ns = (run.elapsed_s + _CLOCK_SLACK_S) * 1e9
    within = int(((t_ns >= -_CLOCK_SLACK_S * 1e9) & (t_ns <= latest_ns)).sum())
    if within * 2 < samples:
        yield (
            Severity.WARN,
            f"host.csv: only {within:,} of {counted(samples, 'sample')} lie within the run's "
            "own time: the clocks of the load generator and of the host disagree, so what the counters show "
            "did not happen when it seems. Keep both in step (NTP).",
        )


def _clock(run: MeasuredRun) -> Iterator[tuple[Severity, str]]:
    facts = run.directory.facts
    if facts.started_at is None or facts.ended_at is None:
        return
    lasted_s = (facts.ended_at - facts.started_at).total_seconds()
    if lasted_s < run.elapsed_s - _CLOCK_SLACK_S:
        says = "that it ended before it began" if lasted_s < 0 else f"{seconds(lasted_s)}"
        yield (
            Severity.WARN,
            f"By the clock's instants the run took {says}, by its requests {seconds(run.elapsed_s)}: the "
            "clock was set meanwhile. Times are right (they come from another clock), the date and the place "
            "among other runs may not be.",
        )


def _names(run: MeasuredRun) -> Iterator[tuple[Severity, str]]:
    known = len(run.directory.routes)
    nameless = sum(int(name.partition(" ")[0]) > known for name in run.statistics.routes)
    if nameless:
        yield (
            Severity.NOTE,
            f"routes.json has no name for {counted(nameless, 'route')}: they are called by their numbers.",
        )
