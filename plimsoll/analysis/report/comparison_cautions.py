"""Cautions about a comparison, over all runs of a report."""

from collections.abc import Sequence

from plimsoll.analysis.evidence.agreement import side_findings
from plimsoll.analysis.evidence.drives import drive_findings
from plimsoll.analysis.evidence.failedmeasures import Tries, measure_finding
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.identity import identity_findings
from plimsoll.analysis.evidence.storage import cache_findings, described, precondition_findings
from plimsoll.analysis.report.backends import ScenarioRuns
from plimsoll.analysis.report.cautions import Caution
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.phase_figures import ScenarioFigures
from plimsoll.analysis.statistics.phases import PHASES
from plimsoll.common.differences import differing
from plimsoll.common.errors import Severity, gravest_first
from plimsoll.common.units import listed

_MOST_KEYS, _MOST_NAMED = 5, 8
_OF_ALL = (  # said of the comparison too
    FindingKind.SATURATOR_GAVE_UP,
    FindingKind.SATURATOR_RETRIED,
    FindingKind.TARGET_DIED,
)


def comparison_cautions(
    scenarios: Sequence[ScenarioRuns], figures: Sequence[ScenarioFigures], unreadable: Sequence[str]
) -> list[Caution]:
    """Return the cautions on all runs together, the gravest first. Texts are hostile."""
    runs = [run for scenario in scenarios for run in scenario.runs]
    found = [Caution(Severity.BAD, f"Left out, since it cannot be read: {problem}") for problem in unreadable]
    found += _emulated(runs)
    found += _findings(scenarios)
    found += _different_scenarios(scenarios)
    found += [caution for scenario in scenarios for caution in _few_repeats(scenario)]
    found += _moving_facts(runs)
    found += _host_files(figures)
    return gravest_first(found)


def doubts(scenarios: Sequence[ScenarioRuns], cautions: Sequence[Caution]) -> int:
    """Return how many grave reasons there are not to trust what the runs say beside one another.

    `cautions` are those on all of them. A limit that a run did not keep is none.
    """
    said = {caution.text for caution in cautions if caution.level == Severity.BAD}
    runs = [run for scenario in scenarios for run in scenario.runs]
    said |= {one.sentence for run in runs for one in run.findings if one.level == Severity.BAD}
    return len(said)


def _emulated(runs: Sequence[MeasuredRun]) -> list[Caution]:
    said: dict[str, list[str]] = {}
    for backend, what in {run.backend: run.emulated for run in runs if run.emulated}.items():
        said.setdefault(what, []).append(backend)
    return [
        Caution(
            Severity.WARN,
            f"{listed(names)} {'is' if len(names) == 1 else 'are'} emulated ({what}): a faster disk that was "
            "slowed down. It shows what such storage does to a site in kind, not in figures.",
        )
        for what, names in said.items()
    ]


def _findings(scenarios: Sequence[ScenarioRuns]) -> list[Caution]:
    """Return what keeps the runs from being evidence, by themselves and beside one another."""
    runs = [run for scenario in scenarios for run in scenario.runs]
    found = [finding for run in runs for finding in run.findings if finding.kind in _OF_ALL]
    found += identity_findings([run.evidence for run in runs])
    found += _failed_measures(scenarios)
    for scenario in scenarios:
        named = [backend for backend in scenario.backends if backend.runs[0].directory.facts.backend]
        every = [[run.evidence for run in backend.runs] for backend in named]
        found += cache_findings(every, [backend.called for backend in named], scenario.name)
        found += precondition_findings([run for runs in every for run in runs], scenario.name)
        found += drive_findings([run.evidence for run in scenario.runs], scenario.name)
        for other in named[1:]:
            sides = [[run.evidence for run in backend.runs] for backend in (named[0], other)]
            found += side_findings(sides[0], sides[1], scenario.name, (named[0].called, other.called))
    return [Caution(finding.level, finding.sentence) for finding in found]


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


def _tried(runs: Sequence[MeasuredRun]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return how often each measure was tried in each phase, and how often it failed."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for run in runs:
        phases = run.phase_values if run.saturation else {"whole": run.values}
        for phase, measured in phases.items():
            for name, one in measured.values.items():
                tries, failed = counts.get((name, phase), (0, 0))
                here = len(one.failed)
                counts[name, phase] = (tries + len(one.values) + here, failed + here)
    return counts


def _different_scenarios(scenarios: Sequence[ScenarioRuns]) -> list[Caution]:
    named = {
        scenario.name: {b.name for b in scenario.backends if b.runs[0].directory.facts.backend}
        for scenario in scenarios
    }
    everyone = set().union(*named.values()) if named else set()
    return [
        Caution(Severity.WARN, f"{name} did not run on {', '.join(sorted(everyone - backends))}.")
        for name, backends in named.items()
        if backends and everyone - backends
    ]


def _few_repeats(scenario: ScenarioRuns) -> list[Caution]:
    named = [backend for backend in scenario.backends if backend.runs[0].directory.facts.backend]
    once = [backend.name for backend in named if len(backend.runs) == 1]
    if len(named) < 2 or not once:
        return []
    text = (
        f"{scenario.name} ran only once on {listed(once, _MOST_NAMED)}: whether a difference is the "
        "storage's or this one run's cannot be told. Repeat it at least four times."
    )
    return [Caution(Severity.WARN, text)]


def _moving_facts(runs: Sequence[MeasuredRun]) -> list[Caution]:
    facts: dict[str, list[object]] = {}
    for run in runs:
        storage = run.directory.facts.storage
        if storage and run.directory.facts.backend:
            facts.setdefault(run.backend, []).append({**described(storage), "clone": None})
    found = []
    for backend, each in facts.items():
        # How well data compress changes with what a run writes, and so does what drives count.
        keys = [key for key, _ in differing(each, expected=("datasets.compress_ratio", "disks.drive"))]
        if keys:
            shown = ", ".join(keys[:_MOST_KEYS]) + (" and more" if len(keys) > _MOST_KEYS else "")
            found.append(
                Caution(Severity.WARN, f"{backend} was not the same in all its runs: {shown} changed.")
            )
    return found


def _host_files(figures: Sequence[ScenarioFigures]) -> list[Caution]:
    return [
        Caution(Severity.WARN, f"{repeat.run.name}: without the observers' counters: {repeat.trouble}")
        for scenario in figures
        for backend in scenario.backends
        for repeat in backend.repeats
        if repeat.trouble
    ]
