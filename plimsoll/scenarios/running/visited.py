"""What visits of one kind felt of an outage: from instants and answers to seconds. Pure.

All instants are nanoseconds of one clock. A visit counts where it was due: so a generator that is late, or a
server that holds answers back, moves no edge of an outage.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

GOOD = "none"
HELD_BACK = "held_back"  # not sent, since many before it had no answer yet: it says nothing
MAINTENANCE = "upgrade_locked"  # what running.recognition calls WordPress's maintenance page
_NS = 1e6  # of a millisecond


@dataclass(frozen=True)
class Visit:
    """One page that was asked for; `error` is a name of `errors.json`, `status` 0 where no answer came."""

    page: str
    due_ns: int
    start_ns: int
    done_ns: int
    status: int
    error: str

    @property
    def is_good(self) -> bool:
        """True if the page came, and was a page."""
        return self.error == GOOD


@dataclass(frozen=True)
class Outage:
    """From the first bad visit to the first good one after it, each where it was due.

    `stop_ns` is None where none was good any more. `maintenance_ns` is the part whose visits got the
    maintenance page.
    """

    start_ns: int
    stop_ns: int | None
    maintenance_ns: int


@dataclass(frozen=True)
class Felt:
    """Figures in ms. None where there is none: no good page, no outage, or one that did not end."""

    outage_ms: float
    maintenance_ms: float
    longest_gap_ms: float | None
    first_good_ms: float | None
    ended_ns: int
    is_over: bool


def outages(visits: Iterable[Visit], end_ns: int) -> list[Outage]:
    """Return the outages in `visits`, in order; one that is not over by `end_ns` counts to there."""
    sent = (visit for visit in visits if visit.error != HELD_BACK)
    ordered = sorted(sent, key=lambda visit: visit.due_ns)
    found: list[Outage] = []
    start_ns: int | None = None
    maintenance_ns = 0
    for index, visit in enumerate(ordered):
        if visit.is_good:
            if start_ns is not None:
                found.append(Outage(start_ns, visit.due_ns, maintenance_ns))
            start_ns, maintenance_ns = None, 0
            continue
        start_ns = visit.due_ns if start_ns is None else start_ns
        next_ns = ordered[index + 1].due_ns if index + 1 < len(ordered) else max(end_ns, visit.due_ns)
        maintenance_ns += (next_ns - visit.due_ns) if visit.error == MAINTENANCE else 0
    if start_ns is not None:
        found.append(Outage(start_ns, None, maintenance_ns))
    return found


def felt(visits: Sequence[Visit], since_ns: int, end_ns: int) -> Felt:
    """Return what `visits` felt until `end_ns`.

    The longest gap is between two good pages that came one after the other. `first_good_ms` is from
    `since_ns` until the first good page after the last outage had come.
    """
    found = outages(visits, end_ns)
    last = found[-1] if found else None
    good = sorted((visit for visit in visits if visit.is_good), key=lambda visit: visit.done_ns)
    gaps = [(later.done_ns - before.done_ns) / _NS for before, later in pairwise(good)]
    if last and last.stop_ns is None and good:
        gaps.append((max(end_ns, good[-1].done_ns) - good[-1].done_ns) / _NS)
    first = None
    if last and last.stop_ns is not None:
        stop_ns = last.stop_ns
        first = (min(visit.done_ns for visit in good if visit.due_ns >= stop_ns) - since_ns) / _NS
    return Felt(
        outage_ms=sum((_stop(one, end_ns) - one.start_ns) / _NS for one in found),
        maintenance_ms=sum(one.maintenance_ns / _NS for one in found),
        longest_gap_ms=max(gaps, default=None),
        first_good_ms=first,
        ended_ns=_stop(last, end_ns) if last else end_ns,
        is_over=last is None or last.stop_ns is not None,
    )


def episodes(found: Iterable[Outage], end_ns: int, apart_ns: int) -> list[tuple[int, int]]:
    """Return from when to when outages lasted, those less than `apart_ns` apart as one.

    Where some pages are served from a cache and others are not, an outage is many short ones.
    """
    joined: list[tuple[int, int]] = []
    for one in found:
        stop_ns = _stop(one, end_ns)
        if joined and one.start_ns - joined[-1][1] < apart_ns:
            joined[-1] = joined[-1][0], stop_ns
        else:
            joined.append((one.start_ns, stop_ns))
    return joined


def _stop(one: Outage, end_ns: int) -> int:
    return max(end_ns, one.start_ns) if one.stop_ns is None else one.stop_ns
