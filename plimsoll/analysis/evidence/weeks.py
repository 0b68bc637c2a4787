"""Production before and after a move, from its own access logs: matched by hour of the week and route.

That is not an experiment: what else changed with the move changed too. So it speaks of the weeks, not of the
disks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.measure import Observer, read_counted
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.statistics.percentiles import COARSE
from plimsoll.analysis.statistics.standardised import (
    DAY_HOURS,
    HOUR_NS,
    LEAST_IN_CELL,
    UTC,
    WEEK_HOURS,
    ServedRequests,
    Standardised,
    local_hours,
    standardise,
    time_zone,
)
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.units import ABSENT, count, counted, milliseconds, percent
from plimsoll.rundir.read import RunDirectory

LEAST_DAYS = 14  # a side, for a verdict: each day of the week twice
SHOWN = ("p50", "p90", "p99", "p99.9")
JUDGED = ("p99", "p99.9")
CONFIDENCE = 0.95
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
class WeeksBeside:
    """Both sides' names (hostile), their runs, figures over one mix, and what was found between the sides."""

    names: tuple[str, str]
    runs: list[MeasuredRun]
    figures: Standardised
    findings: list[Finding]

    @property
    def claim(self) -> str:
        """What is compared, and what is not known of it."""
        return CLAIM

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each quantile with its times on both sides, their ratio, and the interval of that."""
        for name, ratio in self.figures.ratios.items():
            times = [
                milliseconds(each.quantiles_ms[name]) for each in (self.figures.before, self.figures.after)
            ]
            limits = [_ratio_text(each) for each in (ratio.lower, ratio.upper)]
            yield (
                name,
                [*times, _ratio_text(ratio.estimate), ABSENT if ABSENT in limits else " … ".join(limits)],
            )

    def sentences(self) -> Iterator[str]:
        """Yield what is in the figures of each side (hostile)."""
        for name, side in zip(self.names, (self.figures.before, self.figures.after), strict=True):
            yield (
                f"{name}: {counted(side.requests, 'request')} of {counted(side.days, 'day')}, "
                f"{percent(side.failed_share)} of them failed; {percent(side.kept_share)} are in the "
                f"{counted(self.figures.cells, 'cell')} (hour of the week and route) of which both sides "
                f"have {LEAST_IN_CELL} or more."
            )

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints of them."""
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
                ("baseline", "candidate"), self.names, (self.figures.before, self.figures.after), strict=True
            )
        }
        ratios = {
            name: {"estimate": one.estimate, "lower": one.lower, "upper": one.upper}
            for name, one in self.figures.ratios.items()
        }
        return {
            "confidence": CONFIDENCE,
            **sides,
            "cells": self.figures.cells,
            "ratios": ratios,
            "claim": self.claim,
        }


def hold_weeks(
    sides: tuple[Sequence[RunDirectory], Sequence[RunDirectory]],
    names: tuple[str, str],
    progress: Callable[[int], None] = lambda _: None,
    zone: str = UTC,
) -> WeeksBeside:
    """Hold the imported logs of two sides against each other, by hours of `zone`.

    `progress` is called with the number of requests that were read since its last call. Raises
    RunDirectoryError, and SettingsError of an unknown zone.
    """
    routes: dict[str, int] = {}
    clock, runs = time_zone(zone), list[MeasuredRun]()
    before, after = (_read_served(side, routes, clock, progress, runs) for side in sides)
    # both quantiles may err, so each gets half
    figures = standardise(before, after, SHOWN, (1 - CONFIDENCE) / len(JUDGED))
    kinds = {number: name for name, number in routes.items()}
    every = tuple(run.name for run in runs)
    found = [
        Finding(kind, text, every, runs[0].scenario, own_remedy=remedy or None)
        for kind, text, remedy in (
            *_find_unlike(sides, names, (before, after), figures),
            *_find_cut_tail(names, (before, after)),
            *_find_fewer(names, (before, after), kinds),
        )
    ]
    return WeeksBeside(names, runs, figures, found)


def _read_served(
    side: Sequence[RunDirectory],
    routes: dict[str, int],
    clock: ZoneInfo,
    advance: Callable[[int], None],
    runs: list[MeasuredRun],
) -> ServedRequests:
    """Read all requests of a side; `routes` numbers their names for both sides. Its runs join `runs`."""
    parts: list[ServedRequests] = []
    for run in side:
        began = began_ns(run)
        numbers = [
            routes.setdefault(run.route_name(at), len(routes)) for at in range(max(len(run.routes), 1))
        ]
        number = np.array(numbers, dtype=np.int64)
        observer = Observer(run)
        for requests in read_counted(run, observer, advance):
            hours = local_hours((began + requests.due_ns) // HOUR_NS, clock)
            route = number[np.minimum(requests.column("route"), len(number) - 1)]
            parts.append(
                ServedRequests(
                    requests.response_us,
                    requests.failures,
                    hours % WEEK_HOURS * _MOST_ROUTES + np.minimum(route, _MOST_ROUTES - 1),
                    hours // DAY_HOURS,
                )
            )
        runs.append(observer.run())
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


_Found = Iterator[tuple[FindingKind, str, str]]


def _find_unlike(
    sides: tuple[Sequence[RunDirectory], Sequence[RunDirectory]],
    names: tuple[str, str],
    requests: tuple[ServedRequests, ServedRequests],
    found: Standardised,
) -> _Found:
    """Yield why the weeks of the sides cannot be held against each other (hostile)."""
    unlike = FindingKind.UNLIKE_LOGS
    settings = [run.facts.load.settings if run.facts.load else {} for side in sides for run in side]
    for key in HOW_WRITTEN:
        if any(each.get(key) != settings[0].get(key) for each in settings):
            yield unlike, f"The logs were not read in the same way: {key} differs.", "Import both alike."
    if len(np.intersect1d(requests[0].days, requests[1].days)) > 1:
        yield unlike, "Both sides have requests of the same days.", "Import each with --from and --to."
    for name, figures in zip(names, (found.before, found.after), strict=True):
        if figures.days < LEAST_DAYS:
            text = (
                f"{name} has {counted(figures.days, 'day')}; a verdict takes {LEAST_DAYS}, each day of the "
                "week twice."
            )
            yield unlike, text, "Import more of its log."
        if figures.kept_share < _LEAST_KEPT:
            text = (
                f"Only {percent(figures.kept_share)} of the requests of {name} have their like on the other "
                "side."
            )
            yield unlike, text, "Compare the same hours of the same site, or give --route on both imports."
    if found.after.failed_share - found.before.failed_share > _MORE_FAILURES:
        text = (
            f"{percent(found.after.failed_share)} of the requests of {names[1]} failed, "
            f"and {percent(found.before.failed_share)} of those of {names[0]}."
        )
        yield FindingKind.MORE_FAILURES, text, "Find out why."
    finest_us = max(min(run.facts.finest_us for run in side) for side in sides)
    for name in JUDGED:
        times = [side.quantiles_ms[name] for side in (found.before, found.after)]
        if any(ms is not None and ms * 1000 < COARSE * finest_us for ms in times):
            text = (
                f"The durations of a log are multiples of {milliseconds(finest_us / 1000)}, too coarse for a "
                f"{name} as short."
            )
            yield unlike, text, "Write it with finer ones ($request_time of nginx, %D of Apache)."
        if found.ratios[name].estimate is None:
            fewest = count(round(min(found.before.effective, found.after.effective)))
            text = f"No {name} can be given: too few requests (as good as {fewest}), or it is a failure's."
            yield unlike, text, "Import more of the log, or look at its errors."


def _find_cut_tail(names: tuple[str, str], requests: tuple[ServedRequests, ServedRequests]) -> _Found:
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
            text = (
                f"The log of {names[side]} has no request over {milliseconds(top[0] / 1000)}, and as many "
                f"just below it as further down, as if slower ones were not written: {names[other]} has "
                f"{counted(int(beyond), 'request')} beyond."
            )
            yield FindingKind.CUT_TAIL, text, ""


def _find_fewer(
    names: tuple[str, str], requests: tuple[ServedRequests, ServedRequests], kinds: dict[int, str]
) -> _Found:
    """Yield that one side was asked for fewer requests a day, in all by 5 %, or of one kind by half."""
    a_day = [len(side.took_us) / max(len(np.unique(side.day)), 1) for side in requests]
    fewer = int(a_day[1] < a_day[0])
    if max(a_day) > _FEWER * min(a_day):
        text = (
            f"{names[fewer]} has {count(round(a_day[fewer]))} requests a day and {names[not fewer]} "
            f"{count(round(a_day[not fewer]))}: what is missing may be what was slow."
        )
        yield FindingKind.FEWER_REQUESTS, text, "Find out why."
    of_kind = [np.bincount(side.cell % _MOST_ROUTES, minlength=_MOST_ROUTES) for side in requests]
    days = [max(len(np.unique(side.day)), 1) for side in requests]
    for side, other in ((0, 1), (1, 0)):
        few, many = of_kind[side] / days[side], of_kind[other] / days[other]
        for number in np.flatnonzero((of_kind[other] >= _LEAST_OF_KIND) & (few < many / 2)):
            text = (
                f"{names[side]} has {count(round(few[number]))} requests a day of the kind "
                f"{kinds[int(number)]}, and {names[other]} {count(round(many[number]))}. A cache in front "
                "keeps requests from a server's log."
            )
            yield FindingKind.FEWER_REQUESTS, text, ""


def _ratio_text(ratio: float | None) -> str:
    return ABSENT if ratio is None else f"× {ratio:.2f}"
