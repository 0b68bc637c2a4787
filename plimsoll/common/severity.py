"""The severity of cautions: one order for every page and command."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol, TypeVar


class Severity(StrEnum):
    """From the gravest to the mildest. `BAD`: do not trust the figures."""

    BAD = "bad"
    WARN = "warn"
    NOTE = "note"


class Graded(Protocol):
    """Anything that has a severity."""

    @property
    def level(self) -> Severity:
        """Its severity."""


_Graded = TypeVar("_Graded", bound=Graded)
_ORDER = list(Severity)


def gravest_first(cautions: Iterable[_Graded]) -> list[_Graded]:
    """Return `cautions` by severity; those of one severity keep their order. Pure."""
    return sorted(cautions, key=lambda caution: _ORDER.index(caution.level))
