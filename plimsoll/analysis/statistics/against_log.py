"""A replay held against the log that it replays: is the clone under replay as production was?

The same requests stand on both sides: each request of the replay is paired with the line that it came from.
Logged durations and service times are compared as distributions (quantile against quantile: Wilk and
Gnanadesikan, Biometrika 55, 1968), not request by request: whose request met the stall is chance. No
confidence is given, since there is one production.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.percentiles import COARSE, PERCENTILES, FailedTimes, Microseconds, Sample
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.read import RunDirectory

QUANTILES = ("p50", "p90", "p95", "p99", "p99.9")
APART = 2.0  # a quantile that differs by more than this factor is spoken of
_LINE_BITS = 48
_NO_FILE = 0xFFFF
_LEAST_REQUESTS = 1000  # of a route, to stand by itself
_MOST_ROUTES = 12


@dataclass(frozen=True)
class Held:
    """Quantiles of one kind of requests, by name, in ms: of the log, and of the replay's service times.

    None where there are too few requests, or where so many failed that it is a failure's. `ratios` are
    replayed/logged; None also where the log's durations are too coarse. `curve` has (1/(1−q), logged,
    replayed).
    """

    name: str
    requests: int
    failures: int
    logged_ms: dict[str, float | None]
    replayed_ms: dict[str, float | None]
    ratios: dict[str, float | None]
    curve: list[tuple[float, float, float]]

    def as_json(self) -> dict[str, object]:
        """Return it for `--json`, without the curve."""
        return {
            "name": self.name,
            "requests": self.requests,
            "failures": self.failures,
            "logged_ms": self.logged_ms,
            "replayed_ms": self.replayed_ms,
            "ratios": self.ratios,
        }


@dataclass(frozen=True)
class HeldRun:
    """A replay, held against its log: all requests, and the routes with enough of them (names are hostile).

    `unpaired` counts those whose line is not in the import. `speed` is run.json's.
    """

    run: str
    speed: str | None
    unpaired: int
    total: Held
    routes: list[Held]

    @property
    def apart(self) -> dict[str, float]:
        """The ratios of all requests that are over `APART`, or under 1/`APART`, by quantile."""
        known = {name: ratio for name, ratio in self.total.ratios.items() if ratio}
        return {name: ratio for name, ratio in known.items() if max(ratio, 1 / ratio) > APART}

    def as_json(self) -> dict[str, object]:
        """Return it for `--json`."""
        return {
            "run": self.run,
            "speed": self.speed,
            "unpaired": self.unpaired,
            "total": self.total.as_json(),
            "routes": [each.as_json() for each in self.routes],
        }


@dataclass(frozen=True)
class LoggedTimes:
    """The durations of an imported log: `lines` sorted, and `took_us` of each; 12 bytes a request.

    `sums` are the SHA-256 of its files, by which a replay of the same text is known under any name.
    `finest_us` is what all durations are multiples of.
    """

    lines: NDArray[np.uint64]
    took_us: Microseconds
    sums: Sequence[str]
    finest_us: float

    @classmethod
    def of(cls, run: RunDirectory) -> "LoggedTimes":
        """Read an imported access log. Raises RunDirectoryError if `run` is not one, or not whole."""
        if not run.facts.from_log:
            raise RunDirectoryError(
                f"{run.path}: is not an imported access log; make one: plimsoll import accesslog LOG"
            )
        if run.status != "complete":
            raise RunDirectoryError(f"{run.path}: the import is {run.status}: import the log again")
        lines = np.empty(run.requests.count, dtype=np.uint64)
        took_us = np.empty(run.requests.count, dtype=np.uint32)
        at = 0
        for block in run.requests.blocks():
            lines[at : at + len(block)] = block["line"]
            took_us[at : at + len(block)] = block["total_us"]
            at += len(block)
        order = np.argsort(lines, kind="stable")
        return cls(lines[order], took_us[order], log_sums(run.facts), run.facts.finest_us)

    def hold(self, run: RunDirectory) -> HeldRun | None:
        """Hold a replay against this log; None where it replayed none of it, or all was warm-up."""
        place = self._places(run.facts)
        if run.facts.from_log or not (place != _NO_FILE).any():
            return None
        logged, took, failures, routes, unpaired = self._pairs(run, place)
        if not len(logged):
            return None
        total = self._held("all", logged, took, failures)
        numbers, counts = np.unique(routes, return_counts=True)
        largest = sorted(zip(counts.tolist(), numbers.tolist(), strict=True), reverse=True)[:_MOST_ROUTES]
        parts = []
        for count, number in largest:
            if count >= _LEAST_REQUESTS and len(numbers) > 1:
                of = routes == number
                name = run.route_name(int(number))
                parts.append(self._held(name, logged[of], took[of], failures[of]))
        return HeldRun(run.name, run.facts.speed, unpaired, total, parts)

    def _places(self, facts: RunFacts) -> NDArray[np.uint64]:
        """Return the index that a file of the replay has in the import, or `_NO_FILE`."""
        own = {said: index for index, said in enumerate(self.sums)}
        found = [own.get(said, _NO_FILE) for said in log_sums(facts)]
        return np.array([*found, _NO_FILE], dtype=np.uint64)

    def _pairs(
        self, run: RunDirectory, place: NDArray[np.uint64]
    ) -> tuple[Microseconds, Microseconds, NDArray[np.bool_], NDArray[np.uint16], int]:
        found: list[tuple[Microseconds, Microseconds, NDArray[np.bool_], NDArray[np.uint16]]] = []
        unpaired = 0
        for block in run.requests.blocks():
            counted = CountedRequests.of(block, run.facts.timeout_us)
            line = counted.column("line")
            file = place[np.minimum(line >> np.uint64(_LINE_BITS), np.uint64(len(place) - 1)).astype(np.intp)]
            wanted = (line & np.uint64((1 << _LINE_BITS) - 1)) | (file << np.uint64(_LINE_BITS))
            at = np.minimum(np.searchsorted(self.lines, wanted), len(self.lines) - 1)
            paired = self.lines[at] == wanted
            unpaired += int((~paired).sum())
            columns = counted.service_us, counted.failures, counted.column("route")
            found.append((self.took_us[at[paired]], *(column[paired] for column in columns)))
        logged, took, failures, routes = (np.concatenate(column) for column in zip(*found, strict=True))
        return logged, took, failures, routes, unpaired

    def _held(
        self,
        name: str,
        logged_us: Microseconds,
        took_us: Microseconds,
        failures: NDArray[np.bool_],
    ) -> Held:
        logged = Sample.of(logged_us.copy())
        replayed = Sample(np.sort(took_us), FailedTimes.of(took_us, failures))
        logged_ms = {each: logged.percentile_ms(PERCENTILES[each]) for each in QUANTILES}
        replayed_ms = {each: replayed.percentile_ms(PERCENTILES[each]) for each in QUANTILES}
        ratios = {each: self._ratio(logged_ms[each], replayed_ms[each]) for each in QUANTILES}
        curve = list(_qq(logged, replayed))
        return Held(name, logged.n, int(failures.sum()), logged_ms, replayed_ms, ratios, curve)

    def _ratio(self, logged_ms: float | None, replayed_ms: float | None) -> float | None:
        if logged_ms is None or replayed_ms is None or logged_ms * 1000 < COARSE * self.finest_us:
            return None
        return replayed_ms / logged_ms


def log_sums(facts: RunFacts) -> list[str]:
    """Return the SHA-256 of each log's text that a run is of, in the order of its files (hostile)."""
    said = facts.load.settings.get("logs") if facts.load else None
    logs = said if isinstance(said, list) else []
    return [str(log.get("sha256")) if isinstance(log, dict) else "" for log in logs]


def _qq(logged: Sample, replayed: Sample) -> Iterator[tuple[float, float, float]]:
    """Yield (1/(1−q), logged, replayed) in ms, where the replay's is not a failure's."""
    known = dict(logged.curve())
    for one_in, replayed_ms in replayed.curve():
        failure = replayed.failed.from_us is not None and replayed_ms * 1000 >= replayed.failed.from_us
        if not failure and one_in in known:
            yield one_in, known[one_in], replayed_ms
