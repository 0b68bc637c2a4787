"""The first thing that a reader sees: four figures and one sentence."""

from dataclasses import dataclass

from analysis.report.measured_run import MeasuredRun
from plimsoll.common.units import milliseconds, significant


@dataclass(frozen=True)
class Big:
    """A large figure, its name, and a small line below it."""

    name: str
    value: str
    below: str
    first: bool = False


def big_figures(run: MeasuredRun) -> list[Big]:
    """Return p50, p99, p99.9 and the slowest response time."""
    response = run.statistics.samples["response"].figures_ms()
    median, tail, upper = response["p50"], response["p99.9"], run.statistics.p999_upper_ms
    below = "needs 1,000 requests" if tail is None else f"at most {milliseconds(upper)} *" if upper else ""
    return [
        Big("p50", milliseconds(median), "half were faster"),
        Big("p99", milliseconds(response["p99"]), _times(response["p99"], median)),
        Big("p99.9", milliseconds(tail), below, first=True),
        Big("slowest", milliseconds(response["max"]), _times(response["max"], median)),
    ]


def sentence(run: MeasuredRun) -> str:
    """Return what the figures mean."""
    response = run.statistics.samples["response"].figures_ms()
    tail, median = response["p99.9"], response["p50"]
    if tail is None:
        slowest = milliseconds(response["max"])
        return f"Too few requests for the slowest in a thousand; the slowest of all took {slowest}."
    text = f"The slowest request in a thousand took {milliseconds(tail)} or more"
    times = _times(tail, median)
    return text + (f": {times}, {milliseconds(median)}." if times else ".")


def footnote(run: MeasuredRun) -> str:
    """Return what the star at p99.9 means; empty if there is none."""
    if run.statistics.p999_upper_ms is None:
        return ""
    return (
        "* Upper end of the 95 % interval of p99.9, if requests were independent of one another. "
        "They are not quite, so take it as the least that the doubt can be."
    )


def _times(value_ms: float | None, median_ms: float | None) -> str:
    if not value_ms or not median_ms or value_ms < 1.05 * median_ms:
        return ""
    return f"{significant(value_ms / median_ms, 2)} times the median"
