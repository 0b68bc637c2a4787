"""Limits of a merged run (--fail-over): judged over all its records, as bin/replay judges its own runs."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from plimsoll.analysis.evidence.generator import MOST_MOVED, is_late
from plimsoll.analysis.evidence.traits import count_slots, moved_share
from plimsoll.analysis.statistics.percentiles import PERCENTILES, Sample, Times, fewest, narrow
from plimsoll.analysis.statistics.requests import CountedRequests, counted_us
from plimsoll.common.units import counted, parse_go_duration_ms
from plimsoll.rundir.facts import LimitVerdict
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import UNKNOWN_LATE_US, late_us

_PROMPT_US = 1000  # from the first request on that was later, response times without lateness are kept


def judge_limit(limit: str, summary: Mapping[str, Any], status: str, limited_otherwise: bool) -> LimitVerdict:
    """Return what became of `limit`, as run.json has it (p99.9=800ms), by what summary.json says.

    `limited_otherwise` is whether the generator was the limit, and not by its lateness alone: of that, both
    ends of the response times are known. The same rules are in replay/record/limits.go, and both are held
    against tests/fixtures/limits.json.
    """
    figure, _, value = limit.partition("=")
    counts = summary["requests"]
    measured = counts["sent"] - counts["warmup"]
    if figure == "errors":
        outcome, says = _errors(float(value.rstrip("% ")), counts, measured)
        if outcome == "kept" and _is_bunched(summary, "p99.9", 0):
            outcome, says = "not judged", f"{says}, but {_bursts(summary)}"
    else:
        outcome, says = _time(figure, parse_go_duration_ms(value), summary, measured, limited_otherwise)
    if outcome == "kept" and status != "complete":
        outcome, says = "not judged", f"{says}, but the run is {status}: only a whole run keeps a limit"
    elif outcome == "kept" and limited_otherwise:
        outcome = "not judged"
        says += ", but the generator was the limit of this run: the load was not what was asked for"
    return LimitVerdict(limit=limit, outcome=outcome, says=says)


def measure_lateness(run: RunDirectory) -> dict[str, Any]:
    """Return `prompt_ms` and `moved` of summary.json, those that there are, as bin/replay has them."""
    timeout_us, prompt, was_late = run.facts.timeout_us, list[Times](), False
    due = sent = np.zeros(0, dtype=np.int64)
    for block in run.requests.blocks():
        measured = CountedRequests.of(block, timeout_us)
        own_us = np.where(measured.queued, late_us(measured.records), measured.lag_us)
        due = count_slots(due, measured.due_ns)
        known_us = np.where(own_us == UNKNOWN_LATE_US, 0, own_us).astype(np.int64)
        sent = count_slots(sent, measured.due_ns + 1000 * known_us)
        own_us = np.minimum(own_us, measured.lag_us)
        if not was_late:  # all up to the first that is late count as in time
            is_late_us = own_us > _PROMPT_US
            was_late = bool(is_late_us.any())
            own_us[: int(np.argmax(is_late_us)) if was_late else None] = 0
        took_us = narrow(measured.took_us - own_us.astype(np.uint64))
        took_us = counted_us(took_us, measured.failures, timeout_us)
        prompt.append(Times.of(took_us, measured.failures))
    found: dict[str, Any] = {}
    if was_late:
        found["prompt_ms"] = Sample.of_times(Times.joined(prompt)).figures().as_json()
    if moved := moved_share(due, sent):
        found["moved"] = moved
    return found


def _time(
    figure: str, at_most_ms: float, summary: Mapping[str, Any], measured: int, limited_otherwise: bool
) -> tuple[str, str]:
    counts = summary["requests"]
    name = "the longest response time" if figure == "max" else f"{figure} of the response time"
    needed = 1 if figure == "max" else fewest(PERCENTILES[figure])
    if measured < needed:
        return "not judged", f"{name} takes {counted(needed, 'request')}, and there were {measured:,}"
    value_ms, least_ms = _figure(summary["response_ms"], figure)
    is_kept = value_ms is not None and value_ms <= at_most_ms
    if value_ms is None and (least_ms is None or least_ms <= at_most_ms):
        return "not judged", f"{name} falls on a request that failed, and it is unknown after how long"
    shown = _exact(value_ms) if value_ms is not None else f"at least {_exact(least_ms or 0)}"
    says = f"{name} is {shown}, {'within' if is_kept else 'over'} {_exact(at_most_ms)}"
    if _is_bunched(summary, figure, at_most_ms):
        return "not judged", f"{says}, but {_bursts(summary)}"
    if is_kept:
        return "kept", says
    if limited_otherwise and not _is_over(summary["service_ms"], figure, at_most_ms):
        return "not judged", f"{says}, but the generator was the limit of this run: it may be its doing"
    waited = f"{counts.get('client_queued', 0):,} of {counted(measured, 'request')}"
    for key, what in (
        ("prompt_ms", "the generator sent late"),
        ("unqueued_ms", f"{waited} waited for connections of their own clients"),
    ):
        if (alone := summary.get(key)) is not None and not _is_over(alone, figure, at_most_ms):
            alone_ms, _ = _figure(alone, figure)
            known = "unknown" if alone_ms is None else _exact(alone_ms)
            return "not judged", f"{says}, but {what}, and without that it is {known}"
    return "exceeded", f"{name} is {shown}, over the limit of {_exact(at_most_ms)}"


def _is_bunched(summary: Mapping[str, Any], figure: str, at_most_ms: float) -> bool:
    """Return whether lateness changed the shape of the load, and is too long at `figure` beside the limit.

    A server that waits for nothing else serves a burst late.
    """
    late = summary.get("late_ms", {})
    if late.get("max") is None and late.get(figure) is None:  # some waited for a connection
        late = summary.get("lag_ms", {})
    late_ms = late.get("max") if late.get(figure) is None else late[figure]
    return summary.get("moved", 0) > MOST_MOVED and is_late(late_ms, at_most_ms)


def _bursts(summary: Mapping[str, Any]) -> str:
    return (
        f"the generator sent late, and {100 * summary['moved']:.1f} % of the requests in another 100 ms than "
        "that in which they were due: the server got bursts that the log does not have"
    )


def _errors(percent: float, counts: Mapping[str, Any], measured: int) -> tuple[str, str]:
    failures, never_sent = counts["failures"], counts.get("client_timeouts", 0)
    if not measured:
        return "not judged", "no request was measured, so no share of them failed"
    part = f"{100 * failures / measured:.3g} %"
    says = f"{failures:,} of {counted(measured, 'request')} failed ({part})"
    share = percent / 100
    if failures - never_sent <= share * measured < failures:
        why = f"but {never_sent:,} of them waited for connections of their own clients and were never sent"
        return "not judged", f"{says}, over {percent:g} %, {why}"
    if failures > share * measured:
        return "exceeded", f"{says}, over the limit of {percent:g} %"
    if share and measured * share < 1:
        needed = math.floor(1 / share)
        needed += needed * share < 1
        few = f"but fewer than {counted(needed, 'request')} do not show a share of {percent:g} %"
        return "not judged", f"{says}, {few}"
    return "kept", f"{says}, within {percent:g} %"


def _figure(times: Mapping[str, Any], figure: str) -> tuple[float | None, float | None]:
    """Return a figure of summary.json; where it is censored, what it is at least."""
    return times.get(figure), times.get("censored", {}).get(figure)


def least_figure_ms(times: Mapping[str, Any], figure: str) -> float | None:
    """Return a figure of summary.json, or what it is at least."""
    value_ms, least_ms = _figure(times, figure)
    return least_ms if value_ms is None else value_ms


def _is_over(times: Mapping[str, Any], figure: str, at_most_ms: float) -> bool:
    least_ms = least_figure_ms(times, figure)
    return least_ms is not None and least_ms > at_most_ms


def _exact(value_ms: float) -> str:
    """Return a time with all its microseconds: one just over its limit must not read like it."""
    value, unit = (value_ms, "ms") if value_ms < 1000 else (value_ms / 1000, "s")
    return f"{value:.6f}".rstrip("0").rstrip(".") + f" {unit}"
