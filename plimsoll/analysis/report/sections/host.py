"""The host under test: what stood out, a figure a subject, and the quiet ones apart."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from plimsoll.analysis.evidence.host_rows import SUBJECTS, HostRow, HostSubject
from plimsoll.analysis.page.chart import Chart, Json, TimeUnit, axis, colour_of, layout, unit_for
from plimsoll.analysis.page.section import Section, Sentence
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import (
    Backend,
    BackendRuns,
    Floats,
    Scenario,
    ScenarioFigures,
    ScenarioRuns,
)
from plimsoll.analysis.statistics.measures import edges_ns
from plimsoll.analysis.statistics.windows import PHASES, WHOLE_RUN
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import counted, seconds, significant

_MOST_VALUES, _LEAST_VALUES = 40_000, 8_000  # drawn in a section
_MOST_BINS, _FEWEST_BINS = 240, 30
_A_BIN = 3  # values: the line, and the ground's two edges
_MOST_BACKENDS = 12
_OF_A_SUBJECT = 3
_LARGEST, _LATEST_NS = 1e18, float(1 << 61)
_ONE_MISSED_S = 1.9  # so far apart are neighbours at most; beyond, a sample is missing
_GAP_PX, _ROW_PX = 26, 96  # of a figure, as high as the style sheet makes it
_DIGITS = 4
_VISIBLE = 0.01  # of the highest value: a narrower ground is not seen


@dataclass(frozen=True)
class TimeBins:
    """Bins of one width from `first_s` on, in seconds since the saturator started."""

    first_s: float
    width_s: float
    count: int

    @property
    def middles_s(self) -> list[float]:
        """Where the values of each are drawn."""
        return [self.first_s + (bin_ + 0.5) * self.width_s for bin_ in range(self.count)]


class Binned:
    """Samples by bin: their mean, lowest and highest; NaN where there are none. Arrays of shape (bins,)."""

    def __init__(self, bins: TimeBins) -> None:
        self.bins = bins
        self._count = np.zeros(bins.count)
        self._total = np.zeros(bins.count)
        self._low = np.full(bins.count, np.inf)
        self._high = np.full(bins.count, -np.inf)

    def add(self, t_s: Floats, value: Floats) -> None:
        """Add samples of one run, none of them NaN; a bin between two neighbours has what they have."""
        slot = np.floor((t_s - self.bins.first_s) / self.bins.width_s).astype(np.int64)
        # sampled once a second, with a jitter: of two bins one may have both samples
        over = np.flatnonzero((np.diff(slot) == 2) & (np.diff(t_s) < _ONE_MISSED_S))
        slot = np.concatenate([slot, slot[over] + 1])
        value = np.concatenate([value, (value[over] + value[over + 1]) / 2])
        there = (slot >= 0) & (slot < self.bins.count)
        slot, value = slot[there], value[there]
        np.add.at(self._count, slot, 1)
        np.add.at(self._total, slot, value)
        np.minimum.at(self._low, slot, value)
        np.maximum.at(self._high, slot, value)

    @property
    def has_samples(self) -> bool:
        """Whether any bin has a sample."""
        return bool(self._count.any())

    @property
    def low(self) -> Floats:
        """The lowest of each bin."""
        return np.where(self._count > 0, self._low, np.nan)

    @property
    def high(self) -> Floats:
        """The highest of each bin."""
        return np.where(self._count > 0, self._high, np.nan)

    @property
    def mean(self) -> Floats:
        """The mean of each bin."""
        with np.errstate(invalid="ignore"):
            return self._total / np.where(self._count > 0, self._count, np.nan)


@dataclass
class PhaseMean:
    """The mean of all samples in a phase, and the highest of them."""

    total: float = 0.0
    count: int = 0
    high: float = 0.0

    @property
    def mean(self) -> float | None:
        """None without samples."""
        return self.total / self.count if self.count else None


@dataclass
class RowFigures:
    """One row of one backend: what is drawn, what beside it, and its means by phase."""

    line: Binned
    beside: Binned
    phases: dict[str, PhaseMean] = field(default_factory=dict)

    def mean(self, phase: str) -> float | None:
        """Return the mean in a phase; None without samples."""
        return self.phases[phase].mean if phase in self.phases else None


@dataclass(frozen=True)
class BackendHost:
    """All rows of a backend that any of its runs has, and how many processors it has, where that is known."""

    backend: Backend
    rows: Mapping[HostRow, RowFigures]
    cpus: int | None


@dataclass(frozen=True)
class HostView:
    """The hosts of one scenario that are drawn, on the time axis of the scatter: from where to where.

    `saturators` (hostile; empty without any) ran for `busy_s`; time is counted `since` they started.
    """

    scenario: Scenario
    saturators: str
    since: str
    busy_s: float | None
    caption: str
    hosts: list[BackendHost]
    bins: TimeBins
    edges_s: tuple[float, float]

    def chart(
        self, key: str, title: str, about: str, rows: Sequence[HostRow], *, mixed: bool = False
    ) -> Chart:
        """Return a figure of `rows`, each of which some host has; `mixed`: of several subjects."""
        unit = unit_for(max(self.edges_s[1], -self.edges_s[0]))
        x = [unit.of(t_s) for t_s in self.bins.middles_s]
        data: list[Json] = []
        named: set[int] = set()
        for place, row in enumerate(rows, 1):
            lines = [(host.backend, host.rows[row]) for host in self.hosts if row in host.rows]
            top = max(float(np.nanmax(figures.line.high)) for _, figures in lines)
            for backend, figures in lines:
                group: Json = {
                    "type": "scatter",
                    "name": plotly_text(backend.called),
                    "yaxis": f"y{place if place > 1 else ''}",
                    "legendgroup": f"backend {backend.shade}",
                }
                colour, line = colour_of(backend.shade), figures.line
                if np.nanmax(line.high - line.low) > _VISIBLE * top:
                    data.append(group | _ground(line, x, unit.of(self.bins.width_s / 2), colour))
                name = group["name"]
                hover = f"{name}: %{{y}} {row.unit}<br>%{{x}} {unit.name}<extra></extra>"
                shown = {"hovertemplate": hover, "showlegend": backend.shade not in named}
                data.append(group | _mean(line, x, colour) | shown)
                named.add(backend.shade)
                if figures.beside.has_samples:
                    data.append(group | _beside(figures.beside, x, colour))
        return Chart(key, title, about, data, self._layout(rows, unit, mixed), tall=len(rows) - 1)

    def _layout(self, rows: Sequence[HostRow], unit: TimeUnit, mixed: bool) -> Json:
        """Return the rows' axes one below another, and the saturator's time; `mixed` ones have names."""
        whole = len(rows) * _ROW_PX + (len(rows) - 1) * _GAP_PX
        axes: Json = {}
        notes: list[Json] = []
        for place, row in enumerate(rows):
            top = 1 - place * (_ROW_PX + _GAP_PX) / whole
            axes[f"yaxis{place + 1 if place else ''}"] = axis("") | {
                "domain": [max(round(top - _ROW_PX / whole, 4), 0.0), round(top, 4)],
                "nticks": 4,
                "title": {"text": row.title, "standoff": 8, "font": {"size": 12}},
                **({"range": [0, 102]} if row.unit == "%" and _is_loud(row, self.hosts) else {}),
            }
            if mixed and row.said:
                at: Json = {"xref": "paper", "yref": "paper", "x": 0, "y": round(top, 4), "xanchor": "left"}
                text: Json = {"text": row.said, "font": {"size": 12}, "showarrow": False}
                notes.append(at | text | {"yanchor": "bottom"})
        busy_s = self.busy_s
        span_s = self.edges_s[1] - self.edges_s[0]
        x_axis = axis(f"{unit.name} since {self.since}") | {
            "range": [unit.of(self.edges_s[0] - span_s / 100), unit.of(self.edges_s[1] + span_s / 100)],
            "anchor": f"y{len(rows)}" if len(rows) > 1 else "y",
            "rangemode": "normal",
            "zeroline": busy_s is not None,
        }
        if busy_s is not None:
            band: Json = {"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
            look: Json = {"line": {"width": 0}, "fillcolor": "var(--muted)", "opacity": 0.1}
            axes["shapes"] = [band | look | {"x0": 0, "x1": unit.of(busy_s)}]
            label: Json = {"x": unit.of(busy_s) / 2, "y": 1, "yref": "paper", "yanchor": "bottom"}
            look = {"font": {"size": 11, "color": "var(--muted)"}, "showarrow": False}
            notes.append(label | look | {"text": plotly_text(self.saturators)})
        if notes:
            axes["annotations"] = notes
        return layout(x_axis, axes.pop("yaxis"), **axes)


def host_view(scenario: ScenarioRuns, figures: ScenarioFigures | None, scenarios: int) -> HostView | None:
    """Return what is known of a scenario's hosts; None where no observer saw anything.

    The time axis is that of the scatter in `figures`, where there is one. With several `scenarios` each has
    its share of the page.
    """
    # A figure of more backends cannot be read.
    drawn = replace(scenario, backends=scenario.few.backends[:_MOST_BACKENDS])
    edges_s = _edges_s(scenario, figures)
    budget = max(_MOST_VALUES // scenarios, _LEAST_VALUES)
    rows = sum(len(subject.rows) for subject in SUBJECTS)
    count = min(max(budget // (_A_BIN * rows * len(drawn.backends)), _FEWEST_BINS), _MOST_BINS)
    width_s = max(1.0, float(np.ceil((edges_s[1] - edges_s[0]) / count)))
    first_s = float(np.floor(edges_s[0] / width_s)) * width_s
    bins = TimeBins(first_s, width_s, max(int(np.ceil((edges_s[1] - first_s) / width_s)), 1))
    hosts = [host for backend in drawn.backends if (host := _host_of(backend, bins)).rows]
    if not hosts:
        return None
    repeats = "of all repeats " if scenario.repeated else ""
    since = f"{scenario.saturators_label} started" if scenario.saturators else "the start of the run"
    caption = (
        f"What the observers saw, over the time since {since}. Lines are means {repeats}over "
        f"{seconds(bins.width_s)}, the band behind them spans the lowest to the highest sample. A gap is a "
        "time without samples."
    )
    if len(drawn.backends) < len(scenario.backends):
        caption += f" Drawn are {len(drawn.backends)} of {counted(len(scenario.backends), 'backend')}."
    return HostView(
        scenario, scenario.saturators_label, since, scenario.busy_s, caption, hosts, bins, edges_s
    )


def host_section(view: HostView, scenarios: int) -> Section:
    """Return what is drawn of a scenario's hosts; it is folded where there are several `scenarios`."""
    loud, quiet, why = _charts(view)
    title = f"{counted(len(quiet), 'quiet figure')} of the host"
    calm = Section(title, caption=f"Quiet: {why}.", charts=quiet, layout="fold", look="quiet")
    return Section(
        title=f"The host{view.scenario.title_end}",
        caption=view.caption,
        sentences=[
            Sentence(describe_changes(host), host.backend.called, host.backend.colour) for host in view.hosts
        ],
        charts=loud,
        sections=[calm] if quiet else [],
        layout="chapter",
        folded=scenarios > 1,
        look="host",
    )


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
        min(-run.zero_ns / 1e9 for run in scenario.runs),
        max(max(run.elapsed_s - run.zero_ns / 1e9 for run in scenario.runs), 1.0),
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


def describe_changes(host: BackendHost) -> str:
    """Return what changed most, subject by subject: `system CPU 4 → 92 % (up to 100 %), ARC size …`."""
    return (
        "; ".join(", ".join(said) for each in SUBJECTS if (said := _changes(host, each)))
        or "nothing stood out"
    )


def _changes(host: BackendHost, subject: HostSubject) -> list[str]:
    """Return the changes of one subject that are worth a word, the gravest first."""
    found = [
        (weight, _text(row, host.rows[row], host.cpus))
        for row in subject.rows
        if row.alarm and row in host.rows and (weight := change_weight(row, host.rows[row], host.cpus)) >= 1
    ]
    return [text for _, text in sorted(found, key=lambda each: -each[0])[:_OF_A_SUBJECT]]


def change_weight(row: HostRow, figures: RowFigures, cpus: int | None = None) -> float:
    """Return how many times over a row changed by what is worth a word; 0 where that cannot be said."""
    at = row.share_of_one(row.at, cpus)
    before, during = figures.mean("before"), figures.mean("during")
    if before is None and during is None:
        whole = figures.mean(WHOLE_RUN)
        return 0.0 if whole is None or row.alarm != "rises" else whole / at
    if before is None or during is None:
        return 0.0
    if row.alarm == "rises":
        return (during - before) / at
    if row.alarm == "falls":
        return (before - during) / before / at if before > 0 else 0.0
    if during <= row.quiet:
        return 0.0
    return during / max(before, row.quiet / at) / at


def _text(row: HostRow, figures: RowFigures, cpus: int | None) -> str:
    before, during = figures.mean("before"), figures.mean("during")
    phase = "during"
    if during is None:
        during, before, phase = figures.mean(WHOLE_RUN), None, WHOLE_RUN
    high, shown = figures.phases[phase].high, significant(during or 0.0, 2)
    text = f"{row.said} {shown}" if before is None else f"{row.said} {significant(before, 2)} → {shown}"
    text = f"{text} {row.unit}".strip()
    if row.alarm != "falls" and high > 1.2 * (during or 0.0):
        text += f" (up to {significant(high, 2)})"
    return text + (
        f" (of {cpus} processors: one is {significant(100 / cpus)} %)" if row.of_one and cpus else ""
    )


def _host_of(backend: BackendRuns, bins: TimeBins) -> BackendHost:
    found: dict[HostRow, RowFigures] = {}
    for run in backend.runs:
        for row, t_s, value, beside in rows_of(run):
            figures = found.setdefault(row, RowFigures(Binned(bins), Binned(bins)))
            for series, binned in ((value, figures.line), (beside, figures.beside)):
                known = ~np.isnan(series)
                binned.add(t_s[known], series[known])
            _add_phases(figures, run, t_s, value)
    storages = (run.directory.facts.storage for run in backend.runs)
    cpus = (storage.facts.get("cpus") for storage in storages if storage)
    return BackendHost(
        backend,
        {row: figures for row, figures in found.items() if figures.line.has_samples},
        next((one for one in cpus if isinstance(one, int) and one > 0), None),
    )


def _add_phases(figures: RowFigures, run: ReportRun, t_s: Floats, value: Floats) -> None:
    zero_s = run.zero_ns / 1e9
    for phase in PHASES if run.saturation else (WHOLE_RUN,):
        from_ns, to_ns = edges_ns(phase, run.saturation)
        within = value[(t_s >= from_ns / 1e9 - zero_s) & (t_s < to_ns / 1e9 - zero_s) & ~np.isnan(value)]
        each = figures.phases.setdefault(phase, PhaseMean())
        if len(within):
            each.total += float(within.sum())
            each.count += len(within)
            each.high = max(each.high, float(within.max()))


def rows_of(run: ReportRun) -> Iterator[tuple[HostRow, Floats, Floats, Floats]]:
    """Yield each row that the run's host.csv has: its instants, its values, and those beside it.

    Instants are in order, in seconds since the saturator started; values are NaN where they are not known.
    """
    columns = run.host.samples.columns
    names = list(columns)[1:]
    chosen = {
        row: (_columns(subject, run, row.column, names), _columns(subject, run, row.beside, names))
        for subject in SUBJECTS
        for row in subject.rows
    }
    if not any(own or beside for own, beside in chosen.values()):
        return
    t_ns = columns["t_ns"]
    there = np.abs(t_ns) < _LATEST_NS  # not NaN either
    order = np.argsort(t_ns[there], kind="stable")
    t_s = (t_ns[there][order] - run.zero_ns) / 1e9
    for row, (own, beside) in chosen.items():
        value, other = (
            _joined([columns[name][there][order] for name in each], row, len(t_s)) for each in (own, beside)
        )
        if not np.isnan(value).all():
            yield row, t_s, value, other


def _columns(subject: HostSubject, run: ReportRun, pattern: str, names: list[str]) -> list[str]:
    """Return the columns of a row: of the storage's own devices, where any of those was observed."""
    if not pattern:
        return []
    found = {name: match for name in names if (match := re.fullmatch(pattern, name, re.DOTALL))}
    own = run.own_disks if subject.devices == "disks" else run.own_pools if subject.devices else set()
    return [name for name, match in found.items() if own and match[1] in own] or list(found)


def _joined(columns: list[Floats], row: HostRow, count: int) -> Floats:
    """Return one value an instant. A sum lacks no part: where one is missing it is NaN, as everywhere."""
    known = [np.where((each >= 0) & (each < _LARGEST), each, np.nan) for each in columns]
    known = [each for each in known if not np.isnan(each).all()]
    if not known:
        return np.full(count, np.nan)
    table = np.array(known) / row.scale
    if row.join == "sum":
        return np.asarray(table.sum(axis=0))
    some = ~np.isnan(table)
    if row.join == "max":
        return np.asarray(np.where(some.any(axis=0), np.where(some, table, -np.inf).max(axis=0), np.nan))
    n = some.sum(axis=0)
    return np.asarray(np.where(some, table, 0.0).sum(axis=0) / np.where(n > 0, n, np.nan))


def _mean(line: Binned, x: list[float], colour: str) -> Json:
    mean = line.mean
    known = ~np.isnan(mean)
    lone = known & ~np.append(known[1:], False) & ~np.insert(known[:-1], 0, False)
    trace: Json = {
        "x": x,
        "y": [_short(value) for value in mean],
        "mode": "lines",
        "connectgaps": False,
        "line": {"color": colour, "width": 1.8},
    }
    if lone.any():  # a line of one point is none
        sizes = [4 if each else 0 for each in lone.tolist()]
        trace |= {"mode": "lines+markers", "marker": {"color": colour, "size": sizes}}
    return trace


def _ground(line: Binned, x: list[float], half: float, colour: str) -> Json:
    """Return the area from the lowest to the highest value of each bin, a piece between every two gaps."""
    low, high = line.low, line.high
    known = np.isfinite(low) & np.isfinite(high)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
    xs: list[float | None] = []
    ys: list[float | None] = []
    for start, stop in edges.reshape(-1, 2).tolist():
        places = list(range(start, stop))
        at = [x[place] for place in places] if stop - start > 1 else [x[start] - half, x[start] + half]
        if stop - start == 1:
            places = [start, start]
        xs += [*at, *reversed(at), None]
        ys += [*(_short(high[place]) for place in places)]
        ys += [*(_short(low[place]) for place in reversed(places)), None]
    return {
        "x": xs,
        "y": ys,
        "mode": "lines",
        "line": {"width": 0, "color": colour},
        "fill": "toself",
        "fillcolor": colour,
        "opacity": 0.22,
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _beside(line: Binned, x: list[float], colour: str) -> Json:
    return {
        "x": x,
        "y": [_short(value) for value in line.mean],
        "mode": "lines",
        "connectgaps": False,
        "line": {"color": colour, "width": 1.5, "dash": "dot"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _short(value: float) -> float | None:
    """Return a value to four digits, as much as a row shows; None for a gap."""
    return None if np.isnan(value) else float(f"{value:.{_DIGITS}g}")
