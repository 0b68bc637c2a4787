"""How often what is measured beside requests failed: on one side, and held against another. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.common.units import counted, significant

_MANY = 0.01  # of the tries of a measure
_MOST_NAMED = 4


class Tries(NamedTuple):
    """How often a measure was tried on one side, and how often its iteration failed."""

    side: str
    tries: int
    failed: int

    @property
    def share(self) -> float:
        """The share that failed."""
        return self.failed / self.tries if self.tries else 0.0

    @property
    def is_many(self) -> bool:
        """Whether so many failed that its figures say too little."""
        return self.share > _MANY


def measure_finding(
    scenario: str, measure: str, when: str, sides: Sequence[Tries], runs: tuple[str, ...] = ()
) -> Finding | None:
    """Return what is to be known of a measure (hostile) that failed; None where that is little.

    `when` names the phase: `during the saturator`.
    """
    if not any(side.is_many for side in sides):
        return None
    failing = sorted((side for side in sides if side.failed), key=lambda side: -side.share)
    well = [side for side in sides if not side.failed]
    named = [*failing[:_MOST_NAMED], *(well if len(well) == 1 else [])]
    more = [f"fewer on {len(failing) - _MOST_NAMED} more"] if len(failing) > _MOST_NAMED else []
    rest = [f"none on the {len(well)} others"] if len(well) > 1 else []
    told = "; ".join([*map(_told, named), *more, *rest])
    shares = [side.share for side in sides]
    apart = ": a side that fails more is never the faster one" if max(shares) - min(shares) > _MANY else ""
    text = (
        f"{scenario}: “{measure}” failed {when}: {told}{apart}. Failures count as at least their time-out, "
        "and a median looks past those that are fewer than half."
    )
    return Finding(FindingKind.FAILED_MEASURES, text, runs, scenario)


def _told(side: Tries) -> str:
    if not side.failed:
        return f"none of {counted(side.tries, 'try', 'tries')} on {side.side}"
    share = significant(100 * side.share, 2)
    return f"{side.failed:,} of {counted(side.tries, 'try', 'tries')} on {side.side} ({share} %)"
