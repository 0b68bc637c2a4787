"""One run in large: four figures and one sentence, of percentiles or of what its script is about."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.page.section import HeadlineFigure, Section, Sentence
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.run_findings import BOUND_NEEDS
from plimsoll.analysis.statistics.measures import StepFigures
from plimsoll.analysis.statistics.percentiles import MILLION, P999, PERCENTILES, TimeFigures, fewest, rank
from plimsoll.common.errors import Severity
from plimsoll.common.units import (
    WRONG_ANSWER,
    at_least,
    counted,
    listed,
    milliseconds,
    seconds,
    share,
    significant,
)
from plimsoll.rundir.events import PHASE, phases_unknown

_MS = {"ms": 1.0, "s": 1000.0}
_MOST_PHASES = 3
_TAILS = ("p99.9", "p99", "p90")
_IN_TEN = {"p90": "one in ten", "p99": "one in a hundred", "p99.9": "one in a thousand"}
_IN_A_BROWSER = {
    "editor_ready": "editor ready",
    "publish": "published",
    "save": "saved",
    "upload": "uploaded",
}


@dataclass(frozen=True)
class Headline(Section):
    """One run in large; `notes` are what is worth knowing of it, and no cause for doubt."""

    notes: Sequence[str] = ()
    layout: str = "headline"


def headline(run: ReportRun, found: Sequence[Finding]) -> Headline:
    """Return the headline of a run; its notes are among `found`, the findings on it."""
    scripted = scripted_figures(run)
    return Headline(
        sentences=[Sentence(scripted_sentence(run) or sentence(run))],
        figures=scripted or _percentiles(run),
        caption="" if scripted else _footnote(run),
        notes=[finding.sentence for finding in found if finding.level == Severity.NOTE],
    )


def _percentiles(run: ReportRun) -> list[HeadlineFigure]:
    """Return p50, p99, p99.9 and the slowest response time."""
    response = run.statistics.samples["response"].figures()
    median, upper = response["p50"], run.statistics.p999_upper_ms
    bound = f"at most {milliseconds(upper)} *" if upper else "stalls: no bound *" if _stalls(run) else ""
    below = {
        "p50": "half were faster",
        "p99": _times(response["p99"], median),
        "p99.9": "needs 1,000 requests" if response["p99.9"] is None else bound,
        "max": _times(response["max"], median),
    }
    return [
        HeadlineFigure(
            "slowest" if name == "max" else name,
            response.shown(name),
            _failure(response, name) or text,
            first=name == "p99.9",
            faint=name in response.wrong,
        )
        for name, text in below.items()
    ]


def sentence(run: ReportRun) -> str:
    """Return what the figures mean; where requests failed, that first."""
    response = run.statistics.samples["response"].figures()
    tail, median = response["p99.9"], response["p50"]
    failures, requests = run.statistics.failures, run.statistics.requests
    failed = f"{share(failures, requests)} of requests failed" if failures else ""
    for name in ("p99.9", "max"):
        if name in response.censored and (name == "max") == (requests < fewest(P999)):
            return f"{failed}: {_at_least(response, name)}."
    begun = f"{failed}. " if failed else ""
    if tail is None:
        slowest = milliseconds(response["max"])
        return f"{begun}Too few requests for the slowest in a thousand; the slowest of all took {slowest}."
    text = f"{begun}The slowest request in a thousand took {milliseconds(tail)} or more"
    times = _times(tail, median)
    return text + (f": {times}, {milliseconds(median)}." if times else ".")


def _at_least(response: TimeFigures, name: str) -> str:
    what = "the slowest" if name == "max" else name
    least_ms = response.least_ms(name)
    if name in response.wrong:
        counts = "" if least_ms is None else f", and counts as {milliseconds(least_ms)}"
        return f"{what} is a {WRONG_ANSWER}{counts}"
    if least_ms is None:
        return f"{what} is one of them, and how long it would have taken is not known"
    return f"{what} is at least {milliseconds(least_ms)}"


def _failure(response: TimeFigures, name: str) -> str:
    """Return what stands below a figure that is a failure's; empty if it is not."""
    if name not in response.censored:
        return ""
    least_ms = response.least_ms(name)
    if name in response.wrong:
        return "a failure" if least_ms is None else f"counts as {milliseconds(least_ms)}"
    return "failed" if least_ms is None else "failed, at its time-out"


def _footnote(run: ReportRun) -> str:
    """Return what the star at p99.9 means; empty if there is none."""
    if run.statistics.p999_upper_ms is not None:
        return (
            "* Upper end of the 95 % interval of p99.9, as long as conditions stay as in this run; it says "
            "nothing of rarer events. Slow requests that came together count as one."
        )
    if _stalls(run):
        return (
            "* Stalls: the slowest requests came together, in too few places for this run alone to bound "
            "anything. Look at several runs."
        )
    return ""


def _stalls(run: ReportRun) -> bool:
    """Return whether there would be a bound, did the slowest requests not come together."""
    found, response = run.statistics, run.statistics.samples["response"]
    come_together = BOUND_NEEDS <= response.n < BOUND_NEEDS * (found.p999_clustering or 1)
    return found.p999_upper_ms is None and come_together and "p99.9" not in response.figures().censored


def _times(value_ms: float | None, median_ms: float | None) -> str:
    if not value_ms or not median_ms or value_ms < 1.05 * median_ms:
        return ""
    return f"{significant(value_ms / median_ms, 2)} times the median"


@dataclass(frozen=True)
class ScenarioMeasure:
    """The measure that a scenario is about: what one of its values is, and what one stands for."""

    measure: str
    each: str  # “an article was saved in 640 ms”
    counts: str  # “median of 60 saves”
    whole: str | None = None  # a measure of all of it together


SCENARIO_MEASURES = {
    "save-article": ScenarioMeasure("article saved", "An article was saved in", "save"),
    "upload-images": ScenarioMeasure(
        "image ready", "An image was ready in", "image", whole="all images ready"
    ),
    "download": ScenarioMeasure("throughput", "A download came with", "download"),
    "upgrade-wordpress": ScenarioMeasure("upgrade", "The upgrade took", "upgrade"),
    "upgrade-xenforo": ScenarioMeasure("upgrade_total", "The upgrade took", "upgrade"),
}


def main_values(run: ReportRun) -> tuple[ScenarioMeasure, StepFigures] | None:
    """Return what the run is about, with its values and failures; None where it has none of them."""
    own = SCENARIO_MEASURES.get(run.directory.facts.own_scenario)
    values = run.values.get(own.measure) if own else None
    return (own, values) if own and values and values.tries else None


def main_measure(runs: Sequence[ReportRun]) -> str | None:
    """Return the measure that `runs` of a scripted scenario are about; None where not all have one."""
    scenario = runs[0].directory.facts.own_scenario
    names = [SCENARIO_MEASURES[scenario].measure] if scenario in SCENARIO_MEASURES else []
    names += _IN_A_BROWSER if scenario == "browser" else []
    return next((name for name in names if all(name in run.values for run in runs)), None)


def scripted_figures(run: ReportRun) -> list[HeadlineFigure]:
    """Return the large figures of a scripted scenario; none where it has no measure of its own."""
    if run.directory.facts.own_scenario == "browser":
        return _of_browser(run)
    found = main_values(run)
    if found is None:
        return []
    own, values = found
    if own.measure.startswith("upgrade"):
        return [_upgrade(run, values), *_phases(run, values), *_outages(run)]
    bigs = [
        HeadlineFigure(
            own.measure.replace("_", " "), _figure(values, "p50"), _median_of(own, values), first=True
        )
    ]
    rate = values.unit not in _MS
    if not rate and (tail := _tail(values)):
        bigs.append(HeadlineFigure(tail, _figure(values, tail), f"{_IN_TEN[tail]} took that or more"))
    if values.values:
        bigs.append(HeadlineFigure("slowest", _figure(values, "min" if rate else "max"), _failed(values)))
    if own.whole and (whole := run.values.get(own.whole)) and whole.values:
        each = counted(len(values.values), own.counts)
        bigs.append(
            HeadlineFigure(own.whole, _value(whole.values[-1], whole.unit), f"{each}, from the first upload")
        )
    return bigs


def scripted_sentence(run: ReportRun) -> str:
    """Return what those figures mean; empty where there are none. What failed stands first."""
    found = main_values(run)
    if found is None:
        return ""
    own, values = found
    failed = ""
    if values.failed_ms:
        failed = f"{len(values.failed_ms):,} of {counted(values.tries, own.counts)} failed. "
    if values.median is None:
        return f"{failed}So the usual one is a failure." if values.values else f"{failed}None succeeded."
    if own.measure.startswith("upgrade"):
        took = f"{_upgraded(run)} took {_figure(values, 'p50')}{_longest(run)}."
        return f"{failed}{took}{_without_site(run)}{_unknown_phases(run)}"
    text = f"{failed}{own.each} {_figure(values, 'p50')} ({_median_of(own, values)})"
    if values.unit not in _MS:
        return f"{text}; the slowest with {_figure(values, 'min')}."
    if tail := _tail(values):
        failure = values.at(PERCENTILES[tail])[0] is None
        text += f"; {_IN_TEN[tail]} " + ("failed" if failure else f"took {_figure(values, tail)} or more")
    return text + "."


def scripted_line(run: ReportRun) -> str:
    """Return the same for a table or the terminal: `article saved 640 ms (median of 60 saves)`."""
    found = main_values(run)
    if found is None:
        return ""
    own, values = found
    return f"{own.measure.replace('_', ' ')} {_figure(values, 'p50')} ({_median_of(own, values)})"


def _median_of(own: ScenarioMeasure, values: StepFigures) -> str:
    if values.tries == 1:
        return "one " + own.counts + (", failed" if values.failed_ms else "")
    failed = f", {len(values.failed_ms):,} failed" if values.failed_ms else ""
    return f"median of {counted(values.tries, own.counts)}{failed}"


def _failed(values: StepFigures) -> str:
    return f"{len(values.failed_ms):,} failed" if values.failed_ms else ""


def _tail(values: StepFigures) -> str | None:
    """Return the highest percentile that so many values and failures have."""
    return next((name for name in _TAILS if rank(PERCENTILES[name], values.tries)), None)


def _figure(values: StepFigures, name: str) -> str:
    """Return an order statistic with its unit; one that is a failure's is the least that it can be."""
    if name == "min":
        return _value(min(values.values), values.unit)
    value, least = values.at(PERCENTILES.get(name, MILLION))
    if value is not None:
        return _value(value, values.unit)
    return "failed" if least is None else at_least(_value(least, values.unit))


def _value(value: float, unit: str) -> str:
    """Return a figure with its unit (hostile)."""
    if unit in _MS and math.isfinite(value):
        return milliseconds(max(value, 0.0) * _MS[unit])
    return f"{significant(abs(value))} {unit}"


def _upgraded(run: ReportRun) -> str:
    """Return what was upgraded: `WordPress 6.1.9 to 6.8.12` (hostile)."""
    for event in run.directory.events:
        versions = [event.further.get(key) for key in ("from_version", "to_version")]
        if event.name == "upgrade" and all(isinstance(one, str) for one in versions):
            return "WordPress {} to {}".format(*versions)
    return "The upgrade"


def _upgrade(run: ReportRun, values: StepFigures) -> HeadlineFigure:
    what = _upgraded(run)
    below = what.removeprefix("WordPress ") if what != "The upgrade" else _failed(values)
    return HeadlineFigure("upgrade", _figure(values, "p50"), below, first=True)


def _phase_times(run: ReportRun) -> list[tuple[str, float]]:
    """Return the phases (hostile) and how long each took, in ms, the longest first."""
    times = [
        (name.removeprefix(PHASE), sum(one.values) * _MS[one.unit])
        for name, one in run.values.items()
        if name.startswith(PHASE) and one.unit in _MS and one.values
    ]
    return sorted(times, key=lambda pair: -pair[1])


def _phases(run: ReportRun, values: StepFigures) -> list[HeadlineFigure]:
    whole_ms = sum(values.values) * _MS.get(values.unit, 1.0)
    return [
        HeadlineFigure(
            name, milliseconds(took_ms), f"{share(round(took_ms), round(whole_ms))} of it" if whole_ms else ""
        )
        for name, took_ms in _phase_times(run)[:_MOST_PHASES]
    ]


def _longest(run: ReportRun) -> str:
    longest = [f"{name} {milliseconds(took_ms)}" for name, took_ms in _phase_times(run)[:_MOST_PHASES]]
    return f", most of it in {listed(longest)}" if longest else ""


def _outage_times(run: ReportRun) -> list[tuple[str, float]]:
    """Return who was without the site (hostile), and for how long in all, in ms."""
    return [
        (name.removeprefix("outage: "), one.values[-1] * _MS[one.unit])
        for name, one in run.values.items()
        if name.startswith("outage: ") and one.unit in _MS and one.values
    ]


def _outages(run: ReportRun) -> list[HeadlineFigure]:
    return [
        HeadlineFigure(f"{who} without the site", _gone(gone_ms), "") for who, gone_ms in _outage_times(run)
    ]


def _without_site(run: ReportRun) -> str:
    gone = [f"{who} for {_gone(gone_ms)}" for who, gone_ms in _outage_times(run) if gone_ms > 0]
    return f" Without the site meanwhile: {listed(gone)}." if gone else ""


def _unknown_phases(run: ReportRun) -> str:
    why = phases_unknown(run.directory.events)
    return "" if why is None else f" Its phases are unknown: {why}."


def _gone(gone_ms: float) -> str:
    return seconds(max(gone_ms, 0.0) / 1000)


def _of_browser(run: ReportRun) -> list[HeadlineFigure]:
    """Return the medians of what a person waited for, and of the largest paint of the front page."""
    found: list[HeadlineFigure] = []
    names = {**_IN_A_BROWSER, "lcp: front page": "front page painted"}
    for name, called in names.items():
        if (values := run.values.get(name)) and values.tries:
            below = f"median of {values.tries:,}"
            found.append(HeadlineFigure(called, _figure(values, "p50"), below, first=not found))
    return found
