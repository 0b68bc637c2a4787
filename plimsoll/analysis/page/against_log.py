"""Replays held against the log they replay: chart, table, sentence and findings, also for a sign-off."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.page.chart import Chart, Json, axis, colour_of, layout, log_ticks, points, rounded
from plimsoll.analysis.page.section import Row, Section, Table
from plimsoll.analysis.statistics.against_log import QUANTILES, Held, HeldRun, LoggedTimes
from plimsoll.common.errors import RunDirectoryError, Severity
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import ABSENT, count, counted, milliseconds, plain_ms, significant
from plimsoll.rundir.read import RunDirectory

_MOST_ROUTES = 5


def hold_against_log(log: Path, runs: Iterable[RunDirectory]) -> list[HeldRun]:
    """Hold those of `runs` that replay it against the imported log at `log`.

    Raises RunDirectoryError if `log` is not an imported access log, or none of them replays it.
    """
    times = LoggedTimes.of(RunDirectory.open(log))
    held = [found for run in runs if (found := times.hold(run))]
    if not held:
        raise RunDirectoryError(
            f"{log}: none of the runs replays this log, as the sums of its text say: import the replay's log"
        )
    return held


def against_log_section(held: Sequence[HeldRun]) -> Section:
    """Return what replays are beside their log; empty without any."""
    chart, table = against_log_chart(held), against_log_table(held)
    return Section(
        charts=[chart] if chart else [],
        tables=[table] if table else [],
        findings=list(check_against_log(held)),
    )


def against_log_table(held: Sequence[HeldRun]) -> Table | None:
    """Return quantiles of the log and of the replay, by run and route; None without any run."""
    if not held:
        return None
    rows = []
    for run in held:
        for each in (run.total, *run.routes):
            name = run.run if each is run.total else f"{run.run}: {each.name}"
            cells = [count(each.requests)]
            for quantile in QUANTILES:
                ratio = each.ratios[quantile]
                cells.append(
                    f"{plain_ms(each.logged_ms[quantile])} → {plain_ms(each.replayed_ms[quantile])}"
                    + ("" if ratio is None else f" (× {significant(ratio, 2)})")
                )
            rows.append(Row(name, cells, "total" if each is run.total else ""))
    caption = (
        "Milliseconds in the log → service time under replay, of the same requests, and how many times "
        "the log's that is; not where the log's durations are too coarse to say. There is one production, so "
        "no confidence is given. Logged durations leave the network out, and have slow visitors in them."
    )
    return Table("Held against the log", caption, ["", "requests", *QUANTILES], rows)


def against_log_sentence(run: HeldRun) -> str:
    """Return how a replay compares with its log (hostile)."""
    ratios = [
        f"{name} {ABSENT if ratio is None else f'× {significant(ratio, 2)}'}"
        for name, ratio in run.total.ratios.items()
    ]
    missing = f"; {counted(run.unpaired, 'request')} not in the log" if run.unpaired else ""
    return (
        f"{run.run}, against its log ({counted(run.total.requests, 'request')}): {', '.join(ratios)}{missing}"
    )


def check_against_log(held: Sequence[HeldRun]) -> Iterator[Finding]:
    """Yield which replays are not as production was (hostile)."""
    for run in held:
        if run.apart:
            said = ", ".join(f"{name} is {significant(ratio, 2)} times" for name, ratio in run.apart.items())
            text = (
                f"{run.run} differs from production: for the same requests, service time at {said} the "
                "log's. See the clone's speed, caches and processors before you trust its times."
            )
            yield Finding(Severity.WARN, text)
        if run.speed not in (None, "1"):
            text = (
                f"{run.run} was not sent at the recorded pace ({run.speed}), so its times are not those "
                "of the log's load."
            )
            yield Finding(Severity.NOTE, text)


def against_log_chart(runs: Sequence[HeldRun]) -> Chart | None:
    """Return a curve for each run, and of one run alone for its largest routes; None without any point."""
    curves = [(each.run if len(runs) > 1 else "all requests", each.total) for each in runs]
    if len(runs) == 1:
        curves += [(route.name, route) for route in runs[0].routes[:_MOST_ROUTES]]
    data = [_curve(name, held, shade) for shade, (name, held) in enumerate(curves) if _curve_points(held)]
    values = [value for trace in data for key in ("x", "y") for value in trace[key]]
    if not values:
        return None
    ends = [rounded(min(values)), rounded(max(values))]
    same = points(
        "as logged",
        ends,
        list(ends),
        mode="lines",
        line={"color": "var(--muted)", "width": 1, "dash": "dash"},
    )
    ticks = log_ticks(values)
    return Chart(
        key="against-log",
        title="Under replay as in production?",
        caption=(
            "Each point is one quantile, from the median to the slowest: across, how long production took "
            "for the requests of the replay, by its log; upwards, their service time under replay. On the "
            "dashed line both are equal; above it the replay was slower. Logged durations leave out the "
            "network, and have slow visitors in them. Quantiles that are failures' are left out."
        ),
        data=[same, *data],
        layout=layout(
            axis("ms in the log", "log") | ticks, axis("ms under replay", "log") | ticks, hovermode="closest"
        ),
    )


def _curve_points(held: Held) -> list[tuple[float, float, float]]:
    """Return the points from the median on that a log scale has a place for."""
    return [(one_in, x, y) for one_in, x, y in held.curve if one_in >= 2 and x > 0 and y > 0]


def _curve(name: str, held: Held, shade: int) -> Json:
    curve = _curve_points(held)
    return points(
        plotly_text(name),
        [rounded(x) for _, x, _ in curve],
        [y for _, _, y in curve],
        mode="lines+markers",
        marker={"size": 4},
        line={"color": colour_of(shade), "width": 2},
        hovertext=[
            f"{plotly_text(name)}: one in {significant(one_in)} took {milliseconds(x)} or more in the log, "
            f"{milliseconds(y)} under replay"
            for one_in, x, y in curve
        ],
        hoverinfo="text",
    )
