"""What a report has, and its page: one file, no network, nothing of a run directory in it but as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.page.section import Table
from plimsoll.analysis.page.shell import render_page
from plimsoll.analysis.report.charts import backend_charts, run_charts, step_charts
from plimsoll.analysis.report.comparison_cautions import (
    cache_notes,
    control_cautions,
    count_doubts,
    find_comparison_cautions,
    missing_cautions,
)
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.run_cautions import (
    Caution,
    damage_cautions,
    find_run_cautions,
    merge_cautions,
    together_cautions,
)
from plimsoll.analysis.report.runs import (
    ScenarioFigures,
    ScenarioRuns,
    group_by_scenario,
)
from plimsoll.analysis.report.sections.against_log import (
    against_log_cautions,
    against_log_chart,
    against_log_sentence,
    against_log_table,
)
from plimsoll.analysis.report.sections.answer import answer_lines, answers, answers_json
from plimsoll.analysis.report.sections.factors import factor_parts, factors_json
from plimsoll.analysis.report.sections.headline import (
    big_figures,
    footnote,
    scripted_figures,
    scripted_line,
    scripted_sentence,
    sentence,
)
from plimsoll.analysis.report.sections.host import HostView, host_section, host_view
from plimsoll.analysis.report.sections.phases import (
    measure_lines,
    measure_phase_table,
    measure_sentence,
    phase_sentence,
    phase_table,
)
from plimsoll.analysis.report.sections.single_runs import (
    _MOST_SAYING,
    _NAMED,
    failure_table,
    grinder_by_backend,
    grinder_table,
    groups_of,
    instance_table,
    list_facts,
    measure_table,
    percentile_table,
    route_table,
    status_table,
)
from plimsoll.analysis.report.sections.slow_windows import (
    ScenarioStalls,
    moved_chart,
    slow_window_lines,
    stall_section,
)
from plimsoll.analysis.report.sections.storage import (
    Cells,
    chart_of_fileio,
    differences_json,
    differences_table,
    fileio_table,
    fsync_table,
    rounds_table,
)
from plimsoll.analysis.statistics.against_log import HeldRun
from plimsoll.common.errors import Severity, gravest_first
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted
from plimsoll.rundir.volumes import FsyncCell, MatrixCell, VolumeRound

_NO_CELLS = Cells([], [])
_TEMPLATES = Path(__file__).parent / "templates"
_MOST_OPEN = 4  # runs whose own tables are open at once


@dataclass(frozen=True)
class Report:
    """A report that was written, and what it says."""

    path: Path
    runs: list[MeasuredRun]
    compared: list[ScenarioFigures]
    unreadable: list[str]
    fileio: list[MatrixCell] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    rounds: list[VolumeRound] = field(default_factory=list)
    stalls: list[ScenarioStalls] = field(default_factory=list)
    fsyncs: list[FsyncCell] = field(default_factory=list)
    held: list[HeldRun] = field(default_factory=list)

    @cached_property
    def doubts(self) -> int:
        """Grave reasons not to trust what the runs say beside one another."""
        scenarios = group_by_scenario(self.runs)
        return count_doubts(scenarios, find_comparison_cautions(scenarios, self.compared, self.unreadable))

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        factors = factors_json(self.compared)
        answers = answers_json(self.compared, self.doubts)
        return {
            "format": 1,
            "runs": [run.as_json() for run in self.runs],
            "phases": [each.as_json() for each in self.compared],
            "stalls": [each.as_json() for each in self.stalls],
            "differences": differences_json(self.runs),
            "fileio": [cell.model_dump() for cell in self.fileio],
            "unreadable": self.unreadable,
            "unfinished": self.unfinished,
            **({"answers": answers} if answers else {}),
            **({"fsync": [cell.model_dump() for cell in self.fsyncs]} if self.fsyncs else {}),
            **({"against_log": [each.as_json() for each in self.held]} if self.held else {}),
            **({"factors": factors} if factors else {}),
            **({"precondition": [one.model_dump() for one in self.rounds]} if self.rounds else {}),
        }

    def lines(self) -> list[str]:
        """Return what the command prints, safe for a terminal: the headline of each run, and the report."""
        said = [line for run in self.runs for line in (run.one_line(), *_own(run), *measure_lines(run))]
        said += answer_lines(self.compared, self.doubts)
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


def _own(run: MeasuredRun) -> list[str]:
    """Return a line on what a scripted run is about; none of any other."""
    return [f"  {line}"] if (line := scripted_line(run)) else []


def render_report(
    runs: Sequence[MeasuredRun],
    compared: Sequence[ScenarioFigures] = (),
    unreadable: Sequence[str] = (),
    fileio: Cells = _NO_CELLS,
    unfinished: Sequence[str] = (),
    rounds: Sequence[VolumeRound] = (),
    stalls: Sequence[ScenarioStalls] = (),
    held: Sequence[HeldRun] = (),
) -> str:
    """Return the HTML of a report on `runs` (one or more, or none where there are cells of `fileio`).

    `compared` are the figures by scenario and backend, where there are any; `unreadable` says which run
    directories were left out; `unfinished` what experiments have not done (hostile); `rounds` are those
    of preconditioning; `stalls` are the slow windows of the scenarios whose hosts were observed; `held` are
    replays that are held against their log.
    """
    scenarios = group_by_scenario(runs)
    views = _views(scenarios, compared)
    moved = _moved(stalls, views, len(scenarios))
    comparing = _below("scatter-", _comparing(runs, compared), moved)
    factors = factor_parts(compared)
    own = [] if not runs or any(scenario.repeated for scenario in scenarios) else run_charts(runs)
    if not comparing:
        own = _below("tail", own, moved)
    if len(runs) == 1:
        own = [*step_charts(scenarios[0], ""), *own]
    if chart := against_log_chart(held):
        own.append(chart)
    volumes = chart_of_fileio(fileio.cells, {run.backend: run.shade or 0 for run in runs})
    if volumes:
        own.append(volumes)
    shown = [_run(run) for run in runs]
    compares = find_comparison_cautions(scenarios, compared, unreadable)
    hosts = [host_section(view, len(scenarios)) for view in views.values()]
    return render_page(
        "report.html",
        [
            *(chart for part in factors for chart in part.charts),
            *comparing,
            *own,
            *(chart for host in hosts for chart in (*host.loud, *host.quiet)),
        ],
        _TEMPLATES,
        title=_title(runs, fileio),
        unfinished=unfinished,
        answers=answers(compared, count_doubts(scenarios, compares)),
        factors=factors,
        comparing=comparing,
        own=own,
        volumes=fileio_table(fileio.cells, fileio.syncs),
        fsyncs=fsync_table(fileio.syncs),
        held=against_log_table(held),
        filled=rounds_table(rounds),
        hosts=hosts,
        stalls=[stall_section(each, len(scenarios)) for each in stalls],
        phases=[phase_table(each, len(compared) == 1) for each in compared if _says_more(each)],
        measured=[each for one in scenarios if (each := measure_phase_table(one, len(scenarios) == 1))],
        differences=differences_table(runs),
        grinder=grinder_by_backend(scenarios),
        folded=len(runs) > _MOST_OPEN,
        groups=groups_of(scenarios, runs),
        picked=lambda places: [shown[place] for place in places],
        runs=shown,
        said=merge_repeats(
            said for said in _said(shown) if said[1].level == Severity.BAD or len(runs) <= _MOST_OPEN
        ),
        folded_away=merge_repeats(said for said in _said(shown) if said[1].level == Severity.WARN),
        warned=sum(caution.level == Severity.WARN for _, caution in _said(shown)),
        cautions=gravest_first(
            [
                *compares,
                *missing_cautions(scenarios, compared, told=bool(unfinished)),
                *control_cautions(runs),
                *(Caution(Severity.WARN, trouble) for trouble in fileio.troubles),
                *cache_notes(scenarios),
                *against_log_cautions(held),
            ]
        ),
    )


def _said(shown: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Caution]]:
    """Yield the cautions on single runs, with the name of each (hostile)."""
    for run in shown:
        yield from ((run["name"], caution) for caution in run["cautions"])


def _comparing(runs: Sequence[MeasuredRun], compared: Sequence[ScenarioFigures]) -> list[Chart]:
    if len(runs) == 1:
        return []
    found: list[Chart] = []
    for each in compared:
        of = "" if len(compared) == 1 else f": {each.scenario.name}"
        found += [*step_charts(each.scenario, of), *backend_charts(each, of)]
    return found


def _views(scenarios: Sequence[ScenarioRuns], compared: Sequence[ScenarioFigures]) -> dict[int, HostView]:
    """Return what is known of the hosts, by the scenario's number."""
    figures = {each.scenario.name: each for each in compared}
    found = ((each.number, host_view(each, figures.get(each.name), len(scenarios))) for each in scenarios)
    return {number: view for number, view in found if view}


def _moved(
    stalls: Sequence[ScenarioStalls], views: Mapping[int, HostView], scenarios: int
) -> dict[int, Chart]:
    """Return the figures of what moved with the slow windows, by the scenario's number."""
    found = (
        (each.scenario.number, moved_chart(each, views[each.scenario.number], scenarios))
        for each in stalls
        if each.scenario.number in views
    )
    return {number: chart for number, chart in found if chart}


def _below(key: str, charts: Sequence[Chart], moved: Mapping[int, Chart]) -> list[Chart]:
    """Return the charts with what moved below the scatter of its scenario; `key` begins its key."""
    found: list[Chart] = []
    for chart in charts:
        found.append(chart)
        if chart.key.startswith(key):
            number = int(chart.key.removeprefix(key) or 0)
            found += [moved[number]] if number in moved else []
    return found


def _says_more(each: ScenarioFigures) -> bool:
    """Return whether the table of phases says more than the table of runs."""
    return each.saturated or each.scenario.repeated


def _title(runs: Sequence[MeasuredRun], fileio: Cells) -> str:
    if not runs:
        programs = [*(["sysbench"] if fileio.cells else []), *(["fio"] if fileio.syncs else [])]
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


def _how_many(runs: Sequence[MeasuredRun]) -> int:
    """Return the number of runs: what ran together is one, in as many directories as it has members."""
    directories = (run.directory for run in runs)
    return len({each.path.parent if each.facts.together else each.path for each in directories})


def _tables(run: MeasuredRun) -> list[Table | None]:
    beside = [instance_table(run), failure_table(run), measure_table(run)]
    return [*beside, percentile_table(run), route_table(run), grinder_table(run), status_table(run)]


def _run(run: MeasuredRun) -> dict[str, Any]:
    found = [*find_run_cautions(run), *merge_cautions(run), *damage_cautions(run), *together_cautions(run)]
    cautions = gravest_first(found)
    response = run.statistics.samples["response"].figures()
    target = run.directory.facts.target
    bigs = scripted_figures(run)
    return {
        "name": run.name,
        "colour": run.colour,
        "emulated": run.emulated,
        "status": run.status,
        "generator_limited": run.generator_limited,
        "target": target.url if target else "",
        "started_at": run.directory.facts.started_at,
        "requests": run.statistics.requests,
        "failures": run.statistics.failures,
        "times": [response.shown(name) for name in ("p50", "p99", "p99.9", "max")],
        "own": scripted_line(run),
        "big": bigs or big_figures(run),
        "sentence": scripted_sentence(run) or sentence(run),
        "footnote": "" if bigs else footnote(run),
        "cautions": [caution for caution in cautions if caution.level != Severity.NOTE],
        "notes": [caution for caution in cautions if caution.level == Severity.NOTE],
        "tables": [table for table in _tables(run) if table],
        "facts": list_facts(run),
    }


def merge_repeats(said: Iterable[tuple[str, Caution]]) -> list[tuple[str, Caution]]:
    """Return (whose, caution) pairs; what more than four runs say in the same words is said once. Pure."""
    by_text: dict[Caution, list[str]] = {}
    for name, caution in said:
        by_text.setdefault(caution, []).append(name)
    found = []
    for caution, names in by_text.items():
        if len(names) <= _MOST_SAYING:
            found += [(name, caution) for name in names]
        else:
            found.append((f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more", caution))
    return found
