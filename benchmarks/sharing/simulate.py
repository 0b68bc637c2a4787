"""One log, several instances: shares and lag, by clients and dealt evenly."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.sharing.arrivals import Arrivals
from benchmarks.sharing.evenness import Crowd, Evenness, evenness
from benchmarks.sharing.share import even_bounds, owners
from benchmarks.sharing.waiting import p999_ms, waiting_ns


@dataclass(frozen=True)
class Lag:
    """Lag at a pace at which, split evenly, each instance would be this busy."""

    utilisation: float  # of an instance's time, were all alike
    speed: float  # times the log's pace
    busiest_utilisation: float  # of the busiest instance; from 1 on it falls ever further behind
    worst_ms: float | None  # the highest p99.9 of an instance; None: overloaded, or too few requests
    even_ms: float | None  # the same with the requests dealt one by one


@dataclass(frozen=True)
class Split:
    """The log as it is split among so many instances."""

    instances: int
    evenness: Evenness
    lag: list[Lag]


@dataclass(frozen=True)
class Sharing:
    """The whole answer."""

    requests: int
    span_s: float
    crowd: Crowd
    splits: list[Split]


def simulate(
    arrivals: Arrivals, instances: Sequence[int], utilisations: Sequence[float], cost_us: float
) -> Sharing:
    """Split `arrivals` by client among each number of `instances`, which need `cost_us` a request.

    Utilisations are of (0, 1). The pace is raised until an even split has them: the log's seconds get
    shorter, its bursts stay.
    """
    splits = [_split(arrivals, number, utilisations, cost_us) for number in instances]
    return Sharing(arrivals.n, arrivals.span_s, Crowd.of(arrivals), splits)


def _split(arrivals: Arrivals, instances: int, utilisations: Sequence[float], cost_us: float) -> Split:
    owner = owners(arrivals.clients, even_bounds(instances))
    dealt = np.arange(arrivals.n) % instances
    even = evenness(arrivals, owner, instances)
    lag = []
    for utilisation in utilisations:
        speed = utilisation * instances * arrivals.span_s / (arrivals.n * cost_us / 1e6)
        paced = Arrivals((arrivals.due_ns / speed).astype(np.int64), arrivals.clients)
        busiest = utilisation * even.largest_to_mean
        worst = None if busiest >= 1 else _worst_ms(paced, owner, instances, cost_us)
        lag.append(Lag(utilisation, speed, busiest, worst, _worst_ms(paced, dealt, instances, cost_us)))
    return Split(instances, even, lag)


def _worst_ms(arrivals: Arrivals, owner: NDArray[np.int64], instances: int, cost_us: float) -> float | None:
    cost_ns = round(cost_us * 1000)
    lags = (p999_ms(waiting_ns(arrivals.due_ns[owner == i], cost_ns)) for i in range(instances))
    return max((lag for lag in lags if lag is not None), default=None)
