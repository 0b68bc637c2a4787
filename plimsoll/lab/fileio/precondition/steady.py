"""When a volume is steady, as SNIA has it. Pure.

The definition is that of the Solid State Storage Performance Test Specification (SSS PTS) 2.0.2 of the
Storage Networking Industry Association, 1 October 2020, section 2.1.24 "Steady State". Of the values y in the
measurement window, here the last five rounds,

a) the range, max(y) - min(y), is no more than 20 % of their average, and
b) the excursion of the slope is no more than 10 % of it: that of the straight line of least squares through
   them, from its least value in the window to its greatest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

WINDOW = 5  # rounds
MOST_RANGE_PERCENT = 20.0
MOST_SLOPE_PERCENT = 10.0


@dataclass(frozen=True)
class Steadiness:
    """The range of the values of a window, and the excursion of their slope, in percent of their average."""

    range_percent: float
    slope_percent: float

    @property
    def steady(self) -> bool:
        """Whether the volume is steady."""
        return self.range_percent <= MOST_RANGE_PERCENT and self.slope_percent <= MOST_SLOPE_PERCENT


def steadiness(values: Sequence[float]) -> Steadiness | None:
    """Return the steadiness of the last five of `values`, one a round; None of fewer, and where all are 0."""
    window = values[-WINDOW:]
    average = sum(window) / WINDOW
    if len(window) < WINDOW or average <= 0:
        return None
    middle = (WINDOW - 1) / 2
    spread = sum((place - middle) ** 2 for place in range(WINDOW))
    slope = sum((place - middle) * (value - average) for place, value in enumerate(window)) / spread
    excursion = abs(slope) * (WINDOW - 1)
    return Steadiness(100 * (max(window) - min(window)) / average, 100 * excursion / average)
