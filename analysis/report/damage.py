"""Damage and contradictions in one run directory: its figures are of less than they seem."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from analysis.report.cautions import Caution
from analysis.report.measured_run import MeasuredRun
from plimsoll.common.severity import Severity
from plimsoll.common.units import counted, seconds
from plimsoll.rundir.names import EVENTS_FILE, HOST_FILE

_MOST_NAMES = 4
_LARGEST_BYTES = 256 << 20
_NO_NUMBER = re.compile(r"[^,\r\n]*[^0-9eE+\-.,\r\n][^,\r\n]*")  # NaN and inf too
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
            f"Values of {names} in events.jsonl are no figures (NaN, a word, or of a second unit) and are "
            "left out of all figures.",
        )
    try:
        lines = (run.directory.path / EVENTS_FILE).read_bytes().splitlines(keepends=True)
    except OSError:
        return
    whole = [line for line in lines if line.strip() and line.endswith(b"\n")]  # a last one may be cut off
    lost = len(whole) - len(run.directory.events)
    if lost > 0:
        yield Severity.WARN, f"{counted(lost, 'line')} of events.jsonl cannot be read: events may be missing."


@dataclass(frozen=True)
class _HostFile:
    """The instants of host.csv, and what is damaged in it."""

    instants_ns: list[float]
    no_numbers: int
    damaged: int


def _host(run: MeasuredRun) -> Iterator[tuple[Severity, str]]:
    found = _read_host(run.directory.path / HOST_FILE)
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
    end_ns = (run.elapsed_s + _CLOCK_SLACK_S) * 1e9
    within = sum(-_CLOCK_SLACK_S * 1e9 <= t_ns <= end_ns for t_ns in found.instants_ns)
    if found.instants_ns and within * 2 < len(found.instants_ns):
        yield (
            Severity.WARN,
            f"host.csv: only {within:,} of {counted(len(found.instants_ns), 'sample')} lie within the run's "
            "own time: the clocks of the load generator and of the host disagree, so what the counters show "
            "did not happen when it seems. Keep both in step (NTP).",
        )


def _read_host(path: Path) -> _HostFile | None:
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return None
    head, _, body = text.rpartition("\n")[0].partition("\n")
    names = next(csv.reader([head]), [])
    if names[:1] != ["t_ns"]:
        return None
    lines = [line for line in body.splitlines() if line.strip()]
    whole = [line for line in lines if line.count(",") == len(names) - 1]
    instants = [float(first) for line in whole if _is_number(first := line.partition(",")[0])]
    strange = sum(len(_NO_NUMBER.findall(line)) for line in whole)
    return _HostFile(instants, strange, len(lines) - len(whole))


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
