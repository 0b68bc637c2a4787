"""Measures as figures: order statistics of each. Pure."""

import math

import numpy as np

from plimsoll.analysis.statistics.sample import PERCENTILES, rank
from plimsoll.rundir.events import Measures

_SHOWN = ("p50", "p90", "p99")


def summaries(measures: Measures) -> dict[str, dict[str, object]]:
    """Return what `summary.json` says of each measure; percentiles are order statistics, None of too few."""
    return {
        name: {"unit": measures.units[name], **figures(values)} for name, values in measures.values.items()
    }


def figures(values: list[float]) -> dict[str, float | int | None]:
    """Return count, sum, mean, min, percentiles and max of at least one value. Pure."""
    ordered = np.sort(np.array(values, dtype=np.float64))
    ranks = {name: rank(PERCENTILES[name], len(ordered)) for name in _SHOWN}
    return {
        "count": len(ordered),
        "sum": math.fsum(values),
        "mean": math.fsum(values) / len(values),
        "min": float(ordered[0]),
        **{name: None if at is None else float(ordered[at - 1]) for name, at in ranks.items()},
        "max": float(ordered[-1]),
    }
