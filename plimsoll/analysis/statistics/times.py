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
class Times:
    """Times in microseconds in any order, shape (n,).

    `failed_from_us` is the least of those that are failures', None where there is none: an order statistic
    of as much or more is only a lower bound, since nobody knows when a failure would have been answered.
    """

    values_us: Microseconds
    failed_from_us: int | None = None

    def __len__(self) -> int:
        return len(self.values_us)

    @classmethod
    def of(cls, values_us: Microseconds, failures: NDArray[np.bool_]) -> "Times":
        """Make times of `values_us` as they count, of which `failures` says which are those of failures."""
        return cls(values_us, int(values_us[failures].min()) if failures.any() else None)

    @classmethod
    def joined(cls, parts: Sequence["Times"]) -> "Times":
        """Return all of `parts` together, as a new array."""
        return cls(
            np.concatenate([part.values_us for part in parts]) if parts else np.empty(0, dtype=np.uint32),
            least(part.failed_from_us for part in parts),
        )


def least(values_us: Iterable[int | None]) -> int | None:
    """Return the least of those that are not None; None where there is none."""
    return min((value for value in values_us if value is not None), default=None)


def narrow(values: NDArray[Any]) -> Microseconds:
    """Return whole, not negative `values` as 32-bit integers if they all fit, else as 64-bit."""
    fits = not len(values) or int(values.max()) <= 0xFFFF_FFFF
    return values.astype(np.uint32 if fits else np.uint64)
