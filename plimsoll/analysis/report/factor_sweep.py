"""A factor whose levels are rates: up to which of them p99.9 stays under the goal, in one sentence. Pure."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from plimsoll.analysis.statistics.factors import Estimate
from plimsoll.common.units import milliseconds, significant

_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) ?(?:([KMGT])(iB|B)?|B)?(/s)?", re.ASCII)
NO_LIMIT = "no limit"
_SHORTFALL = 0.9  # of a rate that was asked for; less came

Kept = Literal["yes", "no", "unclear"]


@dataclass(frozen=True)
class SweepLevel:
    """One level of a sweep (hostile), and p99.9 there in ms.

    `failed` counts runs whose p99.9 is a failure; `sent` is what a saturator really sent in bytes a second,
    where that is known.
    """

    label: str
    figure: Estimate | None
    failed: int = 0
    sent: float | None = None

    def keeps(self, goal_ms: float) -> Kept:
        """Return whether p99.9 is under the goal; by the figure alone where there is no interval."""
        if self.failed or self.figure is None:
            return "no"
        lower, upper = self.figure.lower, self.figure.upper
        if lower is None or upper is None:
            return "yes" if self.figure.value < goal_ms else "no"
        return "yes" if upper < goal_ms else "no" if lower >= goal_ms else "unclear"


def number_of(label: str) -> float | None:
    """Return the number that a level is: `180 MB/s` is 180,000,000, `16K` 16,384; None of any other word."""
    found = _NUMBER.fullmatch(label)
    if not found:
        return None
    unit, binary = found[2], found[3] != "B"
    power = " KMGT".index(unit) if unit else 0
    return float(found[1]) * (1024.0 if binary else 1000.0) ** power


def in_order(labels: Sequence[str]) -> list[str] | None:
    """Return levels from the lowest to the highest, no limit last; None where they are no numbers."""
    numbers = {label: number_of(label) for label in labels if label != NO_LIMIT}
    if None in numbers.values() or len(numbers) < 2:
        return None
    return sorted(labels, key=lambda label: numbers.get(label) if label in numbers else math.inf)  # type: ignore[arg-type,return-value]


def is_rate(labels: Sequence[str]) -> bool:
    """Return whether levels are rates, of which more is harder."""
    return in_order(labels) is not None and all(label.endswith("/s") for label in labels if label != NO_LIMIT)


def goal_sentence(levels: Sequence[SweepLevel], goal_ms: float, where: str) -> str:
    """Return up to which of `levels`, the lowest first, p99.9 stays under the goal.

    `where` begins the sentence (hostile).
    """
    kept = [level.keeps(goal_ms) for level in levels]
    goal, last = milliseconds(goal_ms), levels[-1]
    begun = f"{where}: " if where else ""
    first_off = next((at for at, each in enumerate(kept) if each != "yes"), None)
    if first_off is None:
        said = (
            f"at every rate that was tried, up to {last.label}, p99.9 stays under {goal}{_shown(last)}: no "
            "rate fails"
        )
    elif kept[0] == "no":
        none = "no rate that was tried, not even the lowest" if "yes" not in kept else "the lowest rate"
        verb = "is" if "yes" not in kept else "is not"
        said = f"at {none}, {levels[0].label}, p99.9 {verb} under {goal}{_shown(levels[0])}"
    elif first_off == 0:
        said = (
            f"whether p99.9 stays under {goal} at {levels[0].label} these runs do not tell{_shown(levels[0])}"
        )
        said += _failing(levels, kept, 0)
    else:
        best = levels[first_off - 1]
        said = f"up to {best.label} p99.9 stays under {goal}{_shown(best)}"
        off = levels[first_off]
        if kept[first_off] == "no":
            said += f"; at {off.label} it does not{_shown(off)}"
        else:
            said += f"; at {off.label} these runs do not tell{_shown(off)}" + _failing(
                levels, kept, first_off
            )
    if first_off is not None and "yes" in kept[first_off:]:
        again = next(
            level for level, each in list(zip(levels, kept, strict=True))[first_off:] if each == "yes"
        )
        said += f"; at {again.label} it does again{_shown(again)}, so the rate is not all that counts"
    text = f"{begun}{said}."
    return text[:1].upper() + text[1:] + _shortfalls(levels)


def _failing(levels: Sequence[SweepLevel], kept: Sequence[Kept], after: int) -> str:
    """Return from which level on it certainly fails, where that is not the next one."""
    at = next((at for at in range(after + 1, len(kept)) if kept[at] == "no"), None)
    return "" if at is None else f"; at {levels[at].label} it does not{_shown(levels[at])}"


def _shown(level: SweepLevel) -> str:
    if level.failed:
        return " (there it is a failure)"
    if level.figure is None:
        return ""
    value, lower, upper = (level.figure.value, level.figure.lower, level.figure.upper)
    if lower is None or upper is None:
        return f" ({milliseconds(value)}, of too few runs for an interval)"
    return f" ({milliseconds(value)}; {milliseconds(lower)} to {milliseconds(upper)})"


def _shortfalls(levels: Sequence[SweepLevel]) -> str:
    """Return which rates were asked for and not reached; empty where all were."""
    short = [
        f"{level.label} came to {significant(level.sent / 1e6)} MB/s"
        for level in levels
        if level.sent is not None
        and (asked := number_of(level.label)) is not None
        and level.sent < _SHORTFALL * asked
    ]
    return f" What was really sent was less: {', '.join(short)}." if short else ""
