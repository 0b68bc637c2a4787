"""From the rounds of a benchmark to its figures."""

from collections.abc import Mapping, Sequence
from statistics import median

# One round: contender → figure, or None where it failed.
Round = Mapping[str, float | None]


def figures(rounds: Sequence[Round], who: str) -> list[float]:
    return [value for each in rounds if (value := each.get(who)) is not None]


def median_figure(rounds: Sequence[Round], who: str) -> float | None:
    values = figures(rounds, who)
    return median(values) if values else None


def ratios(rounds: Sequence[Round], over: str, under: str) -> list[float]:
    """Ratios within each round: what slows a whole round down cancels out."""
    found = []
    for each in rounds:
        top, bottom = each.get(over), each.get(under)
        if top is not None and bottom:
            found.append(top / bottom)
    return found


def median_ratio(rounds: Sequence[Round], over: str, under: str) -> float | None:
    values = ratios(rounds, over, under)
    return median(values) if values else None


def nearest_rank(values: Sequence[float], quantile: float) -> float:
    """The exact order statistic ⌈q·n⌉, as everywhere in this project."""
    ordered = sorted(values)
    # Rounded first: 0.999 × 5,000 is a hair over 4,995 in binary.
    rank = -(-round(quantile * len(ordered) * 1_000_000) // 1_000_000)
    return ordered[max(rank, 1) - 1]
