"""Measures by phase: begun before the saturator started, while it ran, or after it stopped. Pure."""

from collections.abc import Iterable

from plimsoll.analysis.statistics.phases import NEVER_NS, PHASES
from plimsoll.common.hostile import is_figure
from plimsoll.rundir.events import Event, Saturation

_NS = {"ms": 1e6, "s": 1e9}  # of a measure that is a time


def began_ns(event: Event) -> int:
    """Return when what a measure tells of began: of a time, that much before it was written.

    So a measure belongs to a phase as a request does, which counts where it was due.
    """
    value, unit = event.further.get("value"), event.further.get("unit")
    if not isinstance(unit, str) or unit not in _NS or not is_figure(value):
        return event.t_ns
    return max(event.t_ns - int(min(float(value) * _NS[unit], float(event.t_ns))), 0)


def edges_ns(phase: str, busy: Saturation | None) -> tuple[int, int]:
    """Return from when to before when a phase lasts; what is none of `PHASES` is the whole run."""
    start_ns = busy.start_ns if busy else NEVER_NS
    stop_ns = NEVER_NS if busy is None or busy.stop_ns is None else max(busy.stop_ns, start_ns)
    edges = {"before": (0, start_ns), "during": (start_ns, stop_ns), "after": (stop_ns, NEVER_NS << 1)}
    return edges.get(phase, (0, NEVER_NS << 1))


def measures_in(events: Iterable[Event], phase: str, busy: Saturation | None) -> list[Event]:
    """Return the events of measures that belong to `phase`, damaged ones too."""
    from_ns, to_ns = edges_ns(phase, busy)
    return [event for event in events if event.name == "measure" and from_ns <= began_ns(event) < to_ns]


def measures_by_phase(events: Iterable[Event], busy: Saturation | None) -> dict[str, list[Event]]:
    """Return the events of measures by phase, phases without any left out; none where nothing saturated."""
    if busy is None:
        return {}
    known = [event for event in events if event.name == "measure"]
    return {phase: found for phase in PHASES if (found := measures_in(known, phase, busy))}
