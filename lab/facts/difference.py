"""What differs between two backends besides the one thing that should."""

from collections.abc import Collection

from analysis.differing import Difference, difference_of
from lab.facts.model import HostFacts

__all__ = ["Difference", "difference"]


def difference(a: HostFacts, b: HostFacts, besides: Collection[str] = ()) -> list[Difference]:
    """Return what differs, in the order of the facts; `besides` as in `analysis.differing`."""
    return difference_of(a.model_dump(mode="json"), b.model_dump(mode="json"), besides)
