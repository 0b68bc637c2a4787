"""The differences between two backends, beyond the one that is intended."""

from collections.abc import Collection

from plimsoll.common.differences import Difference, difference_of
from plimsoll.lab.facts.model import HostFacts

__all__ = ["Difference", "difference"]


def difference(a: HostFacts, b: HostFacts, expected: Collection[str] = ()) -> list[Difference]:
    """Return the differences, in the order of the facts; `expected` as in `plimsoll.common.differences`."""
    return difference_of(a.model_dump(mode="json"), b.model_dump(mode="json"), expected)
