"""The series of the observers and of the saturator, by the second, on the time axis of the saturator."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.evidence.host_rows import LATENCY
from plimsoll.analysis.evidence.poolwork import named_facts
from plimsoll.analysis.report.measured_run import ReportRun

# What is beyond was written by no observer of ours.
_MOST_MS, _LATEST_NS = 1e9, float(1 << 61)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """Values at instants, in seconds since the saturator started; both have shape (n,), no value is NaN."""

    t_s: Floats
    value: Floats

    def between(self, from_s: float, to_s: float) -> Floats:
        """Return the values from one instant to before another."""
        return self.value[(self.t_s >= from_s) & (self.t_s < to_s)]


_NOTHING = Series(np.empty(0), np.empty(0))


def send_of(run: ReportRun) -> Series:
    """Return the saturator's throughput in bytes a second, each at the middle of its second."""
    busy = run.saturation
    if busy is None or not busy.bytes_per_s:
        return _NOTHING
    t_ns, value = (np.array(column, dtype=np.float64) for column in zip(*busy.bytes_per_s, strict=True))
    return Series((t_ns - busy.start_ns) / 1e9 - 0.5, value)


def disk_latency_of(run: ReportRun) -> tuple[Series, str | None]:
    """Return the mean time of a read in ms, over the storage's disks, and what is wrong with host.csv.

    Where run.json does not say which disks those are, or none of them was observed, over all disks.
    """
    own, host = own_disks(run), run.host
    columns = host.samples.columns
    disks = {name: found[1] for name in columns if (found := LATENCY.fullmatch(name))}
    chosen = [name for name, disk in disks.items() if disk in own] or list(disks)
    t_ns = columns.get("t_ns")
    if t_ns is None or not chosen:
        return _NOTHING, host.trouble
    table = np.array([columns[name] for name in chosen], dtype=np.float64)
    known = np.abs(table) < _MOST_MS  # neither is NaN
    count = known.sum(axis=0)
    there = (count > 0) & (np.abs(t_ns) < _LATEST_NS)
    mean: Floats = np.where(known, table, 0.0).sum(axis=0)[there] / count[there]
    return Series((t_ns[there] - zero_ns(run)) / 1e9, mean), None


def done_of(run: ReportRun) -> Series:
    """Return the requests done a second, in each slice of the run's whole seconds."""
    timeline = run.statistics.timeline
    slots = np.arange(timeline.used, dtype=np.float64)
    t_s: Floats = (slots + 0.5) * timeline.width_s - zero_ns(run) / 1e9
    per_s: Floats = timeline.done[: timeline.used] / timeline.width_s
    zero_s = zero_ns(run) / 1e9
    whole = (t_s >= np.ceil(-zero_s)) & (t_s < np.floor(timeline.used * timeline.width_s - zero_s))
    return Series(t_s[whole], per_s[whole])


def zero_ns(run: ReportRun) -> int:
    """Return the instant from which time is counted: the saturator's start, else that of the run."""
    return run.saturation.start_ns if run.saturation else 0


def own_disks(run: ReportRun) -> set[str]:
    """Return the kernel's names (hostile) of the storage's disks; none where run.json does not say."""
    return {device.removeprefix("/dev/") for device in named_facts(run.directory, "disks", "device")}


def own_pools(run: ReportRun) -> set[str]:
    """Return the names (hostile) of the storage's pools; none where run.json does not say."""
    return named_facts(run.directory, "pools", "pool")
