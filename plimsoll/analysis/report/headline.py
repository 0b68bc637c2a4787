"""The first thing that a reader sees: four figures and one sentence."""

from plimsoll.analysis.page.section import Big
from plimsoll.analysis.report.cautions import BOUND_NEEDS
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.statistics.figures import TimeFigures
from plimsoll.analysis.statistics.sample import P999, fewest
from plimsoll.common.units import WRONG_ANSWER, milliseconds, share, significant


def big_figures(run: MeasuredRun) -> list[Big]:
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
        Big(
            "slowest" if name == "max" else name,
            response.shown(name),
            _failure(response, name) or text,
            first=name == "p99.9",
            faint=name in response.wrong,
        )
        for name, text in below.items()
    ]


def sentence(run: MeasuredRun) -> str:
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
    """Return what stands below a figure that is a failure's; empty where it is none."""
    if name not in response.censored:
        return ""
    least_ms = response.least_ms(name)
    if name in response.wrong:
        return "a failure" if least_ms is None else f"counts as {milliseconds(least_ms)}"
    return "failed" if least_ms is None else "failed, at its time-out"


def footnote(run: MeasuredRun) -> str:
    """Return what the star at p99.9 means; empty if there is none."""
    if run.statistics.p999_upper_ms is not None:
        return (
            "* Upper end of the 95 % interval of p99.9, for as long as all goes on as in this run: what "
            "comes more rarely, it does not know. Slow requests that came together count as one."
        )
    if _stalls(run):
        return (
            "* Stalls: the slowest requests came together, in too few places for this run alone to bound "
            "anything. Look at several runs."
        )
    return ""


def _stalls(run: MeasuredRun) -> bool:
    """Return whether there would be a bound, did the slowest requests not come together."""
    found, response = run.statistics, run.statistics.samples["response"]
    come_together = BOUND_NEEDS <= response.n < BOUND_NEEDS * (found.p999_clustering or 1)
    return found.p999_upper_ms is None and come_together and "p99.9" not in response.figures().censored


def _times(value_ms: float | None, median_ms: float | None) -> str:
    if not value_ms or not median_ms or value_ms < 1.05 * median_ms:
        return ""
    return f"{significant(value_ms / median_ms, 2)} times the median"
