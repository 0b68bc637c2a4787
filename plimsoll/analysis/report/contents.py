"""What a report has, in the order of its page: to add a section, write its function, and name it below."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.analysis.evidence.checks import merge_subjects
from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.page.against_log import against_log_section, against_log_sentence
from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.page.section import Section
from plimsoll.analysis.page.shell import render_page
from plimsoll.analysis.report.charts import chart_section, run_chart_section
from plimsoll.analysis.report.comparison_findings import (
    check_comparison,
    find_unfinished,
    run_groups,
)
from plimsoll.analysis.report.factors import FactorFigures, factor_figures
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.run_findings import check_run
from plimsoll.analysis.report.runs import (
    ScenarioFigures,
    ScenarioRuns,
    group_by_scenario,
    scenario_figures,
    storages_by_backend,
)
from plimsoll.analysis.report.sections.answer import answer_lines, answers, answers_json
from plimsoll.analysis.report.sections.factors import factor_sections, factors_json
from plimsoll.analysis.report.sections.headline import headline, scripted_line
from plimsoll.analysis.report.sections.host import HostView, host_section, host_view
from plimsoll.analysis.report.sections.phases import (
    measure_lines,
    measure_section,
    measure_sentence,
    phase_sections,
    phase_sentence,
)
from plimsoll.analysis.report.sections.single_runs import grinder_section, run_details, run_list
from plimsoll.analysis.report.sections.slow_windows import (
    ScenarioStalls,
    find_slow_windows,
    moved_chart,
    slow_window_lines,
    slow_window_sections,
)
from plimsoll.analysis.report.sections.storage import (
    Cells,
    differences_json,
    differences_section,
    volume_sections,
)
from plimsoll.analysis.report.sections.weeks import weeks_lines, weeks_sections
from plimsoll.analysis.statistics.against_log import HeldRun
from plimsoll.common.errors import Severity, gravest_first
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted

if TYPE_CHECKING:
    from plimsoll.analysis.evidence.weeks import WeeksBeside
from plimsoll.rundir.facts import Storage
from plimsoll.rundir.volumes import VolumeRound

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_OPEN = 4  # runs whose own warnings are open at once


@dataclass(frozen=True)
class Report:
    """A report, what it is made of, and what it says.

    `unreadable` says which run directories were left out (hostile); `volumes` are cells of `plimsoll fileio`,
    `rounds` those of preconditioning; `held` are replays that are held against their log, `weeks` two sides
    of imported logs that are held against each other.
    """

    path: Path
    runs: list[ReportRun]
    unreadable: list[str] = field(default_factory=list)
    volumes: Cells = field(default_factory=lambda: Cells([], []))
    rounds: list[VolumeRound] = field(default_factory=list)
    held: list[HeldRun] = field(default_factory=list)
    weeks: "list[WeeksBeside]" = field(default_factory=list)

    @cached_property
    def scenarios(self) -> list[ScenarioRuns]:
        """The runs by scenario and backend."""
        return group_by_scenario(self.runs)

    @cached_property
    def compared(self) -> list[ScenarioFigures]:
        """The figures of the scenarios whose runs' phases were measured."""
        return [figures for each in self.scenarios if (figures := scenario_figures(each))]

    @cached_property
    def factors(self) -> list[FactorFigures]:
        """What the factors did in each scenario of an experiment that has any."""
        return [found for each in self.compared if (found := factor_figures(each))]

    @cached_property
    def storages(self) -> dict[str, list[Storage]]:
        """What the lab read of the storage in each run, by the backend's name (hostile)."""
        return storages_by_backend(self.runs)

    @cached_property
    def stalls(self) -> list[ScenarioStalls]:
        """The slow windows of the scenarios whose hosts were observed."""
        found = ((each, find_slow_windows(each)) for each in self.scenarios)
        return [ScenarioStalls(scenario, backends) for scenario, backends in found if backends]

    @cached_property
    def hosts(self) -> dict[int, HostView]:
        """What is known of the hosts, by the scenario's number."""
        figures = {each.scenario.name: each for each in self.compared}
        found = (
            (each.number, host_view(each, figures.get(each.name), len(self.scenarios)))
            for each in self.scenarios
        )
        return {number: view for number, view in found if view}

    @property
    def moved(self) -> dict[int, Chart]:
        """The figures of what moved with the slow windows, by the scenario's number."""
        found = (
            (each.scenario.number, moved_chart(each, view))
            for each in self.stalls
            if (view := self.hosts.get(each.scenario.number))
        )
        return {number: chart for number, chart in found if chart}

    @cached_property
    def unfinished(self) -> list[str]:
        """What the experiments have not done (hostile)."""
        return find_unfinished(self.runs)

    @cached_property
    def findings(self) -> dict[int, list[Finding]]:
        """The findings on each run by its number."""
        return {run.number: check_run(run) for run in self.runs}

    @cached_property
    def findings_on_all(self) -> list[Finding]:
        """The findings on all runs together."""
        unfinished = bool(self.unfinished)
        return check_comparison(self.scenarios, self.compared, self.unreadable, self.weeks, unfinished)

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        answers = answers_json(self.compared, self.findings_on_all)
        return {
            "format": 1,
            "runs": [
                {**run.as_json(), "findings": [each.as_json() for each in self.findings[run.number]]}
                for run in self.runs
            ],
            "findings": [each.as_json() for each in self.findings_on_all],
            "phases": [each.as_json() for each in self.compared],
            "stalls": [each.as_json() for each in self.stalls],
            "differences": differences_json(self.storages),
            "fileio": [cell.model_dump() for cell in self.volumes.cells],
            "unreadable": self.unreadable,
            "unfinished": self.unfinished,
            **({"answers": answers} if answers else {}),
            **({"fsync": [cell.model_dump() for cell in syncs]} if (syncs := self.volumes.syncs) else {}),
            **({"weeks": [each.as_json() for each in self.weeks]} if self.weeks else {}),
            **({"against_log": [each.as_json() for each in self.held]} if self.held else {}),
            **({"factors": factors_json(self.factors)} if self.factors else {}),
            **({"precondition": [one.model_dump() for one in self.rounds]} if self.rounds else {}),
        }

    def lines(self) -> list[str]:
        """Return what the command prints, safe for a terminal: the headline of each run, and the report."""
        said = []
        for run in self.runs:
            about = scripted_line(run)
            said += [run.one_line(), *([f"  {about}"] if about else []), *measure_lines(run)]
        said += [*answer_lines(self.compared, self.findings_on_all), *weeks_lines(self.weeks)]
        said += [*self.sentences(), *slow_window_lines(self.stalls), *map(against_log_sentence, self.held)]
        return [*map(printable, said), f"report: {printable(str(self.path), 4096)}"]

    def sentences(self) -> list[str]:
        """Return what the saturator did to each scenario, in a sentence each (hostile)."""
        found = [
            (each.scenario.name, text)
            for each in self.compared
            for text in (phase_sentence(each), measure_sentence(each.scenario))
        ]
        several = len(self.compared) > 1
        return [f"{name}: {text}" if several else text for name, text in found if text]


# What a page begins with; where its only run is gravely in doubt, the warnings stand above even this.
FIRST: list[Callable[[Report], Iterable[Section]]] = [
    lambda report: answers(report.compared, report.findings_on_all),
    lambda report: weeks_sections(report.weeks),
    lambda report: [
        headline(run, report.findings[run.number]) for run in report.runs if len(report.runs) == 1
    ],
]
SECTIONS: list[Callable[[Report], Iterable[Section]]] = [
    lambda report: [Section(findings=report.findings_on_all)],
    lambda report: slow_window_sections(report.stalls, len(report.scenarios)),
    lambda report: factor_sections(report.factors),
    lambda report: phase_sections(report.compared),
    lambda report: [measure_section(report.scenarios)],
    lambda report: [chart_section(report.scenarios, report.compared, report.moved)],
    lambda report: differences_section(report.storages),
    lambda report: grinder_section(report.scenarios),
    lambda report: run_list(report.scenarios, report.runs),
    lambda report: [run_chart_section(report.scenarios, report.runs, report.moved)],
    lambda report: volume_sections(
        report.volumes, report.rounds, {run.backend: run.shade for run in report.runs}
    ),
    lambda report: [against_log_section(report.held)],
    lambda report: [host_section(view, len(report.scenarios)) for view in report.hosts.values()],
    lambda report: run_details(report.scenarios, report.runs, report.findings),
]


def render_report(report: Report) -> str:
    """Return the page: one HTML file that needs no network. All text from run directories is escaped."""
    first, others = ([each for make in make_all for each in make(report)] for make_all in (FIRST, SECTIONS))
    several = len(report.runs) > 1
    of_all = gravest_first(finding for section in (*first, *others) for finding in section.findings)
    of_runs = merge_subjects(
        [
            (run.label if several else "", finding)
            for run in report.runs
            for finding in report.findings[run.number]
            if finding.level != Severity.NOTE
        ],
        run_groups(report.scenarios),
    )
    folds = len(report.runs) > _MOST_OPEN
    grave = [each for each in of_runs if each[1].level == Severity.BAD]
    minor = [each for each in of_runs if each[1].level == Severity.WARN]
    is_doubted = not several and bool(grave)
    return render_page(
        "report.html",
        [chart for section in (*first, *others) for chart in section.all_charts()],
        _TEMPLATES,
        title=_title(report),
        run=None if several or not report.runs else report.runs[0],
        unfinished=report.unfinished,
        warnings=[*(("", finding) for finding in of_all), *(grave if folds else of_runs)],
        folded=minor if folds else [],
        folded_count=len(minor),
        above=[] if is_doubted else first,
        below=[*first, *others] if is_doubted else others,
    )


def _title(report: Report) -> str:
    runs = report.runs
    if not runs:
        programs = ["sysbench"] * bool(report.volumes.cells) + ["fio"] * bool(report.volumes.syncs)
        return f"Volumes measured with {' and '.join(programs)}"
    if len(runs) > 1:
        experiments = [run.directory.facts.experiment for run in runs]
        names = {experiment.name if experiment else None for experiment in experiments}
        count = counted(_how_many(runs), "run")
        if len(names) == 1 and (name := names.pop()):
            return f"Experiment {name}: {count}"
        return f"{count} compared"
    facts = runs[0].directory.facts
    what = facts.scenario.replace("-", " ").capitalize()
    if facts.logs:
        more = f" and {len(facts.logs) - 1} more" if len(facts.logs) > 1 else ""
        what += f" of {facts.logs[0].path.rsplit('/', 1)[-1]}{more}"
    return what


def _how_many(runs: Sequence[ReportRun]) -> int:
    """Return the number of runs: what ran together is one, in as many directories as it has members."""
    directories = (run.directory for run in runs)
    return len({each.path.parent if each.facts.together else each.path for each in directories})
