"""The windows of a run, and what each row of the host was then: its worst within two seconds of one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.report.host_bins import rows_of
from plimsoll.analysis.report.host_rows import Depth, HostRow
from plimsoll.analysis.report.host_series import Floats, zero_ns
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.rundir.events import spans

LAG_S = 2  # before a window and after it: clocks differ, and a cause may be counted late
_MOST_EVENTS = 8  # sorts of them
_SATURATORS_OWN = (" bytes", " retry")
_NO_SOURCES = ("warm-up", "interrupt")


@dataclass(frozen=True)
class RunWindows:
    """One run in windows of `width_s` whole seconds, from its start on.

    `slowest_ms` is the slowest response of each, NaN where none was due in it; a source is the worst that it
    was within two seconds of the window, NaN where nobody knows. All arrays have shape (windows,).
    """

    width_s: int
    slowest_ms: Floats
    sources: dict[HostRow, Floats]


def windows_of(run: MeasuredRun) -> RunWindows:
    """Return the windows of a run, of a second each where it is no longer than a quarter of an hour."""
    timeline = run.statistics.timeline
    each = max(round(1 / timeline.width_s), 1)
    count = -(-timeline.used // each)
    slowest_us = np.zeros(count * each)
    slowest_us[: timeline.used] = timeline.slowest_us[: timeline.used]
    due = np.zeros(count * each)
    due[: timeline.used] = timeline.due[: timeline.used]
    slowest_ms = np.where(
        due.reshape(count, each).any(axis=1), slowest_us.reshape(count, each).max(axis=1) / 1000, np.nan
    )
    width_s = max(round(timeline.width_s * each), 1)
    zero_s = zero_ns(run) / 1e9
    busy = run.saturation.name if run.saturation else None
    sources = {
        row: badness(row, _worst(badness(row, value), t_s + zero_s, width_s, count))
        for row, t_s, value, _ in rows_of(run)
        if row.bad and row.saturator != busy
    }
    return RunWindows(width_s, slowest_ms, sources | _events(run, width_s, count))


def badness(row: HostRow, values: Floats) -> Floats:
    """Return values that are higher where they are worse; of those, the values again."""
    return -values if row.bad == "low" else values


def _worst(value: Floats, t_s: Floats, width_s: int, count: int) -> Floats:
    """Return the highest of the samples within two seconds of each window."""
    seconds = np.full(count * width_s + 2 * LAG_S, -np.inf)
    slot = np.floor(np.clip(t_s, -1e9, 1e9)).astype(np.int64) + LAG_S
    there = (slot >= 0) & (slot < len(seconds)) & ~np.isnan(value)
    np.maximum.at(seconds, slot[there], value[there])
    near = np.lib.stride_tricks.sliding_window_view(seconds, width_s + 2 * LAG_S)[::width_s].max(axis=1)
    return np.where(np.isneginf(near), np.nan, near)


def _events(run: MeasuredRun, width_s: int, count: int) -> dict[HostRow, Floats]:
    """Return what was going on besides: 1 where an event of that name (hostile) was within two seconds."""
    found: dict[HostRow, Floats] = {}
    middles_s = (np.arange(count) + 0.5) * width_s
    for name, start_s, stop_s in _spans(run):
        row = _row_of_event(name)
        if row not in found and len(found) == _MOST_EVENTS:
            continue
        reach_s = width_s / 2 + LAG_S
        within = (middles_s >= start_s - reach_s) & (middles_s < stop_s + reach_s)
        found[row] = np.maximum(found.get(row, np.zeros(count)), within)
    return found


def _spans(run: MeasuredRun) -> Iterator[tuple[str, float, float]]:
    busy = run.saturation.name if run.saturation else ""
    own = {busy, *(busy + end for end in _SATURATORS_OWN), *_NO_SOURCES}
    for span in spans(run.directory.events, run.elapsed_s):
        if span.name not in own:
            yield span.name, span.start_s, span.stop_s


def _row_of_event(name: str) -> HostRow:
    said = f"“{name}”"
    return HostRow(name, said, "", "", 0.5, depth=Depth.WORK, near=said, on_off=True)
