"""The median of a measure, or of a step."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analysis.comparing.levels import PhaseLevels, StepLevel, middle, timed_step
from analysis.comparing.metrics.metric import Metric, NoFigureError, Reading, censored
from analysis.comparing.requests import cut_alike, drawn
from analysis.statistics.sample import PERCENTILES

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

    def alike(self, phases: Sequence[PhaseLevels], metric: str) -> list[PhaseLevels]:
        """Cut them to one number of values: the lower of two is no median of three."""
        name = self.subject(metric)
        steps = [step for phase in phases if (step := phase.steps.get(name)) is not None]
        if len(steps) < len(phases):
            return list(phases)
        cut = _measured(steps) if all(step.measure for step in steps) else _timed(phases, steps)
        return [
            replace(phase, steps=phase.steps | {name: step}) for phase, step in zip(phases, cut, strict=True)
        ]

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


def _measured(steps: Sequence[StepLevel]) -> list[StepLevel]:
    """Return the steps with medians of as many values each as the one with the fewest has."""
    count = min(len(step.values) for step in steps)
    if not count:
        return list(steps)
    cut = [np.array(step.values)[drawn(len(step.values), count)] for step in steps]
    return [replace(step, median=middle(values)) for step, values in zip(steps, cut, strict=True)]


def _timed(phases: Sequence[PhaseLevels], steps: Sequence[StepLevel]) -> list[StepLevel]:
    """Return the steps with medians of requests that are alike in length and number."""
    of_route = [
        phase.kept.of_route(step.route)
        for phase, step in zip(phases, steps, strict=True)
        if phase.kept is not None and step.route is not None
    ]
    cut = cut_alike(of_route, PERCENTILES["p50"]) if len(of_route) == len(steps) else None
    if cut is None:
        return list(steps)
    return [timed_step(each.times, int(each.route[0])) for each in cut]
