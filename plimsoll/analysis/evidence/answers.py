"""Whether both sides answered alike and as the log has it, and how often measures failed. Pure."""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.statistics.routes import RouteAnswers
from plimsoll.common.units import counted, percent, significant
from plimsoll.rundir.records import SERVED

_APART = 0.01  # shares of all requests of a scenario
_APART_ROUTE = 0.05  # shares of the requests of one route
_LEAST_REQUESTS = 50  # a side, for a route to be looked at by itself
_OTHER_SIZE = 1.25  # geometric means of body sizes: pages vary
_MANY = 0.10
_MOST_NAMED = 3
_MANY_FAILED = 0.01  # of the tries of a measure
_MOST_SIDES = 4
_HITS_APART = 0.02  # of all answers
_NAMED = 0.5  # of the answers of each run name a cache, where there is one in front of all

_OF_CANDIDATE = (FindingKind.MORE_FAILURES, FindingKind.EMPTY_ANSWERS)

Routes = dict[str, RouteAnswers]


def log_findings(runs: Sequence[MeasuredRun], side: str, scenario: str) -> Iterator[Finding]:
    """Yield how far the answers of one side's runs are from what the log has."""
    total, names = _sum_answers(_sum_routes(runs)), tuple(run.name for run in runs)
    if not total.requests:
        return  # all were warm-up, or nothing was observed
    strange = total.wrong + total.emptied
    share = strange / total.requests
    if share > _APART:
        kind = FindingKind.NOT_AS_LOGGED if share > _MANY else FindingKind.PARTLY_AS_LOGGED
        text = (
            f"{scenario}: {percent(share)} of the answers of {side} are not what the log has: another "
            "status, or no body."
        )
        yield Finding(kind, text, names, scenario)
    if total.odd_sizes > _APART * total.requests:
        text = (
            f"{scenario}: {percent(total.odd_sizes / total.requests)} of the answers of {side} have another "
            "size than the log has."
        )
        yield Finding(FindingKind.OTHER_SIZES, text, names, scenario)


def side_findings(
    baseline: Sequence[MeasuredRun],
    candidate: Sequence[MeasuredRun],
    called: tuple[str, str],
    scenario: str,
) -> Iterator[Finding]:
    """Yield how the answers of the candidate's runs differ from those of the baseline's, route by route.

    `called` are the names of both sides (hostile).
    """
    first, second = _sum_routes(baseline), _sum_routes(candidate)
    if not first or not second:
        return
    names = tuple(run.name for run in candidate)
    failed, bare = "failed", "came back without a body"
    for kind, apart, words, worse in (
        (FindingKind.MORE_FAILURES, _find_more(first, second, _failed_share, True), failed, True),
        (FindingKind.FEWER_FAILURES, _find_more(second, first, _failed_share, True), failed, False),
        (FindingKind.EMPTY_ANSWERS, _find_more(first, second, _empty_share), bare, True),
        (FindingKind.OTHER_ANSWERS, _find_more(second, first, _empty_share), bare, False),
    ):
        if apart:
            where, shares = apart
            of_first, of_second = shares if kind in _OF_CANDIDATE else shares[::-1]
            text = (
                f"{scenario}: {percent(of_second)} of the requests{where} {words} ({called[1]}), and "
                f"{percent(of_first)} ({called[0]})."
            )
            yield Finding(kind, text, names, scenario, worse=worse)
    for text in (*_find_other_classes(first, second, called), *_find_other_sizes(first, second, called)):
        yield Finding(FindingKind.OTHER_ANSWERS, f"{scenario}: {text}", names, scenario)


def wrong_share(run: MeasuredRun) -> float | None:
    """Return the share of a run's requests that failed, or were answered otherwise than the log has it."""
    total = run.all_answers
    return (total.failures + total.wrong + total.emptied) / total.requests if total.requests else None


def find_odd_answers(
    sides: tuple[Sequence[MeasuredRun], Sequence[MeasuredRun]],
    names: tuple[str, str],
    scenario: str,
    passed_over: float,
) -> tuple[Finding | None, bool]:
    """Return that a side answers otherwise than the log where a percentile looks away, and if it is the 2nd.

    A slow request that is redirected, cut short or answered by an error page with status 200 is fast, and no
    failure. So where more are than half of what a percentile passes over, and each run of one side has over
    twice as many as any of the other, what is slow may hide behind them. Both rules hold beside each other:
    sizes of pages that vary by themselves vary as much on both sides.
    """
    shares = [[share for run in side if (share := _odd_share(run)) is not None] for side in sides]
    if not all(shares):
        return None, False
    few, many = sorted(shares, key=max)
    if fmean(many) - fmean(few) <= min(passed_over / 2, _APART) or min(many) <= 2 * max(few):
        return None, False
    of_second = many is shares[1]
    text = (
        f"{scenario}: {percent(fmean(many))} of the answers of {names[of_second]} are not what the log has "
        f"(status, size), and {percent(fmean(few))} of those of {names[not of_second]}: slow ones may be "
        "among them."
    )
    runs = tuple(run.name for run in sides[of_second])
    return Finding(FindingKind.ODD_ANSWERS, text, runs, scenario), of_second


def _odd_share(run: MeasuredRun) -> float | None:
    total = run.all_answers
    return (total.wrong + max(total.odd_sizes, total.emptied)) / total.requests if total.judged else None


_Apart = tuple[str, tuple[float, float]] | None


def _find_more(
    first: Routes, second: Routes, share: Callable[[RouteAnswers], float], as_they_came: bool = False
) -> _Apart:
    """Return where the share is greater in `second`, in all or in one route, and both shares.

    `as_they_came`: in all requests, whatever their mix: what fails again and again is felt each time.
    """
    if as_they_came:
        one, other = share(_sum_answers(first)), share(_sum_answers(second))
    else:
        one, other = _share_over_one_mix(first, second, share, lambda answers: answers.requests)
    if other - one > _APART:
        return "", (one, other)
    for name in _common_routes(first, second):
        one, other = share(first[name]), share(second[name])
        if other - one > _APART_ROUTE:
            return f" of {name}", (one, other)
    return None


def _failed_share(answers: RouteAnswers) -> float:
    return answers.failures / answers.requests if answers.requests else 0.0


def _empty_share(answers: RouteAnswers) -> float:
    return answers.empty / answers.requests if answers.requests else 0.0


_Share = TypeVar("_Share", float, NDArray[np.float64])


def _share_over_one_mix(
    first: Routes,
    second: Routes,
    share: Callable[[RouteAnswers], _Share],
    size: Callable[[RouteAnswers], int],
) -> tuple[_Share, _Share]:
    """Return both sides' shares over the mix of routes that they have together (direct standardisation).

    A scripted run makes as many requests of each kind as its disk lets it. Without this, a slow disk, whose
    images are waited for, would differ from a fast one in every share that differs from route to route. The
    routes of one side only are one more route; a side that has none of those is there as a whole.
    """
    both = [name for name in first if name in second]
    pairs = [(first[name], second[name]) for name in both]
    pairs.append((_sum_answers(_omit_routes(first, both)), _sum_answers(_omit_routes(second, both))))
    weights = [size(one) + size(other) for one, other in pairs]
    whole = (_sum_answers(first), _sum_answers(second))
    if not any(weights):
        return share(whole[0]), share(whole[1])

    def mixed(side: int) -> Any:
        each = [share(pair[side] if size(pair[side]) else whole[side]) for pair in pairs]
        return np.average(each, axis=0, weights=weights)

    return mixed(0), mixed(1)


def _omit_routes(routes: Routes, names: Sequence[str]) -> Routes:
    return {name: answers for name, answers in routes.items() if name not in names}


def _find_other_classes(first: Routes, second: Routes, called: tuple[str, str]) -> Iterator[str]:
    """Yield where other status classes came among the answers that did not fail."""
    places = {"": _distance(first, second)}
    places |= {
        f" of {name}": _distance({name: first[name]}, {name: second[name]})
        for name in _common_routes(first, second)
    }
    for where, apart in places.items():
        if apart > (_APART_ROUTE if where else _APART):
            yield (
                f"{percent(apart)} of the answers{where} of {called[1]} have another status class than "
                f"those of {called[0]}."
            )
            return


def _distance(first: Routes, second: Routes) -> float:
    def whole(answers: RouteAnswers) -> int:
        return int(answers.kinds[1:5].sum())

    def shares(answers: RouteAnswers) -> NDArray[np.float64]:
        return answers.kinds[1:5] / max(whole(answers), 1)

    if not whole(_sum_answers(first)) or not whole(_sum_answers(second)):
        return 0.0
    one, other = _share_over_one_mix(first, second, shares, whole)
    return float(np.abs(one - other).sum() / 2)


def _find_other_sizes(first: Routes, second: Routes, called: tuple[str, str]) -> Iterator[str]:
    strange = []
    for name in _common_routes(first, second):
        one, other = first[name], second[name]
        if min(one.bodies, other.bodies) < _LEAST_REQUESTS:
            continue
        ratio = math.exp(other.log_bytes / other.bodies - one.log_bytes / one.bodies)
        if max(ratio, 1 / ratio) > _OTHER_SIZE:
            strange.append(f"{name} × {significant(ratio)}")
    if strange:
        shown = ", ".join(strange[:_MOST_NAMED])
        yield f"the bodies of {called[1]} have other sizes than those of {called[0]}: {shown}."


def _sum_routes(runs: Sequence[MeasuredRun]) -> Routes:
    found: Routes = {}
    for run in runs:
        for name, answers in run.answers.items():
            found.setdefault(name, RouteAnswers()).add(answers)
    return found


def _sum_answers(routes: Routes) -> RouteAnswers:
    whole = RouteAnswers()
    for answers in routes.values():
        whole.add(answers)
    return whole


def _common_routes(first: Routes, second: Routes) -> list[str]:
    return [
        name
        for name, answers in first.items()
        if name in second and min(answers.requests, second[name].requests) >= _LEAST_REQUESTS
    ]


def cache_findings(
    sides: Sequence[Sequence[MeasuredRun]], names: Sequence[str], scenario: str
) -> Iterator[Finding]:
    """Yield that caches gave more of the answers of some runs, by the answers' own headers.

    A side stands apart from the first where each of its runs has a greater share of hits than each of the
    other: runs of one log meet one cache nearly alike, while a cold start, or another part of the log, moves
    the runs of both sides. Over 10 % of all answers, the times are the cache's and not the storage's; over
    2 % they may be. So they are where some runs of a side met no cache. `names` are hostile.
    """
    runs = tuple(run.name for side in sides for run in side)
    met = [_Caches.of(name, side) for name, side in zip(names, sides, strict=True)]
    for each in met:
        if each.hits and min(each.hits) < _APART and max(each.hits) - min(each.hits) > _MANY:
            shares = f"{percent(min(each.hits))} to {percent(max(each.hits))}"
            text = f"{scenario}: caches gave {shares} of a run's answers on {each.name}."
            yield Finding(FindingKind.CACHE_IN_FRONT, text, runs, scenario)
            return
    for other in met[1:]:
        if not met[0].hits or not other.hits:
            continue
        few, many = sorted((met[0], other), key=lambda each: median(each.hits))
        low, high = median(few.hits), median(many.hits)
        if high - low > _HITS_APART and max(few.hits) < min(many.hits):
            kind = FindingKind.CACHE_IN_FRONT if high - low > _MANY else FindingKind.OTHER_CACHE_HITS
            shares = (
                f"{percent(high)} of the answers of {many.name}, and {percent(low)} of those of {few.name}"
            )
            yield Finding(kind, f"{scenario}: caches gave {shares}.", runs, scenario)
        elif any(few.named) != any(many.named) and max(min(few.named), min(many.named)) > _NAMED:
            behind, bare = (many, few) if any(many.named) else (few, many)
            text = f"{scenario}: answers of {behind.name} came through a cache, those of {bare.name} did not."
            yield Finding(FindingKind.OTHER_CACHE_HITS, text, runs, scenario)


class _Caches(NamedTuple):
    """Which shares of the answers of each run of a side caches gave, and which share names a cache at all."""

    name: str
    hits: list[float]
    named: list[float]

    @classmethod
    def of(cls, name: str, runs: Sequence[MeasuredRun]) -> "_Caches":
        """Return those of the runs that have enough answers."""
        counts = [run.served for run in runs if sum(run.served) >= _LEAST_REQUESTS]
        hit, unknown = SERVED.index("hit"), SERVED.index("unknown")
        return cls(
            name,
            [each[hit] / sum(each) for each in counts],
            [1 - each[unknown] / sum(each) for each in counts],
        )


class Tries(NamedTuple):
    """How often a measure was tried on one side, and how often its iteration failed."""

    side: str
    tries: int
    failed: int

    @property
    def share(self) -> float:
        """The share that failed."""
        return self.failed / self.tries if self.tries else 0.0

    @property
    def is_many(self) -> bool:
        """Whether so many failed that its figures say too little."""
        return self.share > _MANY_FAILED


def measure_finding(
    scenario: str, measure: str, when: str, sides: Sequence[Tries], runs: tuple[str, ...] = ()
) -> Finding | None:
    """Return what is to be known of a measure (hostile) that failed; None where that is little.

    `when` names the phase: `during the saturator`.
    """
    if not any(side.is_many for side in sides):
        return None
    failing = sorted((side for side in sides if side.failed), key=lambda side: -side.share)
    well = [side for side in sides if not side.failed]
    named = [*failing[:_MOST_SIDES], *(well if len(well) == 1 else [])]
    more = [f"fewer on {len(failing) - _MOST_SIDES} more"] if len(failing) > _MOST_SIDES else []
    rest = [f"none on the {len(well)} others"] if len(well) > 1 else []
    how_often = "; ".join([*map(_describe_tries, named), *more, *rest])
    shares = [side.share for side in sides]
    is_apart = max(shares) - min(shares) > _MANY_FAILED
    text = (
        f"{scenario}: “{measure}” failed {when}: {how_often}."
        f"{' A side that fails more is never the faster one.' if is_apart else ''}"
        " Failures count as at least their time-out, and a median looks past those that are fewer than half."
    )
    return Finding(FindingKind.FAILED_MEASURES, text, runs, scenario)


def _describe_tries(side: Tries) -> str:
    if not side.failed:
        return f"none of {counted(side.tries, 'try', 'tries')} on {side.side}"
    share = significant(100 * side.share, 2)
    return f"{side.failed:,} of {counted(side.tries, 'try', 'tries')} on {side.side} ({share} %)"
