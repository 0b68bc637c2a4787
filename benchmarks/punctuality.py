"""The punctuality of a load generator, judged by the instants at which its requests arrived."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.ratios import nearest_rank


@dataclass(frozen=True)
class Punctuality:
    arrivals: int
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float


def read_instants(path: Path) -> list[int]:
    """Read what our servers write: int64, nanoseconds (this machine's byte order is the file's)."""
    instants = array("q")
    instants.frombytes(path.read_bytes())
    return instants.tolist()


def judge(arrivals_ns: Sequence[int], per_second: int) -> Punctuality:
    """Arrival i of a constant rate is due at t0 + i / rate.

    t0 is nobody's to know from outside, and the way to the server takes a time of its own. Both are taken
    out alike for all generators: t0 is where the median arrival is on time. The error is how far an arrival
    is from its instant, early or late.
    """
    offsets_us = [at / 1000 - i * 1_000_000 / per_second for i, at in enumerate(arrivals_ns)]
    t0_us = median(offsets_us)
    errors_us = sorted(abs(offset - t0_us) for offset in offsets_us)
    return Punctuality(
        arrivals=len(errors_us),
        p50_us=nearest_rank(errors_us, 0.5),
        p99_us=nearest_rank(errors_us, 0.99),
        p999_us=nearest_rank(errors_us, 0.999),
        max_us=errors_us[-1],
    )
