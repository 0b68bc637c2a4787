"""The answers of a run, route by route: status classes, bodies, and how they agree with the log. Pure."""

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from plimsoll.rundir.requestfile import WARMUP, Records

# What a request came to: 0 without a whole response, else the class of its status; 6 is "too many requests".
FAILED, REFUSED = 0, 6
KINDS = 7
_TOO_MANY = 429
_SIZE_TOLERANCE = 0.25  # pages vary: nonces, dates, "3 hours ago"
_SIZE_SLACK_BYTES = 512


@dataclass
class RouteAnswers:
    """The answers of one route.

    `kinds[kind]` counts requests by what they came to, and `failures` those that failed: without a whole
    response, or with a status of 400 or more where the log has none such (of requests that are in no log:
    500 or more, or 429). Of the others whose status the log has, `judged` is their number, `wrong` how many
    had another class, `sized` of how many the log has the size too, `odd_sizes` and `emptied` how many of
    those had another size, or no body. `bodies` counts answers of the class 200, `empty` those without a
    body, and `log_bytes` is the sum of ln(1 + bytes) over them.
    """

    kinds: NDArray[np.int64] = field(default_factory=lambda: np.zeros(KINDS, dtype=np.int64))
    failures: int = 0
    judged: int = 0
    wrong: int = 0
    sized: int = 0
    odd_sizes: int = 0
    emptied: int = 0
    bodies: int = 0
    empty: int = 0
    log_bytes: float = 0.0

    @property
    def requests(self) -> int:
        """The number of requests."""
        return int(self.kinds.sum())

    def add(self, other: "RouteAnswers") -> None:
        """Count the answers of `other` too."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class AnswerCounter:
    """Counts the answers of one run, block by block; the warm-up is left out.

    `last_answer_ns` is when the last whole response ended, −1 where there was none; `failures_since` how many
    requests were due after it, warm-up included.
    """

    def __init__(self) -> None:
        self.routes: dict[int, RouteAnswers] = {}
        self.last_answer_ns = -1
        self.first_due_ns: int | None = None
        self._failed_due_ns: list[NDArray[np.int64]] = []

    def add(self, block: Records) -> None:
        """Count a block of records."""
        if not len(block):
            return
        self._add_ending(block)
        measured = block[(block["flags"] & WARMUP) == 0]
        if not len(measured):
            return
        route = measured["route"].astype(np.int64)
        for number, part in _by_route(route):
            self.routes.setdefault(number, RouteAnswers()).add(_count(measured[part]))

    def failures_since(self) -> NDArray[np.int64]:
        """Return the sorted due instants (ns) of all requests that failed after the last answer."""
        due = np.concatenate([np.empty(0, dtype=np.int64), *self._failed_due_ns])
        return np.sort(due[due > self.last_answer_ns])

    def _add_ending(self, block: Records) -> None:
        due_ns = block["due_ns"]
        first = int(due_ns.min())
        self.first_due_ns = first if self.first_due_ns is None else min(self.first_due_ns, first)
        whole = block["error"] == 0
        if whole.any():
            took_us = block["lag_us"][whole].astype(np.int64) + block["total_us"][whole]
            self.last_answer_ns = max(self.last_answer_ns, int((due_ns[whole] + took_us * 1000).max()))
            self._failed_due_ns = [each for each in self._failed_due_ns if each[-1] > self.last_answer_ns]
        failed = np.sort(due_ns[~whole])
        failed = failed[failed > self.last_answer_ns]
        if len(failed):
            self._failed_due_ns.append(failed)


def _by_route(route: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
    order = np.argsort(route, kind="stable")
    edges = np.flatnonzero(np.diff(route[order])) + 1
    return [(int(route[part[0]]), part) for part in np.split(order, edges)]


def _count(records: Records) -> RouteAnswers:
    status, logged = records["status"].astype(np.int64), records["logged_status"].astype(np.int64)
    kind, failure = kinds_of(records), failures_in(records)
    judged = ~failure & (logged != 0)
    wrong = judged & (kind != _class(logged))
    size, logged_size = records["bytes"], records["logged_bytes"]
    sized = judged & (status == logged) & (logged_size >= 0)
    odd = sized & (np.abs(size - logged_size) > np.maximum(_SIZE_TOLERANCE * logged_size, _SIZE_SLACK_BYTES))
    good = kind == 2
    return RouteAnswers(
        kinds=np.bincount(kind, minlength=KINDS).astype(np.int64),
        failures=int(failure.sum()),
        judged=int(judged.sum()),
        wrong=int(wrong.sum()),
        sized=int(sized.sum()),
        odd_sizes=int(odd.sum()),
        emptied=int((sized & (size <= 0) & (logged_size > 0)).sum()),
        bodies=int(good.sum()),
        empty=int((good & (size <= 0)).sum()),
        log_bytes=float(np.log1p(np.maximum(size[good], 0)).sum()),
    )


def kinds_of(records: Records) -> NDArray[np.int64]:
    """Return what each request came to, shape (n,): 0 failed, 1 to 5 the class of its status, 6 a 429."""
    return np.where(records["error"] != 0, FAILED, _class(records["status"].astype(np.int64)))


def failures_in(records: Records) -> NDArray[np.bool_]:
    """Return which requests failed, shape (n,); see `RouteAnswers`."""
    status, logged = records["status"].astype(np.int64), records["logged_status"].astype(np.int64)
    unasked = (logged != 0) & (logged < 400) & (status >= 400)
    broken = ((status >= 500) | (status == _TOO_MANY)) & (_class(status) != _class(logged))
    failed: NDArray[np.bool_] = (records["error"] != 0) | unasked | broken
    return failed


def _class(status: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(status == _TOO_MANY, REFUSED, np.clip(status // 100, 0, 5))
