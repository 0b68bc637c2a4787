"""The few backends that figures show of many: with over eight, as factors make them, none could be read."""

import math
from collections.abc import Mapping, Sequence
from statistics import median

from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.statistics.figures import TimeFigures

MANY, FEW = 8, 5  # beyond the first, figures show so many at once
_RANKS = ("p99.9", "p99", "p50", "max")


def in_order(runs: Mapping[str, Sequence[MeasuredRun]]) -> list[str]:
    """Return the keys of `runs`, by backend: as they came; of many, those first that figures are to show.

    Those are the base, the two fastest and the two slowest. So each of them has a colour of its own. The base
    has the first level of each factor, or came first.
    """
    keys = list(runs)
    if len(keys) <= MANY:
        return keys
    levels = {key: _level(each, ranked_by(runs)) for key, each in runs.items()}
    base = next((key for key in keys if _has_first_levels(runs[key][0])), keys[0])
    others = sorted((key for key in keys if key != base), key=lambda key: levels[key])
    shown = [base, *others[:2], *others[-2:]]
    return [*shown, *(key for key in keys if key not in shown)]


def ranked_by(runs: Mapping[str, Sequence[MeasuredRun]]) -> str:
    """Return the highest percentile that all runs have, of all the time that they took."""
    every = [run.statistics.samples["response"].figures() for each in runs.values() for run in each]
    return next(
        name for name in _RANKS if name == _RANKS[-1] or all(_has(figures, name) for figures in every)
    )


def _has_first_levels(run: MeasuredRun) -> bool:
    facts = run.directory.facts
    levels = facts.experiment.levels if facts.experiment else None
    if not levels or not facts.factors:
        return False
    return all(each and facts.factors.get(factor) == each[0] for factor, each in levels.items())


def _has(figures: TimeFigures, name: str) -> bool:
    return figures[name] is not None or name in figures.censored


def _level(runs: Sequence[MeasuredRun], name: str) -> float:
    least = [run.statistics.samples["response"].figures().least_ms(name) for run in runs]
    return median(math.inf if one is None else one for one in least)
