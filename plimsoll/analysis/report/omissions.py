"""Omissions of a report on several runs: no plot is thinner than it seems without a word."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from plimsoll.analysis.report.backends import ScenarioRuns
from plimsoll.analysis.report.cautions import Caution
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.phase_figures import RepeatFigures, ScenarioFigures
from plimsoll.common.errors import RunDirectoryError, Severity
from plimsoll.common.units import counted
from plimsoll.rundir.discovery import is_run, is_together, subfolders
from plimsoll.rundir.names import EVENTS_FILE, REQUESTS_FILE
from plimsoll.rundir.together import ran_together

_MOST = 4  # of a kind: more say no more
_SLACK = timedelta(seconds=1)


def missing_cautions(
    scenarios: Sequence[ScenarioRuns], figures: Sequence[ScenarioFigures], told: bool = False
) -> list[Caution]:
    """Return what is missing among all runs together, or cannot be. Texts are hostile.

    `told`: that an experiment has not ended is said already.
    """
    runs = [run for scenario in scenarios for run in scenario.runs]
    if len(runs) < 2:
        return []
    found = [*([] if told else _unfinished(runs)), *_uneven(scenarios), *_clocks(runs)]
    found += [text for each in figures for text in _thinner(each)]
    return [Caution(Severity.WARN, text) for text in found]


def lost_in(folder: Path) -> list[str]:
    """Return which directories in `folder` look like runs and are none (hostile); none where it is a run."""
    if is_run(folder) or not folder.is_dir():
        return []
    found = []
    try:
        for path in (path for path in subfolders(folder) if not is_run(path)):
            if is_together(path):
                found += lost_in(path)
            elif (path / REQUESTS_FILE).exists() or (path / EVENTS_FILE).exists():
                found.append(f"{path}: run.json is missing, without which nothing of the run is known")
            elif not any(path.iterdir()):
                found.append(f"{path}: is empty: its run never began, or was removed")
    except (OSError, RunDirectoryError):
        return []
    return found


def _unfinished(runs: Sequence[MeasuredRun]) -> Iterator[str]:
    planned: dict[str, int] = {}
    there: dict[str, set[int]] = {}
    for run in runs:
        experiment = run.directory.facts.experiment
        if experiment and experiment.of is not None and experiment.run is not None:
            planned[experiment.name] = max(planned.get(experiment.name, 0), experiment.of)
            there.setdefault(experiment.name, set()).add(experiment.run)
    for name, of in planned.items():
        if len(there[name]) < of:
            yield (
                f"{len(there[name])} of the {of} runs of experiment {name} are here. If it is not finished, "
                "plimsoll run --resume ends it, and --retry-set-aside what was set aside."
            )


def _uneven(scenarios: Sequence[ScenarioRuns]) -> Iterator[str]:
    for scenario in scenarios:
        counts = [(b.name, len(b.runs)) for b in scenario.backends if b.runs[0].directory.facts.backend]
        if len({count for _, count in counts}) > 1:
            said = ", ".join(f"{count} of {name}" for name, count in counts)
            yield f"{scenario.name} has not as many runs of each backend: {said}."


def _clocks(runs: Sequence[MeasuredRun]) -> Iterator[str]:
    timed = [(run, began) for run in runs if (began := run.directory.facts.started_at)]
    timed.sort(key=lambda pair: pair[1])
    overlapping = [
        f"{other.name} began before {one.name} had ended, by the clock: they disturbed each other, or the "
        "clocks disagree."
        for (one, _), (other, began) in pairwise(timed)
        if (ended := one.directory.facts.ended_at) and ended - began > _SLACK
        if not ran_together(one.directory.facts, other.directory.facts)
    ]
    yield from overlapping[:_MOST]
    if len(overlapping) > _MOST:
        yield f"So did {counted(len(overlapping) - _MOST, 'further run')}."
    by_experiment: dict[str, list[int]] = {}
    for run, _ in timed:
        experiment = run.directory.facts.experiment
        if experiment and experiment.run is not None:
            numbers = by_experiment.setdefault(experiment.name, [])
            if not (run.directory.facts.together and numbers[-1:] == [experiment.run]):
                numbers.append(experiment.run)
    for name, numbers in by_experiment.items():
        if len(set(numbers)) == len(numbers) and numbers != sorted(numbers):
            yield (
                f"The runs of {name} began in another order than the experiment's, by the clock: some were "
                "tried again later (--retry-set-aside), the clock was set, or clocks of machines disagree."
            )


def _thinner(figures: ScenarioFigures) -> Iterator[str]:
    repeats = [repeat for each in figures.backends for repeat in each.repeats]
    rows: list[tuple[Callable[[RepeatFigures], bool], str]] = [
        (lambda r: bool(r.windows), "too few requests for a point in the scatter"),
        (lambda r: len(r.disk.value) > 0, "no counters of its disks (host.csv)"),
        (lambda r: len(r.send.value) > 0, "no throughput of a saturator"),
    ]
    if figures.saturated:
        rows.append((lambda r: r.run.saturation is not None, "no saturator at all"))
    for there, what in rows:
        without = [repeat.run.name for repeat in repeats if not there(repeat)]
        if without and len(without) < len(repeats):
            shown = ", ".join(without[:_MOST])
            more = f" and {len(without) - _MOST} more" if len(without) > _MOST else ""
            have = "has" if len(without) == 1 else "have"
            yield f"{shown}{more} {have} {what}, unlike the other runs of {figures.scenario.name}."
