"""The response times of a server that stalls, by theory."""

from collections.abc import Sequence
from statistics import median

from benchmarks.ratios import nearest_rank

FIRST_S = 5.0
EVERY_S = 10.0
STALL_S = 0.5


def true_responses_ms(per_second: int, seconds: int) -> list[float]:
    """Response time of each request, counted from due, if the server otherwise takes no time.

    A request that is due within a stall is answered at its end, one that is due outside at once.
    """
    return [_wait_s(i / per_second) * 1000 for i in range(per_second * seconds)]


def true_p99_ms(per_second: int, seconds: int) -> float:
    return nearest_rank(true_responses_ms(per_second, seconds), 0.99)


def seen_responses_ms(instants_ns: Sequence[int], per_second: int) -> list[float]:
    """The same from what the server wrote down: pairs of arrival and answer, in the order of arrival.

    What is late here is late on the server: its timers on a busy machine, and the answers that leave it one
    after another when a stall ends. Due instants are fitted as in punctuality.py.
    """
    arrivals, answers = instants_ns[::2], instants_ns[1::2]
    t0_ns = median(at - i * 1e9 / per_second for i, at in enumerate(arrivals))
    return [max(0.0, (at - t0_ns - i * 1e9 / per_second) / 1e6) for i, at in enumerate(answers) if at >= 0]


def _wait_s(due_s: float) -> float:
    if due_s < FIRST_S:
        return 0.0
    return max(0.0, STALL_S - (due_s - FIRST_S) % EVERY_S)
