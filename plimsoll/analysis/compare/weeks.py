"""Production before and after a move, from its own access logs: matched by hour of the week and route.

That is not an experiment: what else changed with the move changed too. So the verdict is on the weeks, not on
the disks, and says so.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from plimsoll.analysis.compare.comparison import EXIT_CODES, Progress
from plimsoll.analysis.compare.decision import Outcome, overall
from plimsoll.analysis.compare.gates import RATIO
from plimsoll.analysis.evidence.sides import OpenedSide, open_sides
from plimsoll.analysis.statistics.percentiles import COARSE
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.analysis.statistics.standardised import (
    DAY_HOURS,
    HOUR_NS,
    LEAST_IN_CELL,
    UTC,
    WEEK_HOURS,
    Ratio,
    ServedRequests,
    Standardised,
    local_hours,
    standardise,
    time_zone,
)
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.hostile import printable
from plimsoll.common.units import ABSENT, count, counted, milliseconds, percent
from plimsoll.rundir.read import RunDirectory

LEAST_DAYS = 14  # a side, for a verdict: each day of the week twice
SHOWN = ("p50", "p90", "p99", "p99.9")
JUDGED = ("p99", "p99.9")
_CONFIDENCE = 0.95
_MORE_FAILURES = 0.01
_LEAST_KEPT = 0.8  # of the requests of a side: of fewer, the mix is another site's
_MOST_ROUTES = 1 << 12
_TOP, _UPPER, _EDGE = 60, 19, 0.7
_LEAST_MISSING = 20
_FEWER = 1.05
_LEAST_OF_KIND = 1000
HOW_WRITTEN = ("log_format", "log_times_are", "log_time_zone", "include", "exclude", "timeout_s")

CLAIM = (
    "The weeks are compared, over one mix of routes and hours of the week. They were not an experiment: "
    "releases, visitors, season and all else that changed with the move are in the difference, too."
)


@dataclass(frozen=True)
class Weeks:
    """Both sides' names (hostile) and figures, and reasons for which nothing can be decided (hostile).

    `doubts` (hostile) forbid no verdict.
    """

    names: tuple[str, str]
    found: Standardised
    reasons: list[str]
    doubts: list[str]

    @property
    def verdicts(self) -> dict[str, Outcome]:
        """The verdict on each judged quantile."""
        found: dict[str, Outcome] = {}
        for name in JUDGED:
            lower, upper = self.found.ratios[name].lower, self.found.ratios[name].upper
            if self.reasons or lower is None or upper is None or lower <= RATIO < upper:
                found[name] = "INCONCLUSIVE"
            else:
                found[name] = "PASS" if upper <= RATIO else "FAIL"
        return found

    @property
    def verdict(self) -> Outcome:
        """FAIL if one is broken, PASS if all are kept."""
        return overall(list(self.verdicts.values()))

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return EXIT_CODES[self.verdict]

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        sides = {
            key: {
                "name": name,
                "requests": side.requests,
                "days": side.days,
                "kept_share": side.kept_share,
                "effective_requests": side.effective,
                "failed_share": side.failed_share,
                "standardised_ms": side.quantiles_ms,
            }
            for key, name, side in zip(
                ("baseline", "candidate"), self.names, (self.found.before, self.found.after), strict=True
            )
        }
        ratios = {
            name: {
                "estimate": one.estimate,
                "lower": one.lower,
                "upper": one.upper,
                "at_most_ratio": RATIO if name in JUDGED else None,
                "verdict": self.verdicts.get(name),
            }
            for name, one in self.found.ratios.items()
        }
        return {
            "format": 1,
            "kind": "accesslogs",
            "verdict": self.verdict,
            "confidence": _CONFIDENCE,
            **sides,
            "cells": self.found.cells,
            "ratios": ratios,
            "reasons": self.reasons,
            "doubts": self.doubts,
            "claim": CLAIM,
        }

    def lines(self) -> Iterator[str]:
        """Yield what the command prints, safe for a terminal."""
        one, other = self.found.before, self.found.after
        before, after = (printable(name, 24) for name in self.names)
        yield f"{self.verdict}: {after} against {before}, from access logs"
        yield ""
        yield f"{'':<12}  {'quantile':<8}  {before:>12}  {after:>12}  {'ratio':>8}  {'interval':>15}  limit"
        for name, ratio in self.found.ratios.items():
            verdict = self.verdicts.get(name, "")
            times = [milliseconds(side.quantiles_ms[name]) for side in (one, other)]
            limit = f"≤ × {RATIO:g}" if name in JUDGED else ""
            shift = f"{_ratio_text(ratio.estimate):>8}  {_interval_text(ratio):>15}"
            yield f"{verdict:<12}  {name:<8}  {times[0]:>12}  {times[1]:>12}  {shift}  {limit}".rstrip()
        yield ""
        for name, side in ((before, one), (after, other)):
            yield (
                f"{name}: {counted(side.requests, 'request')} of {counted(side.days, 'day')}, "
                f"{percent(side.failed_share)} of them failed; {percent(side.kept_share)} are in the "
                f"{counted(self.found.cells, 'cell')} (hour of the week and route) of which both sides have "
                f"{LEAST_IN_CELL} or more."
            )
        said = [*self.reasons, *(f"warning: {doubt}" for doubt in self.doubts)]
        yield from ("", *(printable(each, 4096) for each in said)) if said else ()
        yield ""
        yield CLAIM


def find_weeks(
    paths: Sequence[Path], baseline: str | None, candidate: str | None
) -> tuple[OpenedSide, OpenedSide] | None:
    """Return both sides where all of their runs are imported access logs; else None."""
    sides = open_sides(paths, baseline, candidate)
    runs = [run for side in sides for run in side.runs]
    return sides if runs and all(run.facts.from_log for run in runs) else None


def compare_weeks(
    before: OpenedSide, after: OpenedSide, progress: Progress = lambda *_: None, zone: str = UTC
) -> Weeks:
    """Judge the weeks `after` against those `before`, by hours of `zone`.

    Raises RunDirectoryError, and SettingsError where there is no such zone.
    """
    total, read = sum(run.requests.count for side in (before, after) for run in side.runs), 0

    def advance(records: int) -> None:
        nonlocal read
        read += records
        progress(read, total)

    routes: dict[str, int] = {}
    clock = time_zone(zone)
    requests = (_read_served(before, routes, clock, advance), _read_served(after, routes, clock, advance))
    # both quantiles may err, so each gets half
    found = standardise(*requests, SHOWN, (1 - _CONFIDENCE) / len(JUDGED))
    names = (before.name, after.name)
    reasons = [*_find_reasons((before, after), requests, found), *_find_cut_tail(names, requests)]
    kinds = {number: name for name, number in routes.items()}
    return Weeks(names, found, reasons, list(_find_fewer(names, requests, kinds)))


def _read_served(
    side: OpenedSide, routes: dict[str, int], clock: ZoneInfo, advance: Callable[[int], None]
) -> ServedRequests:
    """Read all requests of a side; `routes` numbers their names for both sides."""
    parts: list[ServedRequests] = []
    for run in side.runs:
        began = began_ns(run)
        numbers = [
            routes.setdefault(run.route_name(at), len(routes)) for at in range(max(len(run.routes), 1))
        ]
        number = np.array(numbers, dtype=np.int64)
        for block in run.requests.blocks():
            counted = CountedRequests.of(block, run.facts.timeout_us)
            hours = local_hours((began + counted.due_ns) // HOUR_NS, clock)
            route = number[np.minimum(counted.column("route"), len(number) - 1)]
            parts.append(
                ServedRequests(
                    counted.response_us,
                    counted.failures,
                    hours % WEEK_HOURS * _MOST_ROUTES + np.minimum(route, _MOST_ROUTES - 1),
                    hours // DAY_HOURS,
                )
            )
            advance(len(block))
    return ServedRequests(
        np.concatenate([part.took_us for part in parts]),
        np.concatenate([part.failed for part in parts]),
        np.concatenate([part.cell for part in parts]),
        np.concatenate([part.day for part in parts]),
    )


def began_ns(run: RunDirectory) -> int:
    """Return when an imported log begins, since 1970. Raises RunDirectoryError where it does not say."""
    if run.facts.started_at is None:
        raise RunDirectoryError(f"{run.path}: does not say when its log begins: import the log again")
    return round(run.facts.started_at.timestamp() * 1e6) * 1000


def _find_reasons(
    sides: tuple[OpenedSide, OpenedSide], requests: tuple[ServedRequests, ServedRequests], found: Standardised
) -> Iterator[str]:
    """Yield why nothing can be decided, each with its remedy (hostile)."""
    for side in sides:
        yield from (
            f"{run.path} is {run.status}: import its log again."
            for run in side.runs
            if run.status != "complete"
        )
        yield from (f"{side.name}: {each.why}" for each in side.unreadable)
    settings = [run.facts.load.settings if run.facts.load else {} for side in sides for run in side.runs]
    for key in HOW_WRITTEN:
        if any(each.get(key) != settings[0].get(key) for each in settings):
            yield f"The logs were not read in the same way: {key} differs. Import both alike."
    if len(np.intersect1d(requests[0].days, requests[1].days)) > 1:
        yield "Both sides have requests of the same days: import each with --from and --to."
    for side, figures in zip(sides, (found.before, found.after), strict=True):
        if figures.days < LEAST_DAYS:
            yield (
                f"{side.name} has {counted(figures.days, 'day')}; a verdict takes {LEAST_DAYS}, each day of "
                "the week twice: import more of its log."
            )
        if figures.kept_share < _LEAST_KEPT:
            yield (
                f"Only {percent(figures.kept_share)} of the requests of {side.name} have their like "
                "on the other side: compare the same hours of the same site, or give --route on both imports."
            )
    if found.after.failed_share - found.before.failed_share > _MORE_FAILURES:
        yield (
            f"{percent(found.after.failed_share)} of the requests of {sides[1].name} failed, "
            f"and {percent(found.before.failed_share)} of those of {sides[0].name}: find out why."
        )
    finest_us = max(min(run.facts.finest_us for run in side.runs) for side in sides)
    for name in JUDGED:
        times = [side.quantiles_ms[name] for side in (found.before, found.after)]
        if any(ms is not None and ms * 1000 < COARSE * finest_us for ms in times):
            yield (
                f"The durations of a log are multiples of {milliseconds(finest_us / 1000)}, too coarse for a "
                f"{name} as short: write it with finer ones ($request_time of nginx, %D of Apache)."
            )
        if found.ratios[name].estimate is None:
            fewest = count(round(min(found.before.effective, found.after.effective)))
            yield (
                f"There is no {name}: too few requests (as good as {fewest}), or it is a failure's: import "
                "more of the log, or look at its errors."
            )


def _find_cut_tail(names: tuple[str, str], requests: tuple[ServedRequests, ServedRequests]) -> Iterator[str]:
    """Yield that the slow requests of one side are not in its log.

    A tail thins out: between its slowest and its 20th slowest request lies more than between that and the
    60th. Where the tail was cut, requests lie as densely at the edge as below it: 19 gaps beside 40. From
    0.7 on, where a tail that thins out lies 1 time in 100,000, it is an edge if these 60 are of five days or
    more, none of which has half of them (one stall has an edge, too), and if the other side has so many
    requests beyond it that 20 are missing.
    """
    for side, other in ((0, 1), (1, 0)):
        whole = ~requests[side].failed
        took_us, days = requests[side].took_us[whole], requests[side].day[whole]
        if len(took_us) < _TOP:
            continue
        at = np.argpartition(took_us, -_TOP)[-_TOP:]
        top = np.sort(took_us[at].astype(np.float64))[::-1]
        below = top[_UPPER] - top[-1]
        counts = np.unique(days[at], return_counts=True)[1]
        if below <= 0 or top[0] - top[_UPPER] > _EDGE * below or len(counts) < 5 or counts.max() >= _TOP / 2:
            continue
        beyond = np.count_nonzero(requests[other].took_us[~requests[other].failed] > top[0])
        missing = beyond / len(requests[other].took_us) * len(took_us)
        if missing >= _LEAST_MISSING:
            yield (
                f"The log of {names[side]} has no request over {milliseconds(top[0] / 1000)}, and as many "
                f"just below it as further down, as if slower ones were not written: {names[other]} has "
                f"{counted(int(beyond), 'request')} beyond. Find out what leaves them out."
            )


def _find_fewer(
    names: tuple[str, str], requests: tuple[ServedRequests, ServedRequests], kinds: dict[int, str]
) -> Iterator[str]:
    """Yield that one side was asked for fewer requests a day, in all by 5 %, or of one kind by half."""
    a_day = [len(side.took_us) / max(len(np.unique(side.day)), 1) for side in requests]
    fewer = int(a_day[1] < a_day[0])
    if max(a_day) > _FEWER * min(a_day):
        yield (
            f"{names[fewer]} has {count(round(a_day[fewer]))} requests a day and {names[not fewer]} "
            f"{count(round(a_day[not fewer]))}: what is missing may be what was slow. Find out why."
        )
    of_kind = [np.bincount(side.cell % _MOST_ROUTES, minlength=_MOST_ROUTES) for side in requests]
    days = [max(len(np.unique(side.day)), 1) for side in requests]
    for side, other in ((0, 1), (1, 0)):
        few, many = of_kind[side] / days[side], of_kind[other] / days[other]
        for number in np.flatnonzero((of_kind[other] >= _LEAST_OF_KIND) & (few < many / 2)):
            yield (
                f"{names[side]} has {count(round(few[number]))} requests a day of the kind "
                f"{kinds[int(number)]}, and {names[other]} {count(round(many[number]))}. A cache in front "
                "keeps requests from a server's log: find out whether one stands before one side only."
            )


def _ratio_text(ratio: float | None) -> str:
    return ABSENT if ratio is None else f"× {ratio:.2f}"


def _interval_text(ratio: Ratio) -> str:
    if ratio.lower is None or ratio.upper is None:
        return ABSENT
    return f"{_ratio_text(ratio.lower)} … {_ratio_text(ratio.upper)}"
