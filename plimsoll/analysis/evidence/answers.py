"""The answers of a run, route by route: status classes, bodies, and how they agree with the log. Pure."""

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.requests import TOO_MANY, CountedRequests
from plimsoll.rundir.records import Records

# What a request came to: 0 without a whole response, else the class of its status; 6 is "too many requests".
FAILED, REFUSED = 0, 6
KINDS = 7
_SIZE_TOLERANCE_BITS = 2  # a quarter: pages vary: nonces, dates, "3 hours ago"
_SIZE_SLACK_BYTES = 512
_ROUTES = 1 << 16
_Small = np.uint8


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
    """Counts the answers of one run, block by block; the warm-up is left out."""

    def __init__(self) -> None:
        self._codes: dict[int, int] = {}  # how many requests have a code, by route and code
        self._log_bytes: NDArray[np.float64] = np.zeros(_ROUTES)

    def add(self, counted: CountedRequests) -> None:
        """Count more requests."""
        if not len(counted):
            return
        route = counted.column("route").astype(np.int64)
        kind = kinds_of(counted.records)
        counts = np.bincount(route * _CODES + _codes(counted, kind))
        for key in np.flatnonzero(counts).tolist():
            self._codes[key] = self._codes.get(key, 0) + int(counts[key])
        size = np.maximum(counted.column("bytes"), 0, dtype=np.float32)
        weights = np.where(kind == 2, np.log1p(size), np.float32(0))
        self._log_bytes += np.bincount(route, weights=weights, minlength=_ROUTES)

    def routes(self) -> dict[int, RouteAnswers]:
        """Return the answers of each route, by its number."""
        found: dict[int, RouteAnswers] = {}
        for key, count in self._codes.items():
            number, code = divmod(key, _CODES)
            answers = found.setdefault(number, RouteAnswers(log_bytes=float(self._log_bytes[number])))
            answers.kinds[code % KINDS] += count
            for name in _NAMES[code // KINDS]:
                setattr(answers, name, getattr(answers, name) + count)
        return found


# What a request may be beside its kind, and what it then counts as.
_NAMES: tuple[tuple[str, ...], ...] = (
    (),
    ("failures",),
    ("judged",),
    ("judged", "wrong"),
    ("judged", "sized"),
    ("judged", "sized", "odd_sizes"),
    ("judged", "sized", "emptied"),
    ("judged", "sized", "odd_sizes", "emptied"),
)
_FULL = len(_NAMES)
_NAMES = (
    *_NAMES,
    *((*names, "bodies") for names in _NAMES),
    *((*names, "bodies", "empty") for names in _NAMES),
)
_CODES = len(_NAMES) * KINDS


def _codes(counted: CountedRequests, kind: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a number for all that is counted of a request: kind + `KINDS` × place in `_NAMES`."""
    status, logged, size, logged_size = (
        counted.column(name) for name in ("status", "logged_status", "bytes", "logged_bytes")
    )
    failure = counted.failures
    judged = ~failure & (logged != 0)
    sized = judged & (status == logged) & (logged_size >= 0)
    room = np.maximum(logged_size >> _SIZE_TOLERANCE_BITS, _SIZE_SLACK_BYTES)
    odd = sized & (np.abs(size - logged_size) > room)
    emptied = sized & (size <= 0) & (logged_size > 0)
    wrong = judged & (kind != _class(logged))
    good = kind == 2
    place = np.zeros(len(counted), dtype=_Small)  # the time goes into the width
    for number, where in (
        (1, failure),
        (2, judged),
        (1, wrong),
        (2, sized),
        (1, odd),
        (2, emptied),
        (_FULL, good),
        (_FULL, good & (size <= 0)),
    ):
        place += _Small(number) * where
    return kind + _Small(KINDS) * place


def kinds_of(records: Records) -> NDArray[np.uint8]:
    """Return what each request came to, shape (n,): 0 failed, 1 to 5 the class of its status, 6 a 429."""
    kinds = _class(np.ascontiguousarray(records["status"]))
    kinds[records["error"] != 0] = FAILED
    return kinds


def _class(status: NDArray[np.uint16]) -> NDArray[np.uint8]:
    classes: NDArray[np.uint8] = _CLASSES[status]
    return classes


_CLASSES = np.minimum(np.arange(1 << 16) // 100, 5).astype(_Small)
_CLASSES[TOO_MANY] = REFUSED
