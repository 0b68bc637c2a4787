"""What a report shows of an experiment with factors: for each scenario its sentences, charts and tables."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from plimsoll.analysis.page.chart import (
    Chart,
    Json,
    axis,
    choose_scale,
    colour_of,
    layout,
    log_ticks,
    points,
    rounded,
    wrap_label,
)
from plimsoll.analysis.page.section import Row, Section, Sentence, Table
from plimsoll.analysis.report.factors import (
    BACKEND,
    NO_LIMIT,
    FactorFigures,
    is_rate,
    number_of,
    sort_levels,
)
from plimsoll.analysis.statistics.factors import Change, Estimate, FactorEffect, Ranked
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import ABSENT, counted, milliseconds, significant

_MOST_RANKED = 24
_MOST_SAID = 4
_OUTCOMES = {"slower": "slower", "faster": "faster", "noise": "within noise", "too few": "too few runs"}
_MOST_CHARTS = 6
_ALL = "all"
_LETTERS = 30  # that fit beside each other below a chart on a telephone
_FEWEST = 6  # of a line: `MB/s` stands below its number


def factor_sections(found: Sequence[FactorFigures]) -> list[Section]:
    """Return a section for each scenario whose runs are of an experiment with factors."""
    sections = []
    for figures in found:
        changes = _changes(figures)
        sections.append(
            Section(
                title=f"What each factor did{figures.scenario.title_end}",
                sentences=[
                    Sentence(text)
                    for text in (*figures.sentences(), *_effect_sentences(figures), *_failures(figures))
                ],
                charts=_charts(figures),
                tables=[*([changes] if changes else []), _ranking(figures)],
                look="factors",
            )
        )
    return sections


def factors_json(found: Sequence[FactorFigures]) -> list[dict[str, object]]:
    """Return what `--json` prints of the factors, one entry a scenario."""
    return [
        {
            "scenario": each.scenario.name,
            "percentile": each.percentile,
            "phase": each.phase,
            "goal_ms": each.goal_ms,
            "sentences": each.sentences(),
            "levels": each.levels,
            "effects": [asdict(effect) for effect in each.effects],
            "ranking": [
                {
                    "levels": dict(one.levels),
                    "runs": one.runs,
                    "ms": asdict(one.figure),
                    "against_first": None if one.against is None else asdict(one.against),
                    "noise": one.noise,
                }
                for one in each.ranked
            ],
            "failed": [run.name for run in each.failed],
        }
        for each in found
    ]


def when(figures: FactorFigures) -> str:
    """Return what the figures are of."""
    phase = "while the saturator ran" if figures.phase == "during" else "of the whole run"
    return f"{figures.percentile} {phase}"


def _effect_sentences(figures: FactorFigures) -> list[str]:
    """Return what each factor did, in a sentence each, and which did nothing that these runs show."""
    found, noise, few = [], [], []
    for effect in figures.effects:
        told = [change for change in effect.changes if change.outcome in ("slower", "faster")]
        if told:
            most = max(told, key=lambda change: abs(change.ratio.value - 1 / change.ratio.value))
            found.append(
                f"{most.to} in place of {most.of} ({effect.factor}) makes {figures.percentile} "
                f"{significant(most.ratio.value)} times as long{_interval(most.ratio)}."
            )
        elif any(change.outcome == "noise" for change in effect.changes):
            noise.append(effect.factor)
        else:
            few.append(effect.factor)
    text = found[:_MOST_SAID]
    if noise:
        text.append(f"Within noise: {', '.join(noise)}.")
    if few:
        text.append(f"Too few runs to tell what these do: {', '.join(few)}. Raise repeats.")
    return text


def _failures(figures: FactorFigures) -> list[str]:
    if not figures.failed:
        return []
    worst = counted(len(figures.failed), "run")
    return [
        f"In {worst} {figures.percentile} is a failure, whose time is unknown: left out of the ranking and "
        "of the changes, and counted as over the goal."
    ]


def _interval(estimate: Estimate) -> str:
    if estimate.lower is None or estimate.upper is None:
        return ""
    return f" ({significant(estimate.lower)} to {significant(estimate.upper)})"


def _ms(estimate: Estimate) -> str:
    if estimate.lower is None or estimate.upper is None:
        return ABSENT
    return f"{milliseconds(estimate.lower)} to {milliseconds(estimate.upper)}"


def _ranking(figures: FactorFigures) -> Table:
    factors = [factor for factor, labels in figures.levels.items() if len(labels) > 1]
    shown = figures.ranked[:_MOST_RANKED]
    caption = (
        f"Geometric mean of {when(figures)} over the runs, with its 95 % interval by what runs of one "
        "combination spread, all combinations together. The interval of the ratio to the first is wide "
        "enough for all pairs at once, since chance chose the first too; where it holds 1, these runs do not "
        "tell the two apart."
    )
    if len(figures.ranked) > len(shown):
        caption += f" The first {len(shown)} of {len(figures.ranked)}; `plimsoll report --json` has all."
    rows = [_ranked(place, each, factors) for place, each in enumerate(shown, 1)]
    columns = ["", *factors, "runs", figures.percentile, "95 % interval", "against the first", ""]
    return Table(f"What was tried, the fastest first{figures.scenario.title_end}", caption, columns, rows)


def _ranked(place: int, each: Ranked, factors: list[str]) -> Row:
    against = each.against
    ratio = ABSENT if against is None else f"{significant(against.value)} ×{_interval(against)}"
    told = "" if against is None else "too few runs" if against.lower is None else ""
    return Row(
        str(place),
        [
            *(each.levels.get(factor, ABSENT) for factor in factors),
            str(each.runs),
            milliseconds(each.figure.value),
            _ms(each.figure),
            ratio,
            told or ("within noise" if each.noise else "slower" if against else "fastest"),
        ],
    )


def _changes(figures: FactorFigures) -> Table | None:
    rows = [_change(effect, change) for effect in figures.effects for change in effect.changes]
    if not rows:
        return None
    caption = (
        f"How many times as long {when(figures)} is if only this changes: the mean over pairs of runs of "
        "one repeat that differ in nothing else, with its 95 % interval by permutation. Under 1 is faster. "
        "Whether a factor does anything is held against chance for all factors together; a change within "
        "noise may be nothing at all."
    )
    if BACKEND in figures.levels and len(figures.backends) > 1:
        caption += " The backend counts as a factor."
    columns = ["factor", "level", "in place of", "ratio", "95 % interval", "pairs", "p of the factor", ""]
    return Table(f"Each change alone{figures.scenario.title_end}", caption, columns, rows)


def _change(effect: FactorEffect, change: Change) -> Row:
    p = f"{effect.p:.3f}" if effect.p >= 0.001 else "< 0.001"
    return Row(
        effect.factor,
        [
            change.to,
            change.of,
            significant(change.ratio.value),
            _interval(change.ratio).strip(" ()") or ABSENT,
            str(change.pairs),
            p,
            _OUTCOMES[change.outcome],
        ],
    )


def _charts(figures: FactorFigures) -> list[Chart]:
    """Return a chart for each factor that was varied, what did most first."""
    order = [effect.factor for effect in figures.effects]
    varied = [factor for factor, labels in figures.levels.items() if len(labels) > 1]
    varied.sort(key=lambda factor: order.index(factor) if factor in order else len(order))
    return [_chart(figures, factor, number) for number, factor in enumerate(varied[:_MOST_CHARTS])]


def _chart(figures: FactorFigures, factor: str, number: int) -> Chart:
    labels = figures.levels[factor]
    rates = is_rate(labels)
    levels = _placed(labels)
    names = [_ALL] if factor == BACKEND else figures.backends
    lines = []
    for shade, backend in enumerate(names):
        points = []
        for place, (label, _) in enumerate(levels):
            mean = figures.mean_at(factor, label, backend)
            runs = [(run.name, run.ms) for run in figures.at(factor, label, backend) if run.ms]
            if mean is not None:
                points.append(LevelPoint(place, mean.value, mean.lower, mean.upper, runs))
        if points:
            lines.append(LevelLine(backend, shade, points))
    others = set(figures.levels) - {factor, *([BACKEND] if len(names) > 1 else [])}
    several = any(len(figures.levels[other]) > 1 for other in others)
    caption = (
        f"Geometric mean of {when(figures)} at each level, with its 95 % interval; each small point is a run."
    )
    if several:
        caption += " Runs at all levels of the other factors count; what a change does alone is in the table."
    return levels_chart(
        f"factor-{figures.scenario.number}-{number}",
        f"{figures.percentile} by {factor}{figures.scenario.title_end}",
        caption,
        levels,
        lines,
        figures.goal_ms if rates and figures.percentile == "p99.9" else None,
        factor,
    )


def _placed(labels: Sequence[str]) -> list[tuple[str, float]]:
    """Return levels with their places: a rate stands at its number, anything else beside the one before."""
    ordered = sort_levels(labels)
    if ordered is None:
        return [(label, float(at)) for at, label in enumerate(labels)]
    if not is_rate(labels):
        return [(label, float(at)) for at, label in enumerate(ordered)]
    numbers = [number for label in ordered if (number := number_of(label)) is not None]
    beyond = numbers[-1] + max((numbers[-1] - numbers[0]) * 0.22, numbers[-1] * 0.1)
    return [(label, beyond if label == NO_LIMIT else number_of(label) or 0.0) for label in ordered]


@dataclass(frozen=True)
class LevelPoint:
    """A backend at one place: mean and interval in ms, if there are any, and its runs (hostile names)."""

    place: int
    ms: float | None
    lower_ms: float | None
    upper_ms: float | None
    runs: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class LevelLine:
    """One backend: its name (hostile), the number of its colour, and its points in order."""

    name: str
    shade: int
    points: Sequence[LevelPoint]


def levels_chart(
    key: str,
    title: str,
    caption: str,
    levels: Sequence[tuple[str, float]],
    lines: Sequence[LevelLine],
    goal_ms: float | None = None,
    axis_title: str = "",
) -> Chart:
    """Return a chart; `levels` are labels (hostile) and where each stands on the x axis."""
    data: list[Json] = []
    values = [ms for line in lines for each in line.points for _, ms in each.runs]
    values += [ms for line in lines for each in line.points for ms in (each.lower_ms, each.upper_ms) if ms]
    xs = [x for _, x in levels]
    width = (max(xs) - min(xs)) or 1.0
    for number, line in enumerate(lines):
        aside = (number - (len(lines) - 1) / 2) * width * 0.015
        group: Json = {"legendgroup": f"backend {line.shade}"}
        data += [
            _runs(line, levels, aside, width) | group,
            _means(line, levels, aside, len(lines) > 1) | group,
        ]
    scale = choose_scale(values, 8)
    margin = width * 0.08 if len(xs) > 2 else width * 0.35
    x_axis = axis(axis_title) | {
        "tickmode": "array",
        "tickvals": [rounded(x) for x in xs],
        "ticktext": [wrap_label(label, max(_LETTERS // max(len(xs), 1), _FEWEST), 3) for label, _ in levels],
        "tickangle": 0,
        "tickfont": {"size": 11},
        "range": [rounded(min(xs) - margin), rounded(max(xs) + margin)],
        "rangemode": "normal",
        "zeroline": False,
    }
    if goal_ms is not None:
        goal = points(
            f"goal: {milliseconds(goal_ms)}",
            [rounded(min(xs) - margin), rounded(max(xs) + margin)],
            [goal_ms, goal_ms],
            mode="lines",
            line={"color": "var(--bad)", "width": 1.5, "dash": "dash"},
            hoverinfo="skip",
        )
        data.append(goal)
        values.append(goal_ms)
    return Chart(
        key=key,
        title=title,
        caption=caption,
        data=data,
        layout=layout(x_axis, axis("ms", scale) | log_ticks(values)),
        scale=scale,
    )


def _means(line: LevelLine, levels: Sequence[tuple[str, float]], aside: float, named: bool) -> Json:
    there = [(each, each.ms) for each in line.points if each.ms is not None]
    colour = colour_of(line.shade)
    return points(
        plotly_text(line.name),
        [rounded(levels[each.place][1] + aside) for each, _ in there],
        [ms for _, ms in there],
        mode="lines+markers",
        line={"color": colour, "width": 2},
        marker={"size": 11, "color": colour},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [rounded((each.upper_ms or ms) - ms) for each, ms in there],
            "arrayminus": [rounded(ms - (each.lower_ms or ms)) for each, ms in there],
            "color": colour,
            "thickness": 2,
            "width": 6,
        },
        hovertext=[
            f"{plotly_text(line.name)}, {plotly_text(levels[each.place][0])}: <b>{milliseconds(ms)}</b><br>"
            + (
                f"{milliseconds(each.lower_ms)} to {milliseconds(each.upper_ms)}"
                if each.lower_ms is not None and each.upper_ms is not None
                else "no interval"
            )
            for each, ms in there
        ],
        hoverinfo="text",
        showlegend=named,
    )


def _runs(line: LevelLine, levels: Sequence[tuple[str, float]], aside: float, width: float) -> Json:
    x: list[float] = []
    y: list[float | None] = []
    texts: list[str] = []
    for each in line.points:
        for number, (name, ms) in enumerate(each.runs):
            apart = (number - (len(each.runs) - 1) / 2) * min(width * 0.006, width * 0.05 / len(each.runs))
            x.append(rounded(levels[each.place][1] + aside + apart))
            y.append(ms)
            texts.append(f"{plotly_text(name)}: <b>{milliseconds(ms)}</b>")
    look: Json = {"size": 7, "color": colour_of(line.shade), "opacity": 0.4}
    name = plotly_text(line.name)
    return points(
        name, x, y, mode="markers", marker=look, hovertext=texts, hoverinfo="text", showlegend=False
    )
