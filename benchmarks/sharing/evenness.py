"""The evenness of shares: in total, and second by second."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.sharing.arrivals import Arrivals
from plimsoll.analysis.statistics.percentiles import P99, rank

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Crowd:
    """Whose requests a log holds."""

    clients: int
    largest: float  # the part of all requests that one client sent
    effective: float  # as many clients of the same size would share as unevenly

    @classmethod
    def of(cls, arrivals: Arrivals) -> "Crowd":
        """Count the clients.

        `effective` is 1/Σp², p being each client's part of the requests (Simpson's index, Nature 163, 1949).
        The share of one of N instances then has a coefficient of variation of √((N−1)/effective).
        """
        counts = np.unique(arrivals.clients, return_counts=True)[1]
        parts = counts / arrivals.n
        return cls(len(counts), float(parts.max()), float(1 / np.square(parts).sum()))


@dataclass(frozen=True)
class Evenness:
    """The busiest of several instances, against an even split. None where it cannot be given."""

    largest_to_mean: float  # 1: all have the same
    busiest_second_p99: float | None  # of a second's requests the busiest instance's part
    ideal_second_p99: float | None  # the same when a second's requests are dealt one by one


def evenness(arrivals: Arrivals, owner: NDArray[np.int64], instances: int) -> Evenness:
    """Measure the split of `arrivals` that gives request i to instance ``owner[i]``, shape (n,).

    Only seconds with as many requests as there are instances count: in others no split could give each one
    something. The p99 is the nearest rank, and none is given over fewer than 100 seconds.
    """
    counts = np.bincount(owner, minlength=instances)
    seconds, second = np.unique(arrivals.due_ns // _SECOND_NS, return_inverse=True)
    cells, sizes = np.unique(second * instances + owner, return_counts=True)
    busiest = np.zeros(len(seconds), dtype=np.int64)
    np.maximum.at(busiest, cells // instances, sizes)
    whole = np.bincount(second)
    full = whole >= instances
    dealt = -(-whole[full] // instances) / whole[full]
    return Evenness(
        float(counts.max() * instances / arrivals.n), _p99(busiest[full] / whole[full]), _p99(dealt)
    )


def _p99(values: NDArray[np.float64]) -> float | None:
    position = rank(P99, len(values))
    return None if position is None else float(np.sort(values)[position - 1])
