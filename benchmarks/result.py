"""The result of a case: goals with a verdict each, a table of figures, and everything raw."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.ratios import Round, median_ratio, ratios

MOST_STOLEN = 0.02  # of the processors' time: with more, the figures are the hypervisor's


@dataclass(frozen=True)
class Goal:
    what: str
    figure: str
    goal: str
    reached: bool | None  # None: could not be measured

    def verdict(self) -> str:
        if self.reached is None:
            return f"not measured: {self.figure}"
        return f"reached: {self.figure}" if self.reached else f"not reached: {self.figure}"


@dataclass
class Result:
    case: str
    title: str
    setting: str
    goals: list[Goal] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raw: list[dict[str, Any]] = field(default_factory=list)
    rounds: int = 0
    date: str = ""
    machine: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    stolen_share: float | None = None  # of the processors' time, by the hypervisor; None: not known

    def all_reached(self) -> bool:
        return bool(self.goals) and all(goal.reached for goal in self.goals)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Result":
        return Result(**{**data, "goals": [Goal(**goal) for goal in data["goals"]]})


def ratio_goal(
    what: str, rounds: Sequence[Round], over: str, under: str, least: float, missing: Sequence[str] = ()
) -> Goal:
    """The goal that one contender's figure is so many times another's."""
    goal = f"≥ {least:g} ×"
    value = median_ratio(rounds, over, under)
    if value is None:
        return Goal(what, "; ".join(missing) or "no round in which both ran", goal, None)
    return Goal(what, _spread(value, ratios(rounds, over, under), least), goal, value >= least)


def ratio_at_most(
    what: str, rounds: Sequence[Round], over: str, under: str, most: float, missing: Sequence[str] = ()
) -> Goal:
    """The goal that one contender's figure is no more than so many times another's."""
    goal = f"≤ {most:g} ×"
    value = median_ratio(rounds, over, under)
    if value is None:
        return Goal(what, "; ".join(missing) or "no round in which both ran", goal, None)
    return Goal(what, _spread(value, ratios(rounds, over, under), most), goal, value <= most)


def _spread(value: float, values: Sequence[float], limit: float) -> str:
    """A ratio with its lowest and highest; one just beside its goal must not look like the goal."""
    digits = 4 if abs(value - limit) < 0.01 else 2
    return f"{value:.{digits}f} × ({min(values):.2f} to {max(values):.2f})"


def at_most(what: str, value: float | None, limit: float, unit: str, why: str = "") -> Goal:
    """The goal that a figure is under a limit."""
    if value is None:
        return Goal(what, why or "no figure", f"< {limit:g} {unit}", None)
    return Goal(
        what,
        f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}",
        f"< {limit:g} {unit}",
        value < limit,
    )
