"""The face of every metric: its names in gates.yml, its limits, its unit, and its figure of one run."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from analysis.comparing.levels import PhaseLevels
from analysis.comparing.runs import ComparedRun

Limit = Literal["at_most_ratio", "at_most_more", "at_most_ms", "at_most_share"]


class NoFigureError(Exception):
    """A run has no such figure; the message says why (hostile)."""


@dataclass(frozen=True)
class Reading:
    """One phase of one run, and the metric that is read from it (hostile). `when` names the phase."""

    run: ComparedRun
    phase: PhaseLevels
    metric: str
    when: str


class Metric(ABC):
    """One kind of figure. `names` are those that gates.yml takes, `meaning` explains them in docs/compare.md.

    A figure that `is_share` may be 0 and is compared by differences; others are compared by ratios.
    """

    names: ClassVar[tuple[str, ...]]
    meaning: ClassVar[str]
    is_share: ClassVar[bool] = False
    limits: ClassVar[tuple[Limit, ...]]

    def takes(self, metric: str) -> bool:
        """Return whether `metric`, as gates.yml writes it, is of this kind."""
        return metric in self.names

    def subject(self, metric: str) -> str:
        """Return what `metric` is a figure of (hostile), in messages."""
        return metric

    def label(self, metric: str) -> str:
        """Return what tables call `metric` (hostile)."""
        return metric

    def in_words(self, metric: str, figures: str) -> str:
        """Return what `figures`, such as `40 ms on nvme`, say to readers who know no statistics (hostile)."""
        return f"{self.label(metric)}: {figures}"

    def unit(self, phase: PhaseLevels, metric: str) -> str | None:
        """Return the figure's unit (hostile), empty for a share; None where the phase has none."""
        return "" if self.is_share else "ms"

    @abstractmethod
    def value(self, reading: Reading) -> float:
        """Return the figure. Raises NoFigureError."""
