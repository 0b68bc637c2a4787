"""When it stalled: what the host was otherwise in the slowest windows than in the quiet ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from plimsoll.analysis.report.backends import BackendRuns, ScenarioRuns
from plimsoll.analysis.report.host_rows import HostRow
from plimsoll.analysis.report.host_series import Floats
from plimsoll.analysis.report.stall_windows import RunWindows, badness, windows_of
from plimsoll.analysis.statistics.coincidence import (
    FEWEST_SLOW,
    Aligned,
    Coincidence,
    coincidences,
    least_p,
    nice_below,
    slow_limit_ms,
)

ALPHA = 0.03  # at most in so many backends whose slow windows have nothing to do with it something stands out
_CLEAR = 0.7  # of superiority; a source that is less is no help even where it is no chance
_FEWEST_NEAR = 0.5  # of the slow windows are near to it
_TIMES_AS_OFTEN = 2.0  # as of the others
_CHANGED = 1.2  # times as much as usual, of what is worse when it is high
_ALIKE = 0.1  # of superiority: between such sources the deeper one is named first


@dataclass(frozen=True)
class Sign:
    """One source of a backend: what it was in slow windows against its own usual.

    `usual`, `slow` and `slowest` are medians over the quiet and the slow windows and the value in the slowest
    one, in the row's unit. It is near where it is beyond `limit`: so in these shares of the windows.
    """

    row: HostRow
    found: Coincidence
    usual: float
    slow: float
    slowest: float | None
    limit: float
    near_slow: float
    near_quiet: float
    stands_out: bool = False

    @property
    def superiority(self) -> float:
        """The share of pairs of windows in which it is worse in the slow one."""
        return self.found.superiority

    @property
    def is_worth_a_word(self) -> bool:
        """True where it is far from its usual, and in most of the slow windows, were it no chance."""
        return (
            self.superiority >= _CLEAR
            and self.near_slow >= max(_FEWEST_NEAR, _TIMES_AS_OFTEN * self.near_quiet)
            and self._is_much
        )

    @property
    def _is_much(self) -> bool:
        if self.row.bad == "low":
            return self.slow < self.usual * (1 - self.row.quiet)
        if self.row.moves:
            return self.slow > self.usual * (1 + self.row.quiet)
        level = max(self.slow, self.limit)
        return level > self.row.quiet and level >= _CHANGED * self.usual


@dataclass(frozen=True)
class BackendStalls:
    """The slow windows of one backend, of at least `limit_ms` (None: there are none), and all its sources.

    `slow` of `windows` with requests are slow. `signs` are ranked, those that stand out first. `too_few`: so
    few windows cannot be told from chance.
    """

    backend: BackendRuns
    limit_ms: float | None
    slow: int
    windows: int
    signs: list[Sign]
    too_few: bool = False

    @cached_property
    def standing_out(self) -> list[Sign]:
        """The sources that stand out, what is named first first."""
        return [sign for sign in self.signs if sign.stands_out]


def stalls_of(scenario: ScenarioRuns) -> list[BackendStalls]:
    """Return the stalls of every backend that a figure shows, of those whose hosts were observed."""
    found = (
        stalls_in(backend, [windows_of(run) for run in backend.runs]) for backend in scenario.few.backends
    )
    return [each for each in found if each]


def stalls_in(backend: BackendRuns, runs: Sequence[RunWindows]) -> BackendStalls | None:
    """Return the stalls of a backend's runs; None where no source of their hosts is known. Pure."""
    if not any(row.column for run in runs for row in run.sources):
        return None
    every = np.concatenate([run.slowest_ms[~np.isnan(run.slowest_ms)] for run in runs])
    limit_ms = slow_limit_ms(every)
    slow = 0 if limit_ms is None else int((every >= limit_ms).sum())
    if limit_ms is None or slow < FEWEST_SLOW:
        return BackendStalls(backend, None, 0, len(every), [])
    aligned = [_aligned(run, limit_ms) for run in runs]
    found = coincidences(aligned)
    signs = [_sign(row, each, runs, aligned) for row, each in found.items()]
    return BackendStalls(
        backend, limit_ms, slow, len(every), _ranked(_judged(signs)), least_p(aligned) > ALPHA
    )


def _aligned(run: RunWindows, limit_ms: float) -> Aligned[HostRow]:
    known = ~np.isnan(run.slowest_ms)
    slow = known & (np.where(known, run.slowest_ms, 0.0) >= limit_ms)
    worse: Mapping[HostRow, Floats] = {row: badness(row, values) for row, values in run.sources.items()}
    return Aligned(slow, known & ~slow, worse)


def _sign(
    row: HostRow, found: Coincidence, runs: Sequence[RunWindows], aligned: Sequence[Aligned[HostRow]]
) -> Sign:
    having = [(run, each) for run, each in zip(runs, aligned, strict=True) if row in each.sources]
    slow = np.concatenate([_known(run.sources[row][each.slow]) for run, each in having])
    quiet = np.concatenate([_known(run.sources[row][each.quiet]) for run, each in having])
    limit = _limit(row, slow, quiet)
    near_slow, near_quiet = (
        float((badness(row, each) >= badness(row, np.array(limit))).mean()) if len(each) else 0.0
        for each in (slow, quiet)
    )
    return Sign(
        row=row,
        found=found,
        usual=float(np.median(quiet)) if len(quiet) else 0.0,
        slow=float(np.median(slow)) if len(slow) else 0.0,
        slowest=_slowest(row, having),
        limit=limit,
        near_slow=near_slow,
        near_quiet=near_quiet,
    )


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _slowest(row: HostRow, having: Sequence[tuple[RunWindows, Aligned[HostRow]]]) -> float | None:
    """Return what a source was in the slowest window of all, None where nobody knows."""
    run = max((run for run, _ in having), key=lambda run: float(np.nanmax(run.slowest_ms, initial=0.0)))
    value = float(run.sources[row][int(np.nanargmax(run.slowest_ms))])
    return None if np.isnan(value) else value


def _limit(row: HostRow, slow: Floats, quiet: Floats) -> float:
    """Return the figure, one that people can read, that best tells slow windows from quiet ones."""
    every = np.concatenate([slow, quiet])
    if row.on_off or not len(slow) or not len(quiet) or not (every > 0).any():
        return 1.0
    quantiles = np.quantile(every[every > 0], np.linspace(0, 1, 41))
    limits = sorted({nice_below(value) for value in quantiles.tolist()})
    worse_slow, worse_quiet = badness(row, slow), badness(row, quiet)

    def told(limit: float) -> float:
        at = badness(row, np.array(limit))
        return float((worse_slow >= at).mean() - (worse_quiet >= at).mean())

    return max(limits, key=told)


def _judged(signs: Sequence[Sign]) -> list[Sign]:
    """Return the signs, and which stand out.

    Something has to be more than chance does to any source at all. Then whatever is about as far from its
    usual stands beside it, where chance would hardly do that to it alone: a scan that is on or off has ties,
    and less of a statistic than the disk that it keeps busy.
    """
    firm = [sign for sign in signs if sign.is_worth_a_word and sign.found.p <= ALPHA]
    if not firm:
        return list(signs)
    least = max(sign.superiority for sign in firm) - _ALIKE
    return [
        replace(sign, stands_out=True)
        if sign in firm or (sign.is_worth_a_word and sign.found.own_p <= ALPHA and sign.superiority >= least)
        else sign
        for sign in signs
    ]


def _ranked(signs: Sequence[Sign]) -> list[Sign]:
    """Return the signs, the farthest from its usual first; of those about as far, the deepest first.

    Of one depth they stay in the order in which they came, that of the registry. What does not stand out
    comes last.
    """
    left = [sign for sign in signs if sign.stands_out]
    ranked: list[Sign] = []
    while left:
        least = max(sign.superiority for sign in left) - _ALIKE
        ranked += sorted(
            (sign for sign in left if sign.superiority >= least), key=lambda sign: sign.row.depth
        )
        left = [sign for sign in left if sign.superiority < least]
    rest = [sign for sign in signs if not sign.stands_out]
    return [*ranked, *sorted(rest, key=lambda sign: -sign.superiority)]
