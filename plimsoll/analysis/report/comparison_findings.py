"""What is doubtful, missing or unfinished among several runs: findings, each with its remedy."""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.analysis.evidence.answers import Tries, measure_finding
from plimsoll.analysis.evidence.checks import RunGroup, findings_between, identity_findings, merge_alike
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.host_rows import ARC_HITS
from plimsoll.analysis.evidence.sides import SLACK
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import RepeatFigures, ScenarioFigures, ScenarioRuns
from plimsoll.analysis.statistics.windows import PHASES
from plimsoll.common.errors import RunDirectoryError, Severity, gravest_first
from plimsoll.common.files import read_regular_lines
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted, listed, milliseconds
from plimsoll.rundir.facts import ran_together
from plimsoll.rundir.find import is_group_folder, is_run, subfolders
from plimsoll.rundir.names import (
    EVENTS_FILE,
    EXPERIMENT_FILE,
    HOST_FILE,
    JOURNAL_FILE,
    REQUESTS_FILE,
    RUNS_FOLDER,
)

if TYPE_CHECKING:
    from plimsoll.analysis.evidence.weeks import WeeksBeside

_MOST_NAMED = 8
_OF_ALL = (  # said of the comparison too
    FindingKind.GENERATOR_LATE,
    FindingKind.SATURATOR_GAVE_UP,
    FindingKind.SATURATOR_RETRIED,
    FindingKind.TARGET_DIED,
)
_MOST_APART = 1.05
_MOST_MISSING = 4  # of a kind: more would add nothing
_LARGEST_BYTES, _LONGEST_BYTES = 64 << 20, 1 << 20  # of a journal, and of a line
_MOST_UNDONE = 8  # failures that are named
Line = dict[str, Any]


def check_comparison(
    scenarios: Sequence[ScenarioRuns],
    figures: Sequence[ScenarioFigures],
    unreadable: Sequence[str],
    weeks: "Sequence[WeeksBeside]" = (),
    is_unfinished: bool = False,
) -> list[Finding]:
    """Return the findings on all runs together, the gravest first. Texts are hostile.

    `weeks` are those of access logs; `is_unfinished`: that an experiment has not ended is already said.
    """
    runs = [run for scenario in scenarios for run in scenario.runs]
    found = [
        Finding(FindingKind.UNREADABLE, f"Left out, since it cannot be read: {problem}.")
        for problem in (each.rstrip(".") for each in unreadable)
    ]
    found += _emulated(runs)
    found += _evidence(scenarios)
    found += [finding for each in weeks for finding in each.findings]
    found += _different_scenarios(scenarios)
    found += [finding for scenario in scenarios for finding in _few_repeats(scenario)]
    found += [
        Finding(Severity.WARN, f"{repeat.run.label}: without the observers' counters: {repeat.trouble}")
        for scenario in figures
        for backend in scenario.backends
        for repeat in backend.repeats
        if repeat.trouble
    ]
    found += check_missing(scenarios, figures, is_unfinished)
    found += check_controls(runs)
    found += check_caches(scenarios)
    return gravest_first(found)


def count_doubts(scenario: ScenarioRuns, found: Sequence[Finding], metric: str) -> int:
    """Return how many grave reasons there are not to trust what a scenario's runs say of `metric`.

    `found` are the findings on all runs together. What is wrong with the runs of another scenario does not
    count; nor does a limit that a run broke: it is a result.
    """
    on_scenario = [one for one in found if one.scenario in (None, scenario.name)]
    every = (*on_scenario, *(one for run in scenario.runs for one in run.findings))
    return len({one.sentence for one in every if one.bars(metric)})


def _emulated(runs: Sequence[ReportRun]) -> list[Finding]:
    said: dict[str, list[str]] = {}
    for backend, what in {run.backend: run.emulated for run in runs if run.emulated}.items():
        said.setdefault(what, []).append(backend)
    return [
        Finding(
            FindingKind.EMULATED,
            f"{listed(names)} {'is' if len(names) == 1 else 'are'} emulated ({what}): a faster disk that was "
            "slowed down. It shows what such storage does to a site in kind, not in figures.",
        )
        for what, names in said.items()
    ]


def _evidence(scenarios: Sequence[ScenarioRuns]) -> list[Finding]:
    """Return what keeps the runs from being evidence, by themselves and beside one another."""
    runs = [run for scenario in scenarios for run in scenario.runs]
    found = [finding for run in runs for finding in run.findings if finding.kind in _OF_ALL and len(runs) > 1]
    found += identity_findings(runs)
    found += _failed_measures(scenarios)
    for scenario in scenarios:
        sides = scenario.backends
        if not scenario.is_weeks:
            names = [side.called for side in sides]
            found += findings_between([side.runs for side in sides], names, scenario.name)
    return merge_alike(found, run_groups(scenarios, lambda run: run.name))


def run_groups(
    scenarios: Sequence[ScenarioRuns], name: Callable[[ReportRun], str] = lambda run: run.label
) -> list[RunGroup]:
    """Return the runs of each backend, of each scenario, and all, as a page calls them (hostile)."""
    found = []
    for scenario in scenarios:
        of = f" of {scenario.name}" if len(scenarios) > 1 else ""
        parts = [(f"{of} on {backend.called}", backend.runs) for backend in scenario.named]
        found += [
            RunGroup(label, [name(run) for run in runs]) for label, runs in [*parts, (of, scenario.runs)]
        ]
    return [*found, RunGroup("", [name(run) for scenario in scenarios for run in scenario.runs])]


def _failed_measures(scenarios: Sequence[ScenarioRuns]) -> list[Finding]:
    """Return which measures failed too often for their figures to say much, all backends together."""
    found = []
    for scenario in scenarios:
        medians = {backend.called: _tried(backend.runs) for backend in scenario.backends}
        for name, phase in dict.fromkeys(key for each in medians.values() for key in each):
            sides = [
                Tries(called, *each[name, phase]) for called, each in medians.items() if (name, phase) in each
            ]
            when = f"{phase} the saturator" if phase in PHASES else "in the whole run"
            if finding := measure_finding(scenario.name, name, when, sides):
                found.append(finding)
    return found


def _tried(runs: Sequence[ReportRun]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return how often each measure was tried in each phase, and how often it failed."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for run in runs:
        phases = run.phase_values if run.saturation else {"whole": run.values}
        for phase, measured in phases.items():
            for name, one in measured.items():
                tries, failed = counts.get((name, phase), (0, 0))
                counts[name, phase] = (tries + one.tries, failed + len(one.failed_ms))
    return counts


def _different_scenarios(scenarios: Sequence[ScenarioRuns]) -> list[Finding]:
    named = {scenario.name: {backend.name for backend in scenario.named} for scenario in scenarios}
    everyone = set().union(*named.values()) if named else set()
    return [
        Finding(Severity.WARN, f"{name} did not run on {', '.join(sorted(everyone - backends))}.")
        for name, backends in named.items()
        if backends and everyone - backends
    ]


def _few_repeats(scenario: ScenarioRuns) -> list[Finding]:
    once = [backend.name for backend in scenario.named if len(backend.runs) == 1]
    if len(scenario.named) < 2 or not once or scenario.is_weeks:
        return []
    text = (
        f"{scenario.name} ran only once on {listed(once, _MOST_NAMED)}: whether a difference is due to the "
        "storage or to this one run is unknown. Repeat it at least four times."
    )
    return [Finding(Severity.WARN, text)]


def check_controls(runs: Sequence[ReportRun]) -> list[Finding]:
    """Return a finding where the medians of the downloads differ by more than 5 %; names are hostile.

    A download within a crowd is compared with its like only.
    """
    by_scenario: dict[str, list[ReportRun]] = {}
    for run in runs:
        if run.directory.facts.is_control:
            by_scenario.setdefault(run.directory.facts.scenario, []).append(run)
    return [finding for scenario, of in by_scenario.items() for finding in _compare_controls(scenario, of)]


def _compare_controls(scenario: str, runs: Sequence[ReportRun]) -> Iterator[Finding]:
    medians_ms = {
        run.label: median_ms
        for run in runs
        if (median_ms := run.statistics.samples["service"].figures_ms()["p50"])
    }
    if len(medians_ms) < 2:
        return
    fastest, slowest = (
        min(medians_ms, key=lambda n: medians_ms[n]),
        max(medians_ms, key=lambda n: medians_ms[n]),
    )
    ratio = medians_ms[slowest] / medians_ms[fastest]
    if ratio <= _MOST_APART:
        return
    more = f"{100 * (ratio - 1):.0f} % more"
    text = (
        f"The control experiment differs: the {scenario} takes {milliseconds(medians_ms[slowest])} on "
        f"{slowest} and {milliseconds(medians_ms[fastest])} on {fastest}, {more}. Either the file is read "
        "from the disks and not from memory, or the network or the processors differ too."
    )
    yield Finding(FindingKind.CONTROL_DIFFERS, text)


def check_missing(
    scenarios: Sequence[ScenarioRuns], figures: Sequence[ScenarioFigures], is_unfinished: bool
) -> list[Finding]:
    """Return what is missing among all runs together, or cannot be. Texts are hostile.

    `is_unfinished`: that an experiment has not ended is already reported.
    """
    runs = [run for scenario in scenarios for run in scenario.runs]
    if len(runs) < 2:
        return []
    return [
        *(Finding(FindingKind.UNFINISHED, text) for text in ([] if is_unfinished else _unfinished(runs))),
        *(Finding(FindingKind.CLOCK, text) for text in _find_clock_faults(runs)),
        *(Finding(Severity.WARN, text) for text in _uneven(scenarios)),
        *(Finding(Severity.WARN, text) for each in figures for text in _thinner(each)),
    ]


def find_lost_runs(folder: Path) -> list[str]:
    """Return which directories in `folder` look like runs but are not (hostile); none for a run itself."""
    if is_run(folder) or not folder.is_dir():
        return []
    found = []
    try:
        for path in (path for path in subfolders(folder) if not is_run(path)):
            if is_group_folder(path):
                found += find_lost_runs(path)
            elif (path / REQUESTS_FILE).exists() or (path / EVENTS_FILE).exists():
                found.append(f"{path}: run.json is missing, without which nothing of the run is known")
            elif not any(path.iterdir()):
                found.append(f"{path}: is empty: its run never began, or was removed")
    except (OSError, RunDirectoryError):
        return []
    return found


def _unfinished(runs: Sequence[ReportRun]) -> Iterator[str]:
    planned: dict[str, int] = {}
    there: dict[str, set[int]] = {}
    for run in runs:
        experiment = run.directory.facts.experiment
        if experiment and experiment.of is not None and experiment.run is not None:
            planned[experiment.name] = max(planned.get(experiment.name, 0), experiment.of)
            there.setdefault(experiment.name, set()).add(experiment.run)
    for name, of in planned.items():
        if len(there[name]) < of:
            yield f"{len(there[name])} of the {of} runs of experiment {name} are here."


def _uneven(scenarios: Sequence[ScenarioRuns]) -> Iterator[str]:
    for scenario in scenarios:
        counts = [(backend.name, len(backend.runs)) for backend in scenario.named]
        if len({count for _, count in counts}) > 1 and not scenario.is_weeks:
            said = ", ".join(f"{count} of {name}" for name, count in counts)
            yield f"{scenario.name} does not have the same number of runs of each backend: {said}."


def _find_clock_faults(runs: Sequence[ReportRun]) -> Iterator[str]:
    facts = [(run, run.directory.facts) for run in runs]
    timed = [(run, began) for run, each in facts if not each.from_log and (began := each.started_at)]
    timed.sort(key=lambda pair: pair[1])
    overlapping = [
        f"{other.label} began before {one.label} had ended, by the clock: they disturbed each other, or the "
        "clocks disagree."
        for (one, _), (other, began) in pairwise(timed)
        if (ended := one.directory.facts.ended_at) and ended - began > SLACK
        if not ran_together(one.directory.facts, other.directory.facts)
    ]
    yield from overlapping[:_MOST_MISSING]
    if len(overlapping) > _MOST_MISSING:
        yield f"So did {counted(len(overlapping) - _MOST_MISSING, 'further run')}."
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
        without = [repeat.run.label for repeat in repeats if not there(repeat)]
        if without and len(without) < len(repeats):
            shown = ", ".join(without[:_MOST_MISSING])
            more = f" and {len(without) - _MOST_MISSING} more" if len(without) > _MOST_MISSING else ""
            have = "has" if len(without) == 1 else "have"
            yield f"{shown}{more} {have} {what}, unlike the other runs of {figures.scenario.name}."


def find_unfinished(runs: Sequence[ReportRun]) -> list[str]:
    """Return what the experiments of `runs` have not done, a sentence each (hostile)."""
    said: list[str] = []
    for folder in _folders(runs):
        of = [
            experiment.of
            for run in runs
            if run.directory.path.resolve().is_relative_to(folder / RUNS_FOLDER)
            and (experiment := run.directory.facts.experiment)
            and experiment.of is not None
        ]
        try:
            done = {path.name for path in subfolders(folder / RUNS_FOLDER)}
            journal = list(_lines(folder / JOURNAL_FILE))
        except (RunDirectoryError, FileNotFoundError):
            continue
        said += undone(folder.name, done, max(of, default=None), journal)
    return said


def undone(name: str, done: set[str], total: int | None, journal: Sequence[Line]) -> list[str]:
    """Return what an experiment has not done: `done` are its finished runs, of `total`. Pure."""
    has_ended = [line["what"] for line in journal if line.get("what") in ("begun", "ended")][-1:] == ["ended"]
    if has_ended and (total is None or len(done) >= total):
        return []
    of = f"{len(done):,} of {total:,} runs" if total is not None else counted(len(done), "run")
    first = (
        f"{name} ended with {of}."
        if has_ended
        else f"Not finished: {name} has finished {of}, and has not ended."
    )
    return [first, *(printable(text) for text in (*_aside(journal), *_failed(done, journal)))]


def _aside(journal: Sequence[Line]) -> Iterator[str]:
    found: dict[str, str] = {}
    for line in journal:
        if line.get("what") == "tried again":
            found.clear()
        elif line.get("what") == "set aside":
            scenario = f"{line['scenario']} on " if line.get("scenario") else ""
            found[f"{scenario}{line.get('backend')}"] = _reason(line)
    yield from (f"Set aside: {name}: {why}." for name, why in found.items())


def _failed(done: set[str], journal: Sequence[Line]) -> Iterator[str]:
    found = {
        str(line.get("run")): _reason(line)
        for line in journal
        if line.get("what") == "run failed" and line.get("run") not in done
    }
    for name, why in list(found.items())[:_MOST_UNDONE]:
        yield f"Failed, and not repeated since: {name}: {why}."
    if len(found) > _MOST_UNDONE:
        yield f"So did {counted(len(found) - _MOST_UNDONE, 'further run')}."


def _reason(line: Line) -> str:
    return str(line.get("why", "")).partition("\n")[0].rstrip(".")


def _folders(runs: Sequence[ReportRun]) -> list[Path]:
    """Return the folders of the experiments of `runs`, each once."""
    inside = [path for run in runs for path in run.directory.path.resolve().parents[:2]]
    found = dict.fromkeys(path.parent for path in inside if path.name == RUNS_FOLDER)
    return [folder for folder in found if (folder / EXPERIMENT_FILE).is_file()]


def _lines(path: Path) -> Iterator[Line]:
    for data in read_regular_lines(path, _LARGEST_BYTES, _LONGEST_BYTES):
        try:
            value = json.loads(data)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def has_arc(run: ReportRun) -> bool:
    """Return whether the observers know anything of the run's ARC."""
    hits = run.host.samples.columns.get(ARC_HITS)
    return hits is not None and bool((hits >= 0).any())


def check_caches(scenarios: Sequence[ScenarioRuns]) -> list[Finding]:
    """Return a note on the backends that lie on ZFS and were observed, but have no figures of their cache."""
    by_name: dict[str, list[ReportRun]] = {}
    for scenario in scenarios:
        for backend in scenario.backends:
            if any((one := run.directory.facts.storage) and one.facts.get("pools") for run in backend.runs):
                by_name.setdefault(backend.name, []).extend(backend.runs)
    names = [
        name
        for name, runs in by_name.items()
        if any((run.directory.path / HOST_FILE).exists() for run in runs)
        and not any(has_arc(run) for run in runs)
    ]
    if not names:
        return []
    lie, their = ("lies", "its cache") if len(names) == 1 else ("lie", "their caches")
    text = (
        f"{listed(names)} {lie} on ZFS, but nothing is known of {their} (ARC): zfs-fuse has no arcstats, or "
        "they were not observed."
    )
    return [Finding(Severity.NOTE, text)]
