"""gates.yml: what can be limited, and the limits. A new metric is a class and a line of METRICS."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from plimsoll.analysis.evidence.answers import wrong_share
from plimsoll.analysis.evidence.run import MeasuredRun, RunPhase
from plimsoll.analysis.evidence.sides import Side
from plimsoll.analysis.statistics.measures import StepFigures, measured_step, timed_step
from plimsoll.analysis.statistics.percentiles import PERCENTILES, Sample, fewest
from plimsoll.analysis.statistics.requests import cut_alike, drawn
from plimsoll.analysis.statistics.stalls import IN_A_ROW
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted, milliseconds
from plimsoll.common.validation import Location, read_model
from plimsoll.rundir.events import FELT

MANUAL = "docs/compare.md"
RATIO = 1.10

Limit = Literal["at_most_ratio", "at_most_more", "at_most_ms", "at_most_share", "at_most_share_of_runs"]
PERCENTILE_METRICS = ("p99.9", "p99", "p95", "p90", "p50")
ERROR_SHARE = "error share"
MORE_ERRORS = 0.001
MEASURE = "measure "
_STALLS = re.compile(r"stalls over (\d{1,6}(?:\.\d{1,3})?) ms")
ANSWERS_METRIC = "answers"
MORE_WRONG = 0.01
_DEFAULT_TAILS = ("p99.9", "p99")


class NoFigureError(Exception):
    """A run has no such figure; the message says why (hostile)."""


class CensoredError(NoFigureError):
    """A run's figure is a failure's: all that is known is that it is at least `at_least`, if that."""

    def __init__(self, message: str, at_least: float | None) -> None:
        super().__init__(message)
        self.at_least = at_least


def censored_error(reading: "Reading", what: str, at_least_ms: float | None) -> CensoredError:
    """Return the error of a figure, called `what` (hostile), of which only a lower bound is known."""
    return CensoredError(
        f"{reading.run.name} has {counted(reading.phase.failures, 'failure')} among "
        f"{counted(reading.phase.requests, 'request')} {reading.when}, and its {what} is one of them: "
        f"{describe_bound(at_least_ms)}; fix what fails, and run it again",
        at_least_ms,
    )


def describe_bound(at_least_ms: float | None) -> str:
    """Return what is known of a figure that is a failure's."""
    if at_least_ms is None:
        return "how long it would have taken is not known"
    return f"all that is known is that it is at least {milliseconds(at_least_ms)}"


@dataclass(frozen=True)
class Reading:
    """One phase of one run, and the metric that is read from it (hostile). `when` names the phase."""

    run: MeasuredRun
    phase: RunPhase
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

    def matches(self, metric: str) -> bool:
        """Return whether `metric`, as gates.yml writes it, is of this kind."""
        return metric in self.names

    def subject(self, metric: str) -> str:
        """Return what `metric` is a figure of (hostile), in messages."""
        return metric

    def label(self, metric: str) -> str:
        """Return what tables call `metric` (hostile)."""
        return metric

    def describe(self, metric: str, figures: str) -> str:
        """Return what `figures`, such as `40 ms on nvme`, say to readers who know no statistics (hostile)."""
        return f"{self.label(metric)}: {figures}"

    def unit(self, phase: RunPhase, metric: str) -> str | None:
        """Return the figure's unit (hostile), empty for a share; None where the phase has none."""
        return "" if self.is_share else "ms"

    def cut_alike(self, phases: Sequence[RunPhase], metric: str) -> list[RunPhase]:
        """Return the phases of all runs that are compared, cut until the figure means the same of each.

        By default they stay as they are: a share, or a median of many, is the same of few as of many.
        """
        return list(phases)

    @abstractmethod
    def value(self, reading: Reading) -> float:
        """Return the figure. Raises NoFigureError, and CensoredError where a failure has that rank."""


class ResponseTime(Metric):
    """A percentile of the response times, or their mean."""

    names = (*PERCENTILE_METRICS, "mean")
    meaning = "a percentile, or the mean, of the response time; failures count at their time-out"
    limits = ("at_most_ratio", "at_most_ms")

    def describe(self, metric: str, figures: str) -> str:
        """Return how many requests of how many took longer."""
        if metric not in PERCENTILES:
            return f"On average a request took {figures}"
        of = fewest(PERCENTILES[metric])
        who = "half of the requests" if of == 2 else f"of {of:,} requests, one"
        return f"{who[0].upper()}{who[1:]} took longer than {figures}"

    def cut_alike(self, phases: Sequence[RunPhase], metric: str) -> list[RunPhase]:
        """Cut them to one length and one number of requests, where that matters."""
        kept = [phase.kept for phase in phases if phase.kept is not None and len(phase.kept)]
        cut = (
            cut_alike(kept, PERCENTILES.get(metric, PERCENTILES["p50"])) if len(kept) == len(phases) else None
        )
        if cut is None:
            return list(phases)
        return [
            replace(
                phase,
                requests=len(each),
                response_ms=Sample.of_times(each.times).figures(),
                kept=each,
            )
            for phase, each in zip(phases, cut, strict=True)
        ]

    def value(self, reading: Reading) -> float:
        """Return it in ms."""
        phase, times = reading.phase, reading.phase.response_ms
        value = times[reading.metric]
        if reading.metric in times.censored:
            raise censored_error(reading, reading.metric, times.censored[reading.metric])
        if value is None and reading.metric == "mean" and phase.failures:
            raise NoFigureError(
                f"{reading.run.name} has {counted(phase.failures, 'failure')} {reading.when}, and run.json "
                "does not say at which time-out they count in the mean: ask for a percentile"
            )
        if value is None:
            needs = fewest(PERCENTILES[reading.metric]) if reading.metric in PERCENTILES else 1
            raise NoFigureError(
                f"{reading.run.name} has {counted(reading.phase.requests, 'request')} {reading.when}, and "
                f"{reading.metric} takes {needs:,}: make runs longer, or ask for a lower percentile"
            )
        return value


class ErrorShare(Metric):
    """Requests without a whole response, and wrong answers, by all requests."""

    names = (ERROR_SHARE,)
    meaning = "the share of requests that failed: without a whole response, or with a wrong status"
    is_share = True
    limits = ("at_most_more", "at_most_share")

    def describe(self, metric: str, figures: str) -> str:
        """Return how many requests failed."""
        return f"Requests that failed: {figures}"

    def value(self, reading: Reading) -> float:
        """Return it, from 0 to 1."""
        if not reading.phase.requests:
            raise NoFigureError(f"{reading.run.name} has no request {reading.when}")
        return reading.phase.failures / reading.phase.requests


class Measure(Metric):
    """The median of what a scenario measures beside its requests, or of the requests of one step."""

    names = (f"{MEASURE}NAME",)
    meaning = "the median of a measure of that name, else of a step (a route; in a replay, a kind of request)"
    limits = ("at_most_ratio", "at_most_ms")

    def matches(self, metric: str) -> bool:
        """Return whether `metric` is `measure ` and a name."""
        return re.fullmatch(rf"{MEASURE}\S.{{0,198}}", metric) is not None

    def subject(self, metric: str) -> str:
        """Return the measure's name."""
        return metric.removeprefix(MEASURE)

    def label(self, metric: str) -> str:
        """Return it as a median."""
        return f"p50 of {self.subject(metric)}"

    def describe(self, metric: str, figures: str) -> str:
        """Return it as what is typical."""
        return f"“{self.subject(metric)}”, typically: {figures}"

    def unit(self, phase: RunPhase, metric: str) -> str | None:
        """Return the measure's unit."""
        step = phase.steps.get(self.subject(metric))
        return step.unit if step else None

    def cut_alike(self, phases: Sequence[RunPhase], metric: str) -> list[RunPhase]:
        """Cut them to one number of values: the lower of two is not the median of three."""
        name = self.subject(metric)
        steps = [step for phase in phases if (step := phase.steps.get(name)) is not None]
        if len(steps) < len(phases):
            return list(phases)
        cut = _cut_measured(steps) if all(step.measure for step in steps) else _cut_timed(phases, steps)
        return [
            replace(phase, steps={**phase.steps, name: step}) for phase, step in zip(phases, cut, strict=True)
        ]

    def value(self, reading: Reading) -> float:
        """Return it, in the measure's unit."""
        name, run = self.subject(reading.metric), reading.run
        if name in run.damaged_measures:
            raise NoFigureError(
                f"{run.name}: the measure {name} has values that are not numbers (such as NaN)"
            )
        step = reading.phase.steps.get(name)
        if step is None:
            has = ", ".join(list(reading.phase.steps)[:6]) or "none"
            raise NoFigureError(f"{run.name} has no {name} {reading.when} (it has: {has})")
        if step.median is None and step.measure:
            tries = f"{len(step.failed_ms):,} of {counted(step.tries, 'try', 'tries')} of {name}"
            why = f"{run.name}: {tries} failed {reading.when}, and its median is one of them"
            remedy = "fix what fails, and run it again"
            raise CensoredError(f"{why}: {describe_bound(step.at_least)}; {remedy}", step.at_least)
        if step.median is None:
            raise censored_error(reading, self.label(reading.metric), step.at_least)
        return step.median


def _cut_measured(steps: Sequence[StepFigures]) -> list[StepFigures]:
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


def _cut_timed(phases: Sequence[RunPhase], steps: Sequence[StepFigures]) -> list[StepFigures]:
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


class Stalls(Metric):
    """1 for a run in which a row of requests was slow at once, else 0; limited is the share of runs."""

    names = ("stalls over N ms",)
    meaning = (
        f"whether half of {IN_A_ROW} requests in a row, or more, took over N ms in some place; "
        "limited is the share of runs in which that is so"
    )
    is_share = True
    limits = ("at_most_share_of_runs",)

    def matches(self, metric: str) -> bool:
        """Return whether `metric` is `stalls over N ms`."""
        return _STALLS.fullmatch(metric) is not None

    def label(self, metric: str) -> str:
        """Return it as a share of runs."""
        return f"runs with {metric}"

    def describe(self, metric: str, figures: str) -> str:
        """Return in which share of the runs it stalls."""
        return f"Runs with {metric}: {figures}"

    def value(self, reading: Reading) -> float:
        """Return 1 or 0."""
        kept = reading.phase.kept
        if kept is None:
            raise NoFigureError(
                f"{reading.run.name} was kept without its requests, so its stalls are not known: judge them "
                "by plimsoll compare"
            )
        worst_ms = kept.worst_ms
        if worst_ms is None:
            raise NoFigureError(
                f"{reading.run.name} has {counted(len(kept), 'request')} {reading.when}, and stalls "
                f"take {IN_A_ROW}: make runs longer"
            )
        found = _STALLS.fullmatch(reading.metric)
        assert found is not None  # noqa: S101 else another metric would have been asked
        return float(worst_ms > float(found[1]))


class Answers(Metric):
    """Requests that failed, or were answered with another status class or an empty body, by all requests."""

    names = (ANSWERS_METRIC,)
    meaning = "the share of requests that failed, or whose answers are not what the log has (whole run)"
    is_share = True
    limits = ("at_most_more", "at_most_share")

    def describe(self, metric: str, figures: str) -> str:
        """Return how many answers were not what they should be."""
        return f"Wrong or missing answers: {figures}"

    def value(self, reading: Reading) -> float:
        """Return it, from 0 to 1."""
        share = wrong_share(reading.run)
        if share is None:
            raise NoFigureError(f"{reading.run.name} has no request")
        return share


METRICS: list[Metric] = [ResponseTime(), ErrorShare(), Answers(), Stalls(), Measure()]


def metric_of(text: str) -> Metric:
    """Return the metric that gates.yml writes as `text`. Raises ValueError that names all there are."""
    for metric in METRICS:
        if metric.matches(text):
            return metric
    raise ValueError(f"must be one of {', '.join(name for metric in METRICS for name in metric.names)}")


Phase = Literal["before", "during", "after", "whole"]


def _known_metric(value: str) -> str:
    metric_of(value)
    return value


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Gate(_Model):
    """One limit, or two, on one figure of every run."""

    scenario: str = Field(
        description="Which scenario's runs, as run.json names it.", min_length=1, max_length=200
    )
    phase: Phase = Field(
        "whole", description="`before`, `during` or `after` the saturator, or the `whole` run."
    )
    metric: Annotated[str, AfterValidator(_known_metric)] = Field(
        "p99.9",
        description="The figure that is limited: one of the metrics below.",
        examples=[name for metric in METRICS for name in metric.names],
    )
    at_most_ratio: float | None = Field(
        None,
        gt=0,
        le=1000,
        description="Candidate's figure by the baseline's, at most: 1.10 allows 10 % more.",
    )
    at_most_ms: float | None = Field(
        None, gt=0, description="Candidate's own figure, at most so many milliseconds."
    )
    at_most_more: float | None = Field(
        None,
        ge=0,
        le=1,
        description="For `error share`: candidate's less the baseline's, at most: 0.001 is one in 1,000.",
    )
    at_most_share: float | None = Field(
        None, ge=0, le=1, description="For `error share`: candidate's own, at most."
    )
    at_most_share_of_runs: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="For `stalls over N ms`: of the candidate's runs, at most this share has them.",
    )

    @property
    def metric_type(self) -> Metric:
        """The metric's entry in the registry."""
        return metric_of(self.metric)

    @property
    def name(self) -> str:
        """Its name (hostile): scenario, phase and metric."""
        return f"{self.scenario} {self.phase}: {self.metric_type.label(self.metric)}"


LIMITS: tuple[Limit, ...] = (
    "at_most_ratio",
    "at_most_more",
    "at_most_ms",
    "at_most_share",
    "at_most_share_of_runs",
)


class Gates(_Model):
    """The whole file."""

    gates: list[Gate] = Field(min_length=1, description="The limits, one entry each.")
    confidence: float = Field(
        0.95,
        ge=0.8,
        lt=1,
        description="How sure verdicts are, all gates together: at 0.95, at most 5 comparisons in 100 have a "
        "wrong PASS, and as many a wrong FAIL.",
    )
    bad_runs: float = Field(
        0.1,
        gt=0,
        lt=1,
        description="Where most runs have no failure at all, they are counted: FAIL if more than this share "
        "of runs surely breaks the limit, PASS if none does.",
    )
    least_runs: int = Field(
        4, ge=4, le=1000, description="Runs a side below which nothing is decided; not under 4."
    )
    answers: bool = Field(
        True,
        description="`false`: answers that differ between the sides, or from the log, forbid no verdict.",
    )
    interleaved: bool = Field(
        False, description="`true`: decide nothing where the two sides' runs do not alternate in time."
    )


def read_gates(path: Path) -> Gates:
    """Read and check `path`. Raises SettingsError with all problems."""
    return read_model(path, Gates, MANUAL, problems)


def problems(gates: Gates) -> Iterator[tuple[Location, str]]:
    """Yield what is wrong between the keys: where, and what to do. Pure."""
    seen: dict[tuple[str, str, str], int] = {}
    for number, gate in enumerate(gates.gates):
        at: Location = ("gates", number)
        limits = [limit for limit in LIMITS if getattr(gate, limit) is not None]
        fitting = gate.metric_type.limits
        if not limits:
            yield at, f"has no limit: give {' or '.join(fitting)}"
        for limit in limits:
            if getattr(gate, limit) == 0:
                least = 0.1 if limit == "at_most_share_of_runs" else MORE_ERRORS
                yield (
                    (*at, limit),
                    f"is 0, and no number of runs shows that there is none: give {least} or so",
                )
            if limit not in fitting:
                yield (*at, limit), f"is not a limit of {printable(gate.metric)}: give {' or '.join(fitting)}"
        same = (gate.scenario, gate.phase, gate.metric)
        if same in seen:
            yield at, f"is gates.{seen[same]} again: put both limits in one"
        seen.setdefault(same, number)


def default_gates(baseline: Side, candidate: Side) -> Gates:
    """Return gates for every scenario of either side, except the control experiment."""
    scenarios = list(dict.fromkeys([*baseline.scenarios, *candidate.scenarios]))
    controls = baseline.controls | candidate.controls
    judged = [name for name in scenarios if name not in controls] or scenarios
    return Gates(gates=[gate for name in judged for gate in _default_gates_of(baseline, candidate, name)])


def _default_gates_of(baseline: Side, candidate: Side, scenario: str) -> list[Gate]:
    runs = [*baseline.of(scenario), *candidate.of(scenario)]
    phases: list[Phase] = ["during", "whole"] if any(run.saturation for run in runs) else ["whole"]
    gates = [
        Gate(scenario=scenario, phase=phase, metric=metric, at_most_ratio=RATIO)
        for phase in phases
        if (metric := _default_metric(runs, phase)) is not None
    ]
    return [*gates, Gate(scenario=scenario, metric=ERROR_SHARE, at_most_more=MORE_ERRORS)]


def _default_metric(runs: Sequence[MeasuredRun], phase: Phase) -> str | None:
    """Return the highest percentile that all runs have requests for; else the median of the longest step."""
    levels = [run.phases[phase] for run in runs if phase in run.phases]
    if len(levels) < len(runs):
        return _DEFAULT_TAILS[0]  # the gate then says which run has no such phase
    requests = min((each.requests for each in levels), default=fewest(PERCENTILES[_DEFAULT_TAILS[0]]))
    for tail in _DEFAULT_TAILS:
        if requests >= fewest(PERCENTILES[tail]):
            return tail
    everywhere = set.intersection(*(set(each.steps) for each in levels))
    # An upgrade is judged by how long it took; what visitors felt meanwhile has gates where it is asked for.
    everywhere = {name for name in everywhere if not name.startswith(FELT)}
    # A step that is censored counts as its lower bound: it must not be passed over for failing.
    # What takes longest, over both sides alike: choosing by one side's figures would favour one.
    longest = [
        (each[0].measure, fmean(math.log(step.least) for step in each), name)
        for name in sorted(everywhere)
        if (each := [level.steps[name] for level in levels])
        if all(step.unit == "ms" and step.least > 0 for step in each)
    ]
    if longest:
        return f"{MEASURE}{max(longest)[2]}"
    return None if phase == "during" else "p50"
