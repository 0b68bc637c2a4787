"""The median of a measure, or of a step."""

import re
from collections.abc import Sequence
from dataclasses import replace

from plimsoll.analysis.comparing.levels import PhaseLevels, StepLevel, measured_step, timed_step
from plimsoll.analysis.comparing.metrics.metric import (
    CensoredError,
    Metric,
    NoFigureError,
    Reading,
    censored,
    known,
)
from plimsoll.analysis.comparing.requests import cut_alike, drawn
from plimsoll.analysis.statistics.sample import PERCENTILES
from plimsoll.common.units import counted

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
        if step.median is None and step.measure:
            tries = f"{len(step.failed_ms):,} of {counted(step.tries, 'try', 'tries')} of {name}"
            why = f"{run.name}: {tries} failed {reading.when}, and its median is one of them"
            remedy = "mend what fails, and run it again"
            raise CensoredError(f"{why}: {known(step.at_least)}; {remedy}", step.at_least)
        if step.median is None:
            raise censored(reading, self.label(reading.metric), step.at_least)
        return step.median


def _measured(steps: Sequence[StepLevel]) -> list[StepLevel]:
    """Return the steps with medians of as many values each as the one with the fewest has."""
    count = min(step.tries for step in steps)
    if not count:
        return list(steps)
    cut = []
    for step in steps:
        places, n = drawn(step.tries, count).tolist(), len(step.values)
        values = [step.values[place] for place in places if place < n]
        failed_ms = tuple(step.failed_ms[place - n] for place in places if place >= n)
        cut.append(measured_step(values, step.unit, failed_ms))
    return cut


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
