"""Damage and contradictions in one run directory: its figures are of less than they seem."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from analysis.report.cautions import Caution
from analysis.report.measured_run import MeasuredRun
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.severity import Severity
from plimsoll.common.units import counted, seconds
from plimsoll.rundir.hostfile import host_lines, names_in
from plimsoll.rundir.names import HOST_FILE

_MOST_NAMES = 4
_NO_NUMBER = re.compile(  # NaN and inf too, and what is beyond all measure
    r"[^,\r\n]*[^0-9eE+\-.,\r\n][^,\r\n]*|[^,\r\n]*[eE]\+?0*(?:[3-9]\d|[1-9]\d{2,})(?=[,\r\n]|$)"
)
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


@dataclass
class _HostFile:
    """How many samples host.csv has, how many of them within the run, and what is damaged in it."""

    samples: int = 0
    within: int = 0
    no_numbers: int = 0
    damaged: int = 0


def _host(run: MeasuredRun) -> Iterator[tuple[Severity, str]]:
    found = _read_host(run.directory.path / HOST_FILE, (run.elapsed_s + _CLOCK_SLACK_S) * 1e9)
    if found is None:
        return
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
    if found.within * 2 < found.samples:
        yield (
            Severity.WARN,
            f"host.csv: only {found.within:,} of {counted(found.samples, 'sample')} lie within the run's "
            "own time: the clocks of the load generator and of the host disagree, so what the counters show "
            "did not happen when it seems. Keep both in step (NTP).",
        )


def _read_host(path: Path, end_ns: float) -> _HostFile | None:
    lines, found = host_lines(path), _HostFile()
    try:
        commas = len(names_in(next(lines, ""))) - 1
        for line in lines:
            if line.count(",") == commas:
                first = line.partition(",")[0]
                if _is_number(first):
                    found.samples += 1
                    found.within += -_CLOCK_SLACK_S * 1e9 <= float(first) <= end_ns
                found.no_numbers += len(_NO_NUMBER.findall(line))
            elif line.strip():
                found.damaged += 1
    except RunDirectoryError:
        return None  # the report says so where it reads the disks' counters
    return found


def _is_number(field: str) -> bool:
    return bool(field) and not _NO_NUMBER.fullmatch(field) and bool(re.fullmatch(r"[+-]?\d+(\.\d*)?", field))


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
