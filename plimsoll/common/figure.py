"""Numbers from strangers: those that can be computed with."""

from typing import TypeGuard

LARGEST = 1e21  # sums, squares and ratios of very many such figures are finite; no measure comes near it
_SMALLEST = 1 / LARGEST


def is_figure(value: object) -> TypeGuard[int | float]:
    """Return whether `value` is a number that can be summed, squared and divided by. Pure."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value == 0 or _SMALLEST <= abs(value) <= LARGEST  # not NaN, nor an int that no float holds
