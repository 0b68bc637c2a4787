"""The history as one page that is complete in itself, with a trend a scenario, in the look of the report."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from plimsoll.analysis.compare.gates import ERROR_SHARE
from plimsoll.analysis.page.chart import Chart, Json, axis, colour_of, layout, log_ticks, rounded
from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.page.shell import render_page
from plimsoll.analysis.regress.judgement import (
    DECIDED,
    Judgement,
    SeriesResult,
    describe_judgements,
    finding_word,
    judgement_document,
    overall,
    title,
)
from plimsoll.analysis.regress.nights import NightRow, NightValue, group_name
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import ABSENT, counted, milliseconds

_OWN = Path(__file__).parent / "templates"
_LAST = 30
_LOOKS = {"worse": "FAIL", "unjudged": "INCONCLUSIVE", "steady": "PASS"}
_WORDS = {"worse": "worse", "unjudged": "cannot be judged", "steady": "nothing worse"}
_POINTS = 300  # nights whose repeats are points; older nights' are a line from the lowest to the highest
_BESIDE = 14  # nights on either side of a change that its hover text compares
_TICKS = 9


def history_page(judgements: Sequence[Judgement]) -> str:
    """Return the HTML."""
    verdict = overall(list(judgements))
    parts = [
        (
            *(each, title(each), [table.as_table() for table in part.tables]),
            *(trend_charts(number, each), _missing_table(each), _decisions_table(each)),
        )
        for number, (each, part) in enumerate(
            zip(judgements, judgement_document(judgements).parts, strict=True)
        )
    ]
    return render_page(
        "history.html",
        [figure for part in parts for figure in part[3]],
        _OWN,
        styles=["verdict.css", "history.css"],
        look=_LOOKS[verdict],
        word=_WORDS[verdict],
        subject=describe_judgements(judgements),
        finding_word=finding_word,
        parts=parts,
    )


def _decisions_table(judgement: Judgement) -> Table | None:
    if not judgement.decisions:
        return None
    rows = [
        Row(each.at[:10], [DECIDED[each.kind], each.name, each.by or ABSENT, each.note or ABSENT])
        for each in reversed(judgement.decisions)
    ]
    caption = "What somebody accepted, set or dropped: it no longer counts as a failure."
    return Table("Decisions", caption, ["day", "", "what", "who", "why"], rows)


def _missing_table(judgement: Judgement) -> Table | None:
    found: dict[tuple[str, str], Row] = {}
    for each in judgement.series:
        if each.series.shares or each.series.is_route:
            continue
        for night in each.series.nights:
            if not night.repeats:
                name = night.night.name
                what = group_name(each.series.key.group)
                found.setdefault((name, what), Row(name, [what, night.why]))
    if not found:
        return None
    rows = [found[key] for key in sorted(found, reverse=True)]
    more = f" The last {_LAST} of {len(rows)}." if len(rows) > _LAST else ""
    caption = f"They are in no series, and the figures mark them.{more}"
    unit = judgement.unit
    title = f"{unit.capitalize()}s without a figure"
    return Table(title, caption, [unit, "series", "why"], rows[:_LAST])


def trend_charts(number: int, judgement: Judgement) -> list[Chart]:
    """Return a figure for each scenario and phase of experiment `number`."""
    nights = {row.id: place for place, row in enumerate(_longest_nights(judgement))}
    shown: dict[tuple[str, str, str], list[SeriesResult]] = {}
    for each in judgement.series:
        key = each.series.key
        if key.metric != ERROR_SHARE:
            shown.setdefault((key.scenario, key.phase, key.metric), []).append(each)
    return [
        _trend_chart(f"trend-{number}-{at}", judgement, nights, results)
        for at, results in enumerate(shown.values())
    ]


def _longest_nights(judgement: Judgement) -> list[NightRow]:
    longest = max((each.series.nights for each in judgement.series), key=len, default=[])
    return [night.night for night in longest]


def _trend_chart(
    key: str, judgement: Judgement, nights: dict[int, int], results: Sequence[SeriesResult]
) -> Chart:
    series = results[0].series
    values = [value for each in results for night in each.series.judged for value in night.repeats]
    floor, ceiling = min(values) / 1.25, max(values) * 1.1
    data: list[Json] = []
    for shade, each in enumerate(results):
        data += _traces(each, nights, shade, floor)
    labels = [night.name for night in _longest_nights(judgement)]
    metric = series.key.name.rpartition(": ")[2]
    x_axis = (
        axis("night")
        | _night_ticks(_longest_nights(judgement))
        | {"range": [-1, len(labels)], "rangemode": "normal"}
    )
    unit = f" in {series.unit}" if series.unit else ""
    y_axis = axis(f"{metric}{unit}", "log") | log_ticks(values)
    y_axis |= {"range": [math.log10(floor / 1.1), math.log10(ceiling)]}
    when = "during the send" if series.key.phase == "during" else "of the whole run"
    return Chart(
        key=key,
        title=f"{series.key.scenario}: {metric} {when}",
        caption=(
            "Each point of a line is one night: the geometric mean of its fit repeats, which are the faint "
            f"points (before the last {_POINTS} nights, a line from the lowest to the highest). Triangles "
            "mark where the level changed; crosses at the foot are nights without a figure, with the reason. "
            "Dashed: the baseline's mean; shaded: its nights."
        ),
        data=data,
        layout=layout(
            x_axis,
            y_axis,
            shapes=[*_baseline_box(judgement, nights), *_baseline_lines(judgement, results, len(labels))],
        ),
        scale="log",
    )


def _traces(result: SeriesResult, nights: dict[int, int], shade: int, floor: float) -> Iterator[Json]:
    series, colour = result.series, colour_of(shade)
    name = plotly_text(series.key.backend or series.key.scenario)
    group: Json = {"type": "scatter", "legendgroup": f"b{shade}", "showlegend": False}
    old = [night for night in series.judged if nights[night.night.id] < len(nights) - _POINTS]
    new = [night for night in series.judged if nights[night.night.id] >= len(nights) - _POINTS]
    if old:
        x = [at for night in old for at in (nights[night.night.id], nights[night.night.id], None)]
        y = [at for night in old for at in (rounded(min(night.repeats)), rounded(max(night.repeats)), None)]
        line: Json = {"color": colour, "width": 1}
        yield group | {"x": x, "y": y, "mode": "lines", "line": line, "opacity": 0.35, "hoverinfo": "skip"}
    if any(len(night.repeats) > 1 for night in new):
        x = [nights[night.night.id] for night in new for _ in night.repeats]
        y = [rounded(value) for night in new for value in night.repeats]
        marker: Json = {"size": 5, "color": colour, "opacity": 0.3}
        yield group | {"x": x, "y": y, "mode": "markers", "marker": marker, "hoverinfo": "skip"}
    values = [night.value(series.shares) for night in series.nights]
    yield group | {
        "name": name,
        "showlegend": True,
        "x": [nights[night.night.id] for night in series.nights],
        "y": [None if value is None else rounded(value) for value in values],
        "mode": "lines+markers" if len(nights) <= _POINTS else "lines",
        "marker": {"size": 6, "color": colour},
        "line": {"color": colour, "width": 2},
        "connectgaps": False,
        "text": [_hover_text(night, result) for night in series.nights],
        "hovertemplate": f"%{{text}}<extra>{name}</extra>",
    }
    missing = [night for night in series.nights if not night.repeats]
    if missing:
        yield group | {
            "x": [nights[night.night.id] for night in missing],
            "y": [rounded(floor * (1 - 0.03 * shade)) for _ in missing],
            "mode": "markers",
            "marker": {"size": 8, "symbol": "x-thin", "line": {"width": 2, "color": colour}},
            "text": [f"{_night_name(night)}: no figure: {plotly_text(night.why, 160)}" for night in missing],
            "hovertemplate": f"%{{text}}<extra>{name}</extra>",
        }
    yield from _change_marks(result, nights, group, name)


def _baseline_lines(judgement: Judgement, results: Sequence[SeriesResult], last: int) -> Iterator[Json]:
    """Yield a dashed line at each backend's mean over the baseline's nights."""
    ids = {night.id for night in judgement.baseline}
    for shade, each in enumerate(results):
        scaled = [
            each.series.scale(value)
            for night in each.series.judged
            if night.night.id in ids and (value := night.value(each.series.shares)) is not None
        ]
        if scaled:
            level = rounded(each.series.to_display(fmean(scaled)))
            line: Json = {"color": colour_of(shade), "width": 1, "dash": "dash"}
            yield {
                "type": "line",
                "x0": -1,
                "x1": last,
                "y0": level,
                "y1": level,
                "layer": "below",
                "line": line,
            }


def _change_marks(result: SeriesResult, nights: dict[int, int], group: Json, name: str) -> Iterator[Json]:
    series = result.series
    judged = {nights[night.night.id]: at for at, night in enumerate(series.judged)}
    places = [place for place in result.changes if place in judged]
    if not places:
        return
    values, scaled = series.values, series.scaled
    texts, colours, symbols = [], [], []
    for place in places:
        at = judged[place]
        before, after = scaled[max(0, at - _BESIDE) : at] or scaled[at : at + 1], scaled[at : at + _BESIDE]
        first, then = series.to_display(fmean(before)), series.to_display(fmean(after))
        worse = then > first
        texts.append(
            f"<b>{_night_name(series.judged[at])}</b>: from {milliseconds(first)} to {milliseconds(then)}, "
            f"× {then / first:.2f}"
        )
        colours.append("var(--bad)" if worse else "var(--good)")
        symbols.append("triangle-up" if worse else "triangle-down")
    yield group | {
        "x": places,
        "y": [rounded(values[judged[place]]) for place in places],
        "mode": "markers",
        "marker": {
            "size": 15,
            "symbol": symbols,
            "color": colours,
            "line": {"width": 2, "color": "var(--card)"},
        },
        "text": texts,
        "hovertemplate": f"%{{text}}<extra>{name}</extra>",
    }


def _baseline_box(judgement: Judgement, nights: dict[int, int]) -> Iterator[Json]:
    places = [nights[night.id] for night in judgement.baseline if night.id in nights]
    if places:
        box: Json = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "opacity": 0.12}
        edges = {"x0": min(places) - 0.5, "x1": max(places) + 0.5, "line": {"width": 0}}
        yield box | edges | {"fillcolor": "var(--note)"}


def _night_ticks(nights: Sequence[NightRow]) -> Json:
    step = max(1, math.ceil(len(nights) / _TICKS))
    places = list(range(0, len(nights), step))
    return {
        "tickmode": "array",
        "tickvals": places,
        "ticktext": [plotly_text(nights[place].facts.started_at[:10], 10) for place in places],
    }


def _hover_text(night: NightValue, result: SeriesResult) -> str:
    value = night.value(result.series.shares)
    if value is None:
        return ""
    return f"{_night_name(night)}: <b>{milliseconds(value)}</b>, {counted(len(night.repeats), 'repeat')}"


def _night_name(night: NightValue) -> str:
    return plotly_text(night.night.name, 60)
