"""The face of every metric: its names in gates.yml, its limits, its unit, and its figure of one run."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from plimsoll.analysis.comparing.levels import PhaseLevels
from plimsoll.analysis.comparing.runs import ComparedRun
from plimsoll.common.units import counted, milliseconds

Limit = Literal["at_most_ratio", "at_most_more", "at_most_ms", "at_most_share", "at_most_share_of_runs"]


class NoFigureError(Exception):
    """A run has no such figure; the message says why (hostile)."""


class CensoredError(NoFigureError):
    """A run's figure is a failure's: all that is known is that it is at least `at_least`, if that."""

    def __init__(self, message: str, at_least: float | None) -> None:
        super().__init__(message)
        self.at_least = at_least


def censored(reading: "Reading", what: str, at_least_ms: float | None) -> CensoredError:
    """Return the error of a figure, called `what` (hostile), of which only a lower bound is known."""
    return CensoredError(
        f"{reading.run.name} has {counted(reading.phase.errors, 'failure')} among "
        f"{counted(reading.phase.requests, 'request')} {reading.when}, and its {what} is one of them: "
        f"{known(at_least_ms)}; mend what fails, and run it again",
        at_least_ms,
    )


def known(at_least_ms: float | None) -> str:
    """Return what is known of a figure that is a failure's."""
    if at_least_ms is None:
        return "how long it would have taken is not known"
    return f"all that is known is that it is at least {milliseconds(at_least_ms)}"


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

    def alike(self, phases: Sequence[PhaseLevels], metric: str) -> list[PhaseLevels]:
        """Return the phases of all runs that are compared, cut until the figure means the same of each.

        By default they stay as they are: a share, or a median of many, is the same of few as of many.
        """
        return list(phases)

    @abstractmethod
    def value(self, reading: Reading) -> float:
        """Return the figure. Raises NoFigureError, and CensoredError where a failure has that rank."""
