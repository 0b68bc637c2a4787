"""Times as they count in percentiles: those of answers as they were, those of failures as what is known."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Microseconds = NDArray[np.unsignedinteger[Any]]

# Stands for the time of a failure whose time-out is not known: slower than every answer.
NEVER_US = 0xFFFF_FFFF


@dataclass(frozen=True)
class FailedTimes:
    """The failures among times: their number, and how many are wrong answers that came before a time-out.

    `from_us` is the least time at which one counts, None where there is none: an order statistic of as much
    or more is only a lower bound, since nobody knows when a failure would have been answered.
    """

    from_us: int | None = None
    number: int = 0
    wrong: int = 0

    @classmethod
    def of(
        cls, values_us: Microseconds, failures: NDArray[np.bool_], wrong: NDArray[np.bool_] | None = None
    ) -> "FailedTimes":
        """Return those of `values_us` as they count; all have shape (n,)."""
        if not failures.any():
            return NONE_FAILED
        least_us = int(values_us[failures].min())
        return cls(least_us, int(failures.sum()), 0 if wrong is None else int(wrong.sum()))

    @classmethod
    def joined(cls, parts: Iterable["FailedTimes"]) -> "FailedTimes":
        """Return all of `parts` together."""
        some = [part for part in parts if part.number]
        return cls(
            min((part.from_us for part in some if part.from_us is not None), default=None),
            sum(part.number for part in some),
            sum(part.wrong for part in some),
        )


NONE_FAILED = FailedTimes()


@dataclass(frozen=True)
class Times:
    """Times in microseconds in any order, shape (n,), and what of them are failures'."""

    values_us: Microseconds
    failed: FailedTimes = NONE_FAILED

    def __len__(self) -> int:
        return len(self.values_us)

    @classmethod
    def of(
        cls, values_us: Microseconds, failures: NDArray[np.bool_], wrong: NDArray[np.bool_] | None = None
    ) -> "Times":
        """Make times of `values_us` as they count; `failures` and `wrong` say which are those of failures.

        `wrong` has the wrong answers among `failures` that came before their time-out.
        """
        return cls(values_us, FailedTimes.of(values_us, failures, wrong))

    @classmethod
    def joined(cls, parts: Sequence["Times"]) -> "Times":
        """Return all of `parts` together, as a new array."""
        return cls(
            np.concatenate([part.values_us for part in parts]) if parts else np.empty(0, dtype=np.uint32),
            FailedTimes.joined(part.failed for part in parts),
        )


def narrow(values: NDArray[Any]) -> Microseconds:
    """Return whole, not negative `values` as 32-bit integers if they all fit, else as 64-bit."""
    fits = not len(values) or int(values.max()) <= 0xFFFF_FFFF
    return values.astype(np.uint32 if fits else np.uint64)
