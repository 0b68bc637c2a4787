"""What a rehearsal comes to, in a sentence, two tables and a page. Pure."""

from pathlib import Path

from plimsoll.ab.rehearsal import MOST_RUNS, Rehearsal
from plimsoll.analysis.page.chart import Chart, axis, colour_of, layout, points, rounded
from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.page.shell import render_page
from plimsoll.common.units import percent, seconds, significant

_TEMPLATES = Path(__file__).parent / "templates"
_ROUND = (1.02, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.75, 2.0, 3.0, 5.0)
_MUCH_LATE = 1.01
_RUNS = (4, 8, 12, 16, 20, 24, 32, 40, 60, 80, 100)


def sentence_of_rehearsal(rehearsal: Rehearsal) -> str:
    """Return what such an experiment finds, and what it does not."""
    runs, metric = rehearsal.runs, rehearsal.metric
    here = f"Here, {runs} runs a side of {seconds(rehearsal.run_s)} ({_lasts(rehearsal, runs)})"
    alarms = f"By construction at most 1 in {round(1 / rehearsal.error)} is a false alarm."
    if metric is None:
        return f"{here} are held to no ratio, so the table says what they find. {alarms}"
    within = f"up to {_times(rehearsal.allowed)} is within the limit"
    if rehearsal.lateness >= _MUCH_LATE:
        within += f", and {_times(rehearsal.lateness)} may be the load generator's own lateness"
    finds, between = rehearsal.finds_from, rehearsal.finds_range()
    if finds is None or between is None:
        nothing = f"{here} fail no slower {metric} in 4 of 5 cases: plan more runs, or longer ones"
        return f"{nothing}; {within}. {alarms}"
    low, high = map(_times, between)
    parts = [
        f"{here} fail a candidate that is {_times(finds)} slower at {metric} in 4 of 5 cases ({low} to "
        f"{high}, as far as {2 * runs} runs tell)"
    ]
    smaller = [ratio for ratio in _ROUND if rehearsal.allowed < ratio < finds]
    if smaller:
        takes = rehearsal.foretell(smaller[-1])
        cost = f"{takes} a side ({_lasts(rehearsal, takes)})" if takes else f"over {MOST_RUNS} a side"
        parts.append(f"{_times(smaller[-1])} takes {cost}")
    return f"{'; '.join([*parts, within])}. {alarms}"


def plants_table(rehearsal: Rehearsal) -> Table:
    """Return how often each verdict came on each slowdown that was planted."""
    return Table(
        title="What was planted, and what was found",
        caption=(
            f"Into two runs of each four, over {rehearsal.dealings} re-dealings of the runs, judged by these "
            "limits: " + ", ".join(rehearsal.limits) + "."
        ),
        columns=["planted", "FAIL", "PASS", "neither"],
        rows=[
            Row(each.what, [percent(each.shares[kind], 2) for kind in ("FAIL", "PASS", "INCONCLUSIVE")])
            for each in rehearsal.found
        ],
    )


def runs_table(rehearsal: Rehearsal) -> Table | None:
    """Return what other numbers of runs find; None where no limit is a ratio, or nothing is found."""
    rows = [
        Row(str(runs), [_lasts(rehearsal, runs), _times(found)], "total" if runs == rehearsal.runs else "")
        for runs in sorted({*_RUNS, rehearsal.runs})
        if (found := rehearsal.foretold(runs)) is not None
    ]
    if not rows:
        return None
    return Table(
        title="Other numbers of runs",
        caption=(
            "What they find in 4 of 5 cases, foretold from how far apart the runs of a block lie. Longer "
            "runs lie closer together."
        ),
        columns=["runs a side", "takes", "finds"],
        rows=rows,
    )


def rehearsal_page(rehearsal: Rehearsal) -> str:
    """Return the HTML."""
    tables = [plants_table(rehearsal), runs_table(rehearsal)]
    chart = runs_chart(rehearsal)
    return render_page(
        "rehearsal.html",
        [chart] if chart else [],
        _TEMPLATES,
        styles=["verdict.css"],
        sentence=sentence_of_rehearsal(rehearsal),
        tables=[table for table in tables if table],
    )


def runs_chart(rehearsal: Rehearsal) -> Chart | None:
    """Return runs a side against what they find in 4 of 5 cases; None where that is not known."""
    between = rehearsal.finds_range()
    if rehearsal.finds_from is None or between is None:
        return None
    last = min(max(4 * rehearsal.runs, 40), MOST_RUNS)
    runs = [each for each in range(4, last + 1, 2) if rehearsal.foretold(each)]
    foretold = [rehearsal.foretold(each) for each in runs]
    texts = [
        f"{each} runs a side ({_lasts(rehearsal, each)}): <b>{_times(found or 0)}</b>"
        for each, found in zip(runs, foretold, strict=True)
    ]
    shown = {"hovertext": texts, "hoverinfo": "text"}
    line = points(
        "found in 4 of 5 cases",
        [float(each) for each in runs],
        foretold,
        mode="lines",
        line={"color": colour_of(0), "width": 3},
        **shown,
    )
    here = points(
        "this rehearsal, and between what it may lie",
        [float(rehearsal.runs)],
        [rehearsal.finds_from],
        mode="markers",
        marker={"size": 11, "color": colour_of(1)},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [rounded(between[1] - rehearsal.finds_from)],
            "arrayminus": [rounded(rehearsal.finds_from - between[0])],
            "color": colour_of(1),
        },
    )
    limit = points(
        "within the limit",
        [4.0, float(last)],
        [rehearsal.allowed, rehearsal.allowed],
        mode="lines",
        line={"color": "var(--muted)", "dash": "dash"},
        hoverinfo="skip",
    )
    return Chart(
        key="runs",
        title="What more runs would find",
        caption="How many times slower a candidate is that fails in 4 of 5 cases.",
        data=[line, here, limit],
        layout=layout(
            axis("runs a side") | {"range": [0, last + 2]},
            axis("times slower") | {"rangemode": "normal"},
        ),
    )


def _lasts(rehearsal: Rehearsal, runs: int) -> str:
    return seconds(2 * runs * rehearsal.run_s)


def _times(ratio: float) -> str:
    """Return a ratio that is promised, with two decimals: `× 1.26`, and a round one without."""
    return f"× {significant(round(ratio, 2), 4)}"
