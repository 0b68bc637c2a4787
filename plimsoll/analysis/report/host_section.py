"""The host in the report: what stood out, a figure a subject, and the quiet ones apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plimsoll.analysis.charts.host import HostAxis, HostLine, HostStrip, host_chart
from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.report.backends import BackendRuns, ScenarioRuns
from plimsoll.analysis.report.host_alarms import alarms_of
from plimsoll.analysis.report.host_bins import BackendHost, RowFigures, TimeBins, hosts_of
from plimsoll.analysis.report.host_rows import HostRow
from plimsoll.analysis.report.host_series import zero_ns
from plimsoll.analysis.report.host_subjects import SUBJECTS
from plimsoll.analysis.report.phase_figures import ScenarioFigures
from plimsoll.common.units import counted, seconds, significant

_MOST_VALUES, _LEAST_VALUES = 40_000, 8_000  # drawn in a section
_MOST_BINS, _FEWEST_BINS = 240, 30
_A_BIN = 3  # values: the line, and the ground's two edges
_MOST_BACKENDS = 12


@dataclass(frozen=True)
class Glance:
    """What stood out on one backend's host (its name is hostile; `colour` counts from 1)."""

    backend: str
    colour: int
    says: str


@dataclass(frozen=True)
class HostSection:
    """The host of one scenario's runs: `loud` figures are open, `quiet` ones folded away, and why."""

    title: str
    caption: str
    glances: list[Glance]
    loud: list[Chart]
    quiet: list[Chart]
    why_quiet: str
    folded: bool


@dataclass(frozen=True)
class HostView:
    """The hosts of one scenario that are drawn, on the time axis of the scatter."""

    scenario: ScenarioRuns
    drawn: ScenarioRuns
    hosts: list[BackendHost]
    time: HostAxis

    def chart(
        self, key: str, title: str, about: str, rows: Sequence[HostRow], *, mixed: bool = False
    ) -> Chart:
        """Return a figure of `rows`, each of which some host has; `mixed`: of several subjects."""
        strips = [
            HostStrip(
                row.title,
                row.unit,
                [_line(host.backend, host.rows[row]) for host in self.hosts if row in host.rows],
                whole=_is_loud(row, self.hosts),
                heading=row.said if mixed else "",
            )
            for row in rows
        ]
        return host_chart(key, title, about, self.time, strips)


def host_view(scenario: ScenarioRuns, figures: ScenarioFigures | None, scenarios: int) -> HostView | None:
    """Return what is known of a scenario's hosts; None where no observer saw anything.

    The time axis is that of the scatter in `figures`, where there is one. With several `scenarios` each has
    its share of the page.
    """
    drawn = _drawn(scenario)
    edges_s = _edges_s(scenario, figures)
    budget = max(_MOST_VALUES // scenarios, _LEAST_VALUES)
    rows = sum(len(subject.rows) for subject in SUBJECTS)
    count = min(max(budget // (_A_BIN * rows * len(drawn.backends)), _FEWEST_BINS), _MOST_BINS)
    width_s = max(1.0, float(np.ceil((edges_s[1] - edges_s[0]) / count)))
    first_s = float(np.floor(edges_s[0] / width_s)) * width_s
    bins = TimeBins(first_s, width_s, max(int(np.ceil((edges_s[1] - first_s) / width_s)), 1))
    hosts = [host for host in hosts_of(drawn, bins) if host.rows]
    if not hosts:
        return None
    saturators = " and ".join(name.replace("-", " ") for name in scenario.saturators)
    since = f"{saturators} started" if saturators else "the start of the run"
    time = HostAxis(bins.middles_s, width_s, edges_s, since, scenario.busy_s, saturators)
    return HostView(scenario, drawn, hosts, time)


def host_section(view: HostView, scenarios: int) -> HostSection:
    """Return what is drawn of a scenario's hosts; it is folded where there are several `scenarios`."""
    loud, quiet, why = _charts(view)
    return HostSection(
        title="The host" if scenarios == 1 else f"The host: {view.scenario.name}",
        caption=_caption(view.scenario, view.drawn, view.time.width_s, view.time.since),
        glances=[Glance(host.backend.called, host.backend.colour, alarms_of(host)) for host in view.hosts],
        loud=loud,
        quiet=quiet,
        why_quiet=why,
        folded=scenarios > 1,
    )


def _drawn(scenario: ScenarioRuns) -> ScenarioRuns:
    """Return the scenario with some of its backends: a figure of more cannot be read."""
    return ScenarioRuns(scenario.number, scenario.name, scenario.few.backends[:_MOST_BACKENDS])


def _edges_s(scenario: ScenarioRuns, figures: ScenarioFigures | None) -> tuple[float, float]:
    windows = [
        window
        for backend in (figures.backends if figures else ())
        for repeat in backend.repeats
        for window in repeat.windows
    ]
    if windows:
        return min(window.start_s for window in windows), max(window.stop_s for window in windows)
    return (
        min(-zero_ns(run) / 1e9 for run in scenario.runs),
        max(max(run.elapsed_s - zero_ns(run) / 1e9 for run in scenario.runs), 1.0),
    )


def _charts(view: HostView) -> tuple[list[Chart], list[Chart], str]:
    loud: list[Chart] = []
    quiet: list[Chart] = []
    why: list[str] = []
    hosts = view.hosts
    for subject in SUBJECTS:
        rows = [row for row in subject.rows if any(row in host.rows for host in hosts)]
        noisy = [row for row in rows if _is_loud(row, hosts)]
        calm = [row for row in rows if row not in noisy]
        why += [f"{row.said} ({_why(row, hosts)})" for row in calm]
        key = f"host-{subject.key}-{view.scenario.number}"
        if noisy:
            loud.append(view.chart(key, subject.title, subject.about, noisy))
        if calm:
            quiet.append(view.chart(f"{key}-quiet", subject.title, subject.about, calm))
    return loud, quiet, ", ".join(why)


def _line(backend: BackendRuns, figures: RowFigures) -> HostLine:
    line = figures.line
    return HostLine(backend.called, backend.shade, line.mean, line.low, line.high, figures.beside.mean)


def _is_loud(row: HostRow, hosts: Sequence[BackendHost]) -> bool:
    low, high = _span(row, hosts)
    if row.moves:
        return high - low > row.quiet * high
    most = max((host.cpus or 0 for host in hosts), default=0)
    return high > row.share_of_one(row.quiet, most)


def _span(row: HostRow, hosts: Sequence[BackendHost]) -> tuple[float, float]:
    """Return the lowest and the highest that a row ever was; if it moves, on the host where it moved most."""
    lines = [host.rows[row].line for host in hosts if row in host.rows]
    spans = [(float(np.nanmin(line.low)), float(np.nanmax(line.high))) for line in lines]
    if row.moves:
        return max(spans, key=lambda span: (span[1] - span[0]) / (span[1] or 1.0))
    return min(low for low, _ in spans), max(high for _, high in spans)


def _why(row: HostRow, hosts: Sequence[BackendHost]) -> str:
    low, high = _span(row, hosts)
    if row.moves:
        return f"{significant(low)} to {significant(high)} {row.unit}".strip()
    return f"never above {significant(high)} {row.unit}".strip() if high > 0 else "always 0"


def _caption(scenario: ScenarioRuns, drawn: ScenarioRuns, width_s: float, since: str) -> str:
    repeats = "of all repeats " if scenario.repeated else ""
    text = f"What the observers saw, over the time since {since}. Lines are means {repeats}"
    text += f"over {seconds(width_s)}, the ground behind them goes from the lowest sample to the highest. "
    text += "A gap is a time without samples."
    if len(drawn.backends) < len(scenario.backends):
        text += f" Drawn are {len(drawn.backends)} of {counted(len(scenario.backends), 'backend')}."
    return text
