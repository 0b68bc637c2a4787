"""What the factors of an experiment did to one scenario, and up to which rate the goal is kept. Pure."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from plimsoll.analysis.report.runs import RepeatFigures, Scenario, ScenarioFigures, common_percentile
from plimsoll.analysis.statistics.factors import (
    Estimate,
    FactorEffect,
    Ranked,
    Trial,
    effects,
    mean_of,
    ranking,
)
from plimsoll.analysis.statistics.percentiles import TimeFigures
from plimsoll.analysis.statistics.windows import WHOLE_RUN
from plimsoll.common.units import milliseconds, significant

_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) ?(?:([KMGT])(iB|B)?|B)?(/s)?", re.ASCII)
NO_LIMIT = "no limit"
_SHORTFALL = 0.9  # of a rate that was asked for; less came
Kept = Literal["yes", "no", "unclear"]
BACKEND = "backend"


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


def sort_levels(labels: Sequence[str]) -> list[str] | None:
    """Return levels from the lowest to the highest, no limit last; None where they are not numbers."""
    numbers = {label: number_of(label) for label in labels if label != NO_LIMIT}
    if None in numbers.values() or len(numbers) < 2:
        return None
    return sorted(labels, key=lambda label: numbers.get(label) if label in numbers else math.inf)  # type: ignore[arg-type,return-value]


def is_rate(labels: Sequence[str]) -> bool:
    """Return whether levels are rates, of which more is harder."""
    return sort_levels(labels) is not None and all(
        label.endswith("/s") for label in labels if label != NO_LIMIT
    )


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
            f"at every rate that was tried, up to {last.label}, p99.9 stays under {goal}{_figure(last)}: no "
            "rate fails"
        )
    elif kept[0] == "no":
        none = "no rate that was tried, not even the lowest" if "yes" not in kept else "the lowest rate"
        verb = "is" if "yes" not in kept else "is not"
        said = f"at {none}, {levels[0].label}, p99.9 {verb} under {goal}{_figure(levels[0])}"
    elif first_off == 0:
        said = (
            f"these runs cannot tell whether p99.9 stays under {goal} at {levels[0].label}"
            f"{_figure(levels[0])}"
        )
        said += _failing(levels, kept, 0)
    else:
        best = levels[first_off - 1]
        said = f"up to {best.label} p99.9 stays under {goal}{_figure(best)}"
        off = levels[first_off]
        if kept[first_off] == "no":
            said += f"; at {off.label} it does not{_figure(off)}"
        else:
            said += f"; at {off.label} these runs cannot tell{_figure(off)}" + _failing(
                levels, kept, first_off
            )
    if first_off is not None and "yes" in kept[first_off:]:
        again = next(
            level for level, each in list(zip(levels, kept, strict=True))[first_off:] if each == "yes"
        )
        said += f"; at {again.label} it does again{_figure(again)}, so the rate is not all that counts"
    text = f"{begun}{said}."
    return text[:1].upper() + text[1:] + _shortfalls(levels)


def _failing(levels: Sequence[SweepLevel], kept: Sequence[Kept], after: int) -> str:
    """Return from which level on it certainly fails, where that is not the next one."""
    at = next((at for at in range(after + 1, len(kept)) if kept[at] == "no"), None)
    return "" if at is None else f"; at {levels[at].label} it does not{_figure(levels[at])}"


def _figure(level: SweepLevel) -> str:
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
    return f" Less was actually sent: {', '.join(short)}." if short else ""


@dataclass(frozen=True)
class FactorRun:
    """One run: its levels (hostile), its figure in ms, None where that is a failure's or cannot be given."""

    name: str
    levels: Mapping[str, str]
    repeat: int | str | None
    ms: float | None
    failed: bool
    sent: float | None

    @property
    def trial(self) -> Trial | None:
        """The run as statistics know it."""
        return Trial(self.levels, self.repeat, self.ms) if self.ms else None


@dataclass(frozen=True)
class FactorFigures:
    """One scenario in an experiment with factors: `percentile` in `phase` of each run.

    `levels` are those of each factor (hostile) in the order of lab.yml, only what was run.
    """

    scenario: Scenario
    percentile: str
    phase: str
    levels: dict[str, list[str]]
    runs: list[FactorRun]
    goal_ms: float | None
    ranked: list[Ranked] = field(default_factory=list)
    effects: list[FactorEffect] = field(default_factory=list)

    @property
    def trials(self) -> list[Trial]:
        """The runs that have a figure."""
        return [trial for run in self.runs if (trial := run.trial)]

    @property
    def failed(self) -> list[FactorRun]:
        """The runs whose figure is a failure's."""
        return [run for run in self.runs if run.failed]

    @property
    def backends(self) -> list[str]:
        """The backends (hostile) that the factors were varied on."""
        return self.levels.get(BACKEND, [])

    def at(self, factor: str, level: str, backend: str) -> list[FactorRun]:
        """Return the runs at a level of a factor on a backend."""
        return [
            run
            for run in self.runs
            if run.levels.get(factor) == level and (factor == BACKEND or run.levels.get(BACKEND) == backend)
        ]

    def mean_at(self, factor: str, level: str, backend: str) -> Estimate | None:
        """Return the figure there, over all levels of the other factors; None where no run has one."""
        trials = [trial for run in self.at(factor, level, backend) if (trial := run.trial)]
        return mean_of(trials, self.trials) if trials else None

    def sentences(self) -> list[str]:
        """Return, for each rate that was swept, up to where the goal is kept (hostile)."""
        if self.goal_ms is None:
            return []
        found = []
        for factor, labels in self.levels.items():
            ordered = sort_levels(labels)
            if ordered is None or not is_rate(labels) or len(ordered) < 3:
                continue
            if self.percentile != "p99.9":
                found.append(
                    f"Up to which {factor} p99.9 stays under the goal is not known: some runs have fewer "
                    "than 1,000 requests in that phase. Make them longer."
                )
                continue
            for backend in self.backends:
                swept = [self._swept(factor, label, backend) for label in ordered]
                swept = [level for level in swept if level.figure is not None or level.failed]
                if len(swept) > 1:
                    where = f"On {backend}" if len(self.backends) > 1 else ""
                    found.append(goal_sentence(swept, self.goal_ms, where))
        return found

    def _swept(self, factor: str, label: str, backend: str) -> SweepLevel:
        runs = self.at(factor, label, backend)
        sent = [run.sent for run in runs if run.sent is not None] if label.endswith("B/s") else []
        return SweepLevel(
            label,
            self.mean_at(factor, label, backend),
            sum(run.failed for run in runs),
            fmean(sent) if sent else None,
        )


def factor_figures(figures: ScenarioFigures) -> FactorFigures | None:
    """Return what the factors did in a scenario; None where its runs are of no such experiment."""
    repeats = [
        repeat
        for each in figures.backends
        for repeat in each.repeats
        if repeat.run.directory.facts.factors and repeat.run.directory.facts.experiment
    ]
    phase = "during" if figures.saturated else WHOLE_RUN
    times = [(repeat, repeat.phases[phase].response_ms) for repeat in repeats if phase in repeat.phases]
    percentile = common_percentile([each for _, each in times])
    if percentile is None:
        return None
    runs = [_run(repeat, each, percentile) for repeat, each in times]
    levels = _levels(repeats, runs)
    if sum(len(each) > 1 for each in levels.values()) == 0:
        return None
    goals = [each.goal_ms for repeat in repeats if (each := repeat.run.directory.facts.experiment)]
    found = FactorFigures(
        figures.scenario,
        percentile,
        phase,
        levels,
        runs,
        next((goal for goal in goals if goal is not None), None),
    )
    trials = found.trials
    if not trials:
        return None
    found.ranked.extend(ranking(trials))
    found.effects.extend(effects(trials, levels))
    return found


def _run(repeat: RepeatFigures, times: TimeFigures, percentile: str) -> FactorRun:
    facts = repeat.run.directory.facts
    send = repeat.send.value
    return FactorRun(
        name=repeat.run.label,
        levels=facts.factors or {},
        repeat=facts.repeat,
        ms=times[percentile],
        failed=percentile in times.censored,
        sent=float(send.mean()) if len(send) else None,
    )


def _levels(repeats: Sequence[RepeatFigures], runs: Sequence[FactorRun]) -> dict[str, list[str]]:
    """Return the levels of each factor that were run, in the order that the experiment names them."""
    said: dict[str, list[str]] = {}
    for repeat in repeats:
        experiment = repeat.run.directory.facts.experiment
        for factor, labels in (experiment.levels if experiment else {}).items():
            said.setdefault(factor, []).extend(label for label in labels if label not in said[factor])
    for run in runs:
        for factor, label in run.levels.items():
            if label not in said.setdefault(factor, []):
                said[factor].append(label)
    there = {(factor, label) for run in runs for factor, label in run.levels.items()}
    ordered = {
        factor: [label for label in labels if (factor, label) in there] for factor, labels in said.items()
    }
    return {factor: labels for factor, labels in ordered.items() if labels}
