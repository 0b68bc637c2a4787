"""Figures that are no single request, such as an image that is ready or a phase of an upgrade."""

from collections.abc import Iterable

from plimsoll.common.hostile import is_figure
from plimsoll.rundir.events import Event


class Measures:
    """Collects values by name, as they are measured: `values` and `units` by name."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = {}
        self.units: dict[str, str] = {}

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Measures":
        """Collect what `events` hold; an event that is no measure, or a damaged one, is left out."""
        found = cls()
        for event in events:
            name, value, unit = (event.further.get(key) for key in ("name", "value", "unit"))
            if event.name != "measure" or not is_figure(value):
                continue
            if isinstance(name, str) and isinstance(unit, str):
                try:
                    found.add(name, value, unit)
                except ValueError:
                    continue
        return found

    def add(self, name: str, value: float, unit: str) -> None:
        """Add one value. Raises ValueError for what is no figure, and for a second unit under one name."""
        if not is_figure(value):
            raise ValueError(f"measure {name}: {value} is no figure")
        if self.units.setdefault(name, unit) != unit:
            raise ValueError(f"measure {name}: {unit} after {self.units[name]}")
        self.values.setdefault(name, []).append(float(value))
