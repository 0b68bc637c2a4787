"""The measures of a run beside its requests, value by value, damaged ones apart."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from plimsoll.analysis.statistics.failedmeasures import MS_OF, FailedValue, Failures, percentile_with
from plimsoll.analysis.statistics.sample import rank
from plimsoll.common.hostile import is_figure
from plimsoll.rundir.events import Event

_MS: Mapping[str, str] = {}
_P75 = 750_000  # parts in a million


@dataclass
class Values:
    """One measure: its unit (hostile), its values in order of time, and those whose iteration failed."""

    unit: str
    values: list[float] = field(default_factory=list)
    failed: list[FailedValue] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median of the values by nearest rank; of one value, that."""
        return self._at(500_000)

    @property
    def middle(self) -> tuple[float | None, float | None]:
        """The median with the failures, and where that is one of them, None and the least that it can be.

        Of what is no time, a failure is no bound, and the median is that of the values.
        """
        return self.at(500_000)

    def at(self, ppm: int) -> tuple[float | None, float | None]:
        """Return the same of percentile q = `ppm`/10⁶."""
        each_ms = MS_OF.get(self.unit)
        least = [one.least_ms / each_ms for one in self.failed] if each_ms else []
        return percentile_with(self.values, least, ppm) if self.values or least else (None, None)

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


def measured(
    events: Iterable[Event], failures: Failures | None = None, units: Mapping[str, str] = _MS
) -> MeasuredValues:
    """Collect what `events` measured. A value that is no figure, or of a second unit, is damaged.

    `failures` are those of the same time, `units` the units of what was measured at another.
    """
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
    for name, failed in (failures or {}).items():
        found.setdefault(name, Values(units.get(name, "ms"))).failed = failed
    return MeasuredValues(found, list(damaged))
