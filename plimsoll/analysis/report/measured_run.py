"""A run directory and what was measured from it: what the page's sections are made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

from plimsoll.analysis.evidence.checks import run_findings
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.host_rows import HostCounters, counters_of
from plimsoll.analysis.evidence.poolwork import PoolWork, pool_work
from plimsoll.analysis.evidence.run import DetailedRun
from plimsoll.analysis.page.chart import RUN_COLOURS, colour_of
from plimsoll.analysis.statistics.measures import (
    MS_OF,
    FailedValue,
    Failures,
    failures_in,
    failures_of,
    measures_by_phase,
    percentile_with,
    summaries,
)
from plimsoll.analysis.statistics.percentiles import rank
from plimsoll.analysis.statistics.requests import timeout_us
from plimsoll.analysis.statistics.windows import PHASES
from plimsoll.common.hostile import is_figure
from plimsoll.common.units import counted
from plimsoll.rundir.events import Event, Measures, Span, spans

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

        For anything but a time, a failure gives no bound, and the median is that of the values.
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
    """All measures of a run by name (hostile), in order of time; `damaged` have invalid values."""

    values: dict[str, Values]
    damaged: list[str]


def measured(
    events: Iterable[Event], failures: Failures | None = None, units: Mapping[str, str] = _MS
) -> MeasuredValues:
    """Collect what `events` measured. A value that is not a number, or of a second unit, is damaged.

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


@dataclass(frozen=True, eq=False)
class ReportRun(DetailedRun):
    """One run of a report; `number` counts from 0.

    `shade` is the number of its colour, from 0: that of its backend. `among_scenarios` says that the report
    has several, so that its label has to tell which one this is.
    """

    number: int = 0
    shade: int = 0
    among_scenarios: bool = False

    @classmethod
    def of(
        cls, run: DetailedRun, number: int, shade: int | None = None, among_scenarios: bool = False
    ) -> "ReportRun":
        """Make `run` the one of that number; its colour is that of its number, if `shade` says no other."""
        measured = {each.name: getattr(run, each.name) for each in fields(run)}
        return cls(
            **measured,
            number=number,
            shade=number if shade is None else shade,
            among_scenarios=among_scenarios,
        )

    @property
    def label(self) -> str:
        """What it is called on this page (hostile)."""
        return (f"{self.scenario}, " if self.among_scenarios else "") + self.directory.name

    @property
    def backend(self) -> str:
        """The backend that it ran on (hostile); a run without one is its own."""
        return self.directory.facts.backend or self.directory.name

    @property
    def status(self) -> str:
        """`running`, `complete`, `interrupted` or `failed`."""
        return self.directory.status

    @property
    def colour(self) -> int:
        """The number of its colour, from 1."""
        return self.shade % RUN_COLOURS + 1

    @property
    def chart_colour(self) -> str:
        """The same colour, as plotly takes it."""
        return colour_of(self.shade)

    @cached_property
    def spans(self) -> list[Span]:
        """What happened meanwhile."""
        return spans(self.directory.events, self.elapsed_s)

    @property
    def paced_by(self) -> str:
        """What made requests due: `the log`, `the rate`, or, in a closed loop, nothing ("")."""
        if self.directory.facts.loop == "closed":
            return ""
        return "the rate" if (self.directory.facts.speed or "").startswith("rate") else "the log"

    @cached_property
    def measures(self) -> dict[str, dict[str, object]]:
        """The figures that are not of single requests, by name (hostile), as summary.json has them."""
        return summaries(Measures.of(self.directory.events))

    @cached_property
    def measures_by_phase(self) -> dict[str, dict[str, dict[str, object]]]:
        """The same by phase; none where nothing kept its disks busy."""
        found = measures_by_phase(self.directory.events, self.saturation)
        return {phase: summaries(Measures.of(events)) for phase, events in found.items()}

    @cached_property
    def values(self) -> MeasuredValues:
        """The same figures, value by value."""
        return measured(self.directory.events, self.failed_measures)

    @cached_property
    def failed_measures(self) -> Failures:
        """Of each measure (hostile) what there would be more of, had no iteration failed."""
        return failures_of(self.directory.events, timeout_us(self.directory.facts))

    @cached_property
    def phase_values(self) -> dict[str, MeasuredValues]:
        """The same by phase, those without any left out; none where nothing kept its disks busy."""
        found = measures_by_phase(self.directory.events, self.saturation)
        failed = {
            phase: failures
            for phase in (PHASES if self.saturation else ())
            if (failures := failures_in(self.failed_measures, phase, self.saturation))
        }
        units = {name: one.unit for name, one in self.values.values.items()}
        return {
            phase: measured(found.get(phase, []), failed.get(phase), units)
            for phase in PHASES
            if phase in found or phase in failed
        }

    @cached_property
    def host(self) -> HostCounters:
        """What the observers counted meanwhile."""
        return counters_of(self.directory)

    @cached_property
    def pool_work(self) -> PoolWork:
        """What the pools under it did meanwhile, without reading host.csv again."""
        return pool_work(self.directory, self.host.samples.columns)

    @property
    def elapsed_s(self) -> float:
        """Seconds that the run took: to the end of its last request."""
        return self.statistics.duration_s

    @cached_property
    def findings(self) -> list[Finding]:
        """What is wrong with it as evidence."""
        return list(run_findings(self))

    @property
    def generator_limited(self) -> bool:
        """True where run.json says so, or the records do: of a killed run only they can."""
        return any(finding.kind is FindingKind.GENERATOR_LIMITED for finding in self.findings)

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints of the run."""
        facts = self.directory.facts
        return {
            "name": self.label,
            "scenario": facts.scenario,
            "backend": facts.backend,
            "repeat": facts.repeat,
            "status": self.status,
            "killed": self.directory.killed,
            "generator_limited": self.generator_limited,
            **self.statistics.as_json(),
            "measures": self.measures,
            "measures_by_phase": self.measures_by_phase,
            "measures_failed": {name: len(failed) for name, failed in self.failed_measures.items()},
        }

    def one_line(self) -> str:
        """Return the headline in one line (hostile)."""
        response = self.statistics.samples["response"].figures()
        shown = ", ".join(f"{name} {response.shown(name)}" for name in ("p50", "p99", "p99.9", "max"))
        failed = f", {self.statistics.failures:,} failed" if self.statistics.failures else ""
        return f"{self.label}: {self.status}, {counted(self.statistics.requests, 'request')}{failed}, {shown}"
