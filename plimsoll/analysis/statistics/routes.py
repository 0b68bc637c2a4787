"""Totals of each kind of request: counts, sums, and The Grinder's columns."""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.percentiles import Groups, Sample, TimeFigures
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.rundir.records import SENT_TO_LOGIN

_NUMBERS = 1 << 16  # a route is a 16-bit number


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
