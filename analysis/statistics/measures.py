"""Figures that are no single request, such as an image that is ready or a phase of an upgrade."""

import math
from collections.abc import Iterable

import numpy as np

from analysis.events import Event
from analysis.statistics.sample import PERCENTILES, rank

_SHOWN = ("p50", "p90", "p99")


class Measures:
    """Collects values by name, as they are measured."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}
        self._units: dict[str, str] = {}

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Measures":
        """Collect what `events` hold; an event that is no measure, or a damaged one, is left out."""
        found = cls()
        for event in events:
            name, value, unit = (event.further.get(key) for key in ("name", "value", "unit"))
            if event.name != "measure" or isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if isinstance(name, str) and isinstance(unit, str):
                try:
                    found.add(name, value, unit)
                except ValueError:
                    continue
        return found

    def add(self, name: str, value: float, unit: str) -> None:
        """Add one value. Raises ValueError for NaN and infinities, and for a second unit under one name."""
        if not math.isfinite(value):
            raise ValueError(f"measure {name}: {value} is no figure")
        if self._units.setdefault(name, unit) != unit:
            raise ValueError(f"measure {name}: {unit} after {self._units[name]}")
        self._values.setdefault(name, []).append(float(value))

    def summary(self) -> dict[str, dict[str, object]]:
        """Return what `summary.json` says of each; percentiles are order statistics, None of too few."""
        return {name: {"unit": self._units[name], **figures(values)} for name, values in self._values.items()}


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
