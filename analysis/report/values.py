"""The measures of a run beside its requests, value by value, damaged ones apart."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from analysis.statistics.sample import rank
from plimsoll.common.figure import is_figure
from plimsoll.rundir.events import Event

_P75 = 750_000  # parts in a million


@dataclass
class Values:
    """One measure: its unit (hostile), and its values in order of time."""

    unit: str
    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median by nearest rank; of one value, that."""
        return self._at(500_000)

    @property
    def p75(self) -> float | None:
        """The value that a quarter exceed, by nearest rank; None of fewer than four."""
        return None if len(self.values) < 4 else self._at(_P75)

    def _at(self, ppm: int) -> float:
        return sorted(self.values)[(rank(ppm, len(self.values)) or 1) - 1]


@dataclass(frozen=True)
class MeasuredValues:
    """All measures of a run by name (hostile), in order of time; `damaged` have values that are none."""

    values: dict[str, Values]
    damaged: list[str]


def measured(events: Iterable[Event]) -> MeasuredValues:
    """Collect what `events` measured. A value that is no figure, or of a second unit, is damaged."""
    found: dict[str, Values] = {}
    damaged: dict[str, None] = {}
    for event in events:
        if event.name != "measure":
            continue
        name, value, unit = (event.further.get(key) for key in ("name", "value", "unit"))
        if not isinstance(name, str) or not isinstance(unit, str):
            damaged[str(name)] = None
        elif not is_figure(value) or found.setdefault(name, Values(unit)).unit != unit:
            damaged[name] = None
        else:
            found[name].values.append(float(value))
    return MeasuredValues(found, list(damaged))
