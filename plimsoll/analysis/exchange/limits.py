"""The limits of a merged run, judged over the records of all instances. Pure.

The same rules are in replay/record/judge.go, and both are held against tests/fixtures/limits.json.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.analysis.statistics.percentiles import PERCENTILES, fewest
from plimsoll.common.units import counted
from plimsoll.rundir.facts import LimitVerdict

_UNITS_MS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1, "us": 0.001, "µs": 0.001, "ns": 1e-6}
_TIME = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)", re.ASCII)


def judge_limit(limit: str, summary: Mapping[str, Any], status: str, generator_limited: bool) -> LimitVerdict:
    """Return what became of `limit`, as run.json has it (p99.9=800ms), by what summary.json says."""
    figure, _, value = limit.partition("=")
    counts = summary["requests"]
    measured = counts["sent"] - counts["warmup"]
    if figure == "errors":
        outcome, says = _errors(float(value.rstrip("% ")), counts, measured)
    else:
        outcome, says = _time(figure, _milliseconds(value), summary, measured, generator_limited)
    if outcome == "kept" and status != "complete":
        outcome, says = "not judged", f"{says}, but the run is {status}: only a whole run keeps a limit"
    elif outcome == "kept" and generator_limited:
        outcome = "not judged"
        says += ", but the generator was the limit of this run: the load was not what was asked for"
    return LimitVerdict(limit=limit, outcome=outcome, says=says)


def collect_limits(all_limits: Sequence[Sequence[str]]) -> list[str]:
    """Return the limits that any instance was given, each once."""
    return list(dict.fromkeys(limit for limits in all_limits for limit in limits))


def _time(
    figure: str, at_most_ms: float, summary: Mapping[str, Any], measured: int, generator_limited: bool
) -> tuple[str, str]:
    counts = summary["requests"]
    name = "the longest response time" if figure == "max" else f"{figure} of the response time"
    needed = 1 if figure == "max" else fewest(PERCENTILES[figure])
    if measured < needed:
        return "not judged", f"{name} takes {counted(needed, 'request')}, and there were {measured:,}"
    value_ms, least_ms = _figure(summary["response_ms"], figure)
    if value_ms is not None and value_ms <= at_most_ms:
        return "kept", f"{name} is {_exact(value_ms)}, within {_exact(at_most_ms)}"
    if value_ms is None and (least_ms is None or least_ms <= at_most_ms):
        return "not judged", f"{name} falls on a request that failed, and nobody knows after how long"
    shown = _exact(value_ms) if value_ms is not None else f"at least {_exact(least_ms or 0)}"
    if generator_limited and not _is_over(summary["service_ms"], figure, at_most_ms):
        why = "but the generator was the limit of this run: it may be its doing"
        return "not judged", f"{name} is {shown}, over {_exact(at_most_ms)}, {why}"
    unqueued = summary.get("unqueued_ms")
    if unqueued is not None and not _is_over(unqueued, figure, at_most_ms):
        waited = f"{counts['client_queued']:,} of {counted(measured, 'request')}"
        alone_ms, _ = _figure(unqueued, figure)
        known = f"without that it is {_exact(alone_ms)}" if alone_ms is not None else ""
        why = f"but {waited} waited for connections of their own clients, and "
        why += known or "nobody knows what it is without that"
        return "not judged", f"{name} is {shown}, over {_exact(at_most_ms)}, {why}"
    return "exceeded", f"{name} is {shown}, over the limit of {_exact(at_most_ms)}"


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


def _is_over(times: Mapping[str, Any], figure: str, at_most_ms: float) -> bool:
    value_ms, least_ms = _figure(times, figure)
    known_ms = value_ms if value_ms is not None else least_ms
    return known_ms is not None and known_ms > at_most_ms


def _milliseconds(text: str) -> float:
    """Return a time as Go writes them, 1m30s or 800ms, in whole microseconds."""
    total_ms = sum(float(number) * _UNITS_MS[unit] for number, unit in _TIME.findall(text))
    return math.floor(round(total_ms * 1000, 6)) / 1000


def _exact(value_ms: float) -> str:
    """Return a time with all its microseconds: one just over its limit must not read like it."""
    value, unit = (value_ms, "ms") if value_ms < 1000 else (value_ms / 1000, "s")
    return f"{value:.6f}".rstrip("0").rstrip(".") + f" {unit}"
