"""The median of a measure, or of a step."""

import re

from analysis.comparing.levels import PhaseLevels
from analysis.comparing.metrics.metric import Metric, NoFigureError, Reading, censored

MEASURE = "measure "


class Measure(Metric):
    """The median of what a scenario measures beside its requests, or of the requests of one step."""

    names = (f"{MEASURE}NAME",)
    meaning = "the median of a measure of that name, else of a step (a route; in a replay, a kind of request)"
    limits = ("at_most_ratio", "at_most_ms")

    def takes(self, metric: str) -> bool:
        """Return whether `metric` is `measure ` and a name."""
        return re.fullmatch(rf"{MEASURE}\S.{{0,198}}", metric) is not None

    def subject(self, metric: str) -> str:
        """Return the measure's name."""
        return metric.removeprefix(MEASURE)

    def label(self, metric: str) -> str:
        """Return it as a median."""
        return f"p50 of {self.subject(metric)}"

    def in_words(self, metric: str, figures: str) -> str:
        """Return it as what is typical."""
        return f"“{self.subject(metric)}”, typically: {figures}"

    def unit(self, phase: PhaseLevels, metric: str) -> str | None:
        """Return the measure's unit."""
        step = phase.steps.get(self.subject(metric))
        return step.unit if step else None

    def value(self, reading: Reading) -> float:
        """Return it, in the measure's unit."""
        name, run = self.subject(reading.metric), reading.run
        if name in run.levels.damaged_measures:
            raise NoFigureError(
                f"{run.name}: the measure {name} has values that are no figures (such as NaN)"
            )
        step = reading.phase.steps.get(name)
        if step is None:
            has = ", ".join(list(reading.phase.steps)[:6]) or "none"
            raise NoFigureError(f"{run.name} has no {name} {reading.when} (it has: {has})")
        if step.median is None:
            raise censored(reading, self.label(reading.metric), step.at_least)
        return step.median
