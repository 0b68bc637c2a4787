"""host.csv of a run, read once for all that a report makes of it."""

import re
from dataclasses import dataclass

from plimsoll.analysis.evidence.poolwork import is_pool_work
from plimsoll.analysis.report.host_subjects import SUBJECTS
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.directory import RunDirectory
from plimsoll.rundir.hostfile import HostSamples, read_samples
from plimsoll.rundir.names import HOST_FILE

LATENCY = re.compile(r"diskstats\.(.+)_read_latency_ms", re.DOTALL)
ARC_HITS = "arcstats.hit_percent"
_DRAWN = [
    re.compile(pattern, re.DOTALL)
    for subject in SUBJECTS
    for row in subject.rows
    for pattern in (row.column, row.beside)
    if pattern
]


@dataclass(frozen=True)
class HostCounters:
    """What the observers counted, as far as a report shows it; `trouble` says why it cannot be read."""

    samples: HostSamples
    trouble: str | None = None


def counters_of(run: RunDirectory) -> HostCounters:
    """Read host.csv of `run`; it holds nothing where there is none, or where it is damaged."""
    try:
        return HostCounters(read_samples(run.path / HOST_FILE, _is_shown))
    except RunDirectoryError as error:
        return HostCounters(HostSamples(), str(error))


def _is_shown(name: str) -> bool:
    return (
        name == ARC_HITS
        or bool(LATENCY.fullmatch(name))
        or is_pool_work(name)
        or any(each.fullmatch(name) for each in _DRAWN)
    )
