"""What is known of each kind of request: counts, sums, The Grinder's columns, and what came back. Pure."""

from dataclasses import asdict, dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.percentiles import Groups, Sample, TimeFigures
from plimsoll.analysis.statistics.requests import TOO_MANY, CountedRequests
from plimsoll.rundir.records import SENT_TO_LOGIN, Records

_NUMBERS = 1 << 16  # a route is a 16-bit number
# What a request came to: 0 without a whole response, else the class of its status; 6 is "too many requests".
FAILED, REFUSED = 0, 6
KINDS = 7
_SIZE_TOLERANCE_BITS = 2  # a quarter: pages vary: nonces, dates, "3 hours ago"
_SIZE_SLACK_BYTES = 512
_Small = np.uint8


@dataclass(frozen=True)
class GrinderRow:
    """One line of The Grinder's table. Times are service times of the requests without an error."""

    tests: int
    errors: int
    mtt_ms: float | None
    ttsd_ms: float | None
    tps: float | None
    rbps: float | None
    mttfb_ms: float | None


@dataclass(frozen=True)
class RouteFigures:
    """One route (or all of them). Response times count failures at their time-out, like everywhere.

    `errors` counts requests without a whole response, `failures` wrong answers too.
    """

    requests: int
    errors: int
    failures: int
    status_mismatch: int
    bytes_mismatch: int
    response_ms: TimeFigures
    grinder: GrinderRow

    def as_json(self) -> dict[str, object]:
        """Return what `plimsoll report --json` prints of the route."""
        return {**asdict(self), "response_ms": self.response_ms.as_json()}


class RouteTotals:
    """Running totals by route; all arrays have shape (65536,)."""

    def __init__(self) -> None:
        self.requests = np.zeros(_NUMBERS, dtype=np.int64)
        self.tests = np.zeros(_NUMBERS, dtype=np.int64)
        self.failures = np.zeros(_NUMBERS, dtype=np.int64)
        self.status_mismatch = np.zeros(_NUMBERS, dtype=np.int64)
        self.bytes_mismatch = np.zeros(_NUMBERS, dtype=np.int64)
        self.body_bytes = np.zeros(_NUMBERS)
        self.first_bytes = np.zeros(_NUMBERS, dtype=np.int64)
        self.ttfb_us = np.zeros(_NUMBERS)
        self.mean_us = np.zeros(_NUMBERS)
        self.squares = np.zeros(_NUMBERS)  # Σ(x − mean)²
        self.response = Groups()

    def add(self, counted: CountedRequests) -> None:
        """Add more requests, one at least."""
        route, error, status, logged_status, body_bytes, logged_bytes = map(
            counted.column, ("route", "error", "status", "logged_status", "bytes", "logged_bytes")
        )
        whole, failures = error == 0, counted.failures
        sent_to_login = (counted.column("flags") & SENT_TO_LOGIN) != 0  # a mismatch, whatever the log has
        judged = whole & ((logged_status != 0) | sent_to_login)
        same = (status == logged_status) & ~sent_to_login
        other_size = judged & same & (logged_bytes >= 0) & (body_bytes != logged_bytes)
        self.requests += np.bincount(route, minlength=_NUMBERS)
        self.body_bytes += np.bincount(route, np.maximum(body_bytes, 0), _NUMBERS)
        self.status_mismatch += np.bincount(route[judged & ~same], minlength=_NUMBERS)
        self.bytes_mismatch += np.bincount(route[other_size], minlength=_NUMBERS)
        self.failures += np.bincount(route[failures], minlength=_NUMBERS)
        self.response.add(route, counted.response_us, failures, counted.wrong)
        total_us, ttfb_us = counted.total_us, counted.column("ttfb_us")
        if not whole.all():
            route, total_us, ttfb_us = route[whole], total_us[whole], ttfb_us[whole]
        if len(route):
            self._add_services(route, total_us, ttfb_us)

    def _add_services(
        self,
        route: NDArray[np.uint16],
        total_us: NDArray[np.uint32],
        ttfb_us: NDArray[np.uint32],
    ) -> None:
        """Add the service times of a block of requests without an error; all arrays have shape (n,).

        Means and squares are merged as in Chan, Golub and LeVeque (Updating Formulae and a Pairwise Algorithm
        for Computing Sample Variances, 1979): no difference of large sums.
        """
        tests = np.bincount(route, minlength=_NUMBERS)
        mean_us = np.bincount(route, total_us, _NUMBERS) / np.maximum(tests, 1)
        squares = np.bincount(route, np.square(total_us - mean_us[route]), _NUMBERS)
        both = np.maximum(self.tests + tests, 1)
        delta = mean_us - self.mean_us
        self.squares += squares + np.square(delta) * self.tests * tests / both
        self.mean_us += delta * tests / both
        self.tests += tests
        self.first_bytes += np.bincount(route[ttfb_us > 0], minlength=_NUMBERS)
        self.ttfb_us += np.bincount(route, ttfb_us, _NUMBERS)

    def used(self) -> list[int]:
        """Return the numbers of the routes that were requested, ascending."""
        return [int(number) for number in np.flatnonzero(self.requests)]

    def figures(self, number: int, elapsed_s: float) -> RouteFigures:
        """Return the figures of one route; `elapsed_s` is the time that the whole run took."""
        return self._figures(np.array([number]), Sample.of_times(self.response.of(number)), elapsed_s)

    def all_figures(self, response: Sample, elapsed_s: float) -> RouteFigures:
        """Return the figures of all routes together; `response` is every response time of the run."""
        return self._figures(np.array(self.used(), dtype=np.int64), response, elapsed_s)

    def _figures(self, numbers: NDArray[np.int64], response: Sample, elapsed_s: float) -> RouteFigures:
        requests = int(self.requests[numbers].sum())
        tests = int(self.tests[numbers].sum())
        return RouteFigures(
            requests=requests,
            errors=requests - tests,
            failures=int(self.failures[numbers].sum()),
            status_mismatch=int(self.status_mismatch[numbers].sum()),
            bytes_mismatch=int(self.bytes_mismatch[numbers].sum()),
            response_ms=response.tail(),
            grinder=self._grinder(numbers, tests, requests - tests, elapsed_s),
        )

    def _grinder(self, numbers: NDArray[np.int64], tests: int, errors: int, elapsed_s: float) -> GrinderRow:
        weights, means = self.tests[numbers], self.mean_us[numbers]
        mean_us = float((weights * means).sum()) / tests if tests else 0.0
        squares = float((self.squares[numbers] + weights * np.square(means - mean_us)).sum())
        first_bytes = int(self.first_bytes[numbers].sum())
        timed = elapsed_s > 0
        return GrinderRow(
            tests=tests,
            errors=errors,
            mtt_ms=mean_us / 1000 if tests else None,
            ttsd_ms=float(np.sqrt(squares / tests)) / 1000 if tests else None,
            tps=tests / elapsed_s if timed else None,
            rbps=float(self.body_bytes[numbers].sum()) / elapsed_s if timed else None,
            mttfb_ms=float(self.ttfb_us[numbers].sum()) / first_bytes / 1000 if first_bytes else None,
        )


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
        self._log_bytes: NDArray[np.float64] = np.zeros(_NUMBERS)

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
        self._log_bytes += np.bincount(route, weights=weights, minlength=_NUMBERS)

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
