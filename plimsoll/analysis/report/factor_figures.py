"""From the runs of one scenario to what the factors of its experiment did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from plimsoll.analysis.report.factor_sweep import SweepLevel, goal_sentence, in_order, is_rate
from plimsoll.analysis.report.phase_figures import RepeatFigures, ScenarioFigures, common_percentile
from plimsoll.analysis.statistics.factors import (
    Estimate,
    FactorEffect,
    Ranked,
    Trial,
    effects,
    mean_of,
    ranking,
)
from plimsoll.analysis.statistics.figures import TimeFigures
from plimsoll.analysis.statistics.phases import WHOLE

BACKEND = "backend"


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

    scenario: str
    number: int
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
            ordered = in_order(labels)
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
    phase = "during" if figures.saturated else WHOLE[0]
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
        figures.scenario.name,
        figures.scenario.number,
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
        name=repeat.run.name,
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
