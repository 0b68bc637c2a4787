"""The lateness of an instance that can send only so many requests a second: a queue with one server."""

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.percentiles import P999, rank


def waiting_ns(due_ns: NDArray[np.int64], cost_ns: int) -> NDArray[np.int64]:
    """Return the time that each request waits for those before it, each of which takes `cost_ns` to send.

    Lindley's recursion W₍ₖ₊₁₎ = max(0, Wₖ + cost − (tₖ₊₁ − tₖ)) (Proc. Cambridge Phil. Soc. 48, 1952) in its
    closed form: Wₖ is uₖ less the smallest of u₀ … uₖ, where uₖ = k·cost − tₖ. `due_ns` ascends; shape (n,),
    as the result.
    """
    ahead = np.arange(len(due_ns), dtype=np.int64) * cost_ns - due_ns
    smallest: NDArray[np.int64] = np.minimum.accumulate(ahead)
    return ahead - smallest


def p999_ms(waiting: NDArray[np.int64]) -> float | None:
    """Return the nearest rank ⌈0.999·n⌉ in milliseconds; None of fewer than 1,000."""
    position = rank(P999, len(waiting))
    return None if position is None else int(np.partition(waiting, position - 1)[position - 1]) / 1e6
