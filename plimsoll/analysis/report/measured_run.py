"""A run directory and what was measured from it: what the page's sections are made of."""

from dataclasses import dataclass, field
from functools import cached_property

from plimsoll.analysis.charts.style import Run
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import JUDGED, Observation, RunEvidence, run_findings
from plimsoll.analysis.page.chart import RUN_COLOURS
from plimsoll.analysis.report.host_counters import HostCounters, counters_of
from plimsoll.analysis.report.values import MeasuredValues, measured
from plimsoll.analysis.statistics.failedmeasures import Failures, failures_in, failures_of
from plimsoll.analysis.statistics.failures import timeout_us
from plimsoll.analysis.statistics.measurephases import measures_by_phase
from plimsoll.analysis.statistics.measures import summaries
from plimsoll.analysis.statistics.phases import PHASES
from plimsoll.analysis.statistics.run import RunFigures
from plimsoll.common.units import counted
from plimsoll.rundir.directory import RunDirectory
from plimsoll.rundir.events import Saturation, saturation, spans
from plimsoll.rundir.measures import Measures


@dataclass(frozen=True)
class MeasuredRun:
    """One run of a report; `number` counts from 0.

    `shade` is the number of its colour, from 0: that of its backend. `among_scenarios` says that the report
    has several, so that its name has to tell which one this is.
    """

    directory: RunDirectory
    statistics: RunFigures
    number: int
    shade: int | None = None
    among_scenarios: bool = False
    observation: Observation = field(default_factory=Observation)

    @property
    def name(self) -> str:
        """The run's name (hostile)."""
        which = f"{self.directory.facts.scenario}, " if self.among_scenarios else ""
        return which + self.directory.name

    @property
    def backend(self) -> str:
        """The backend that it ran on (hostile); a run without one is its own."""
        return self.directory.facts.backend or self.directory.name

    @property
    def emulated(self) -> str | None:
        """The storage that its own imitated (hostile); None for storage that is what it is called."""
        storage = self.directory.facts.storage
        return storage.emulated if storage else None

    @cached_property
    def saturation(self) -> Saturation | None:
        """The saturator that kept its disks busy, if there was one."""
        return saturation(self.directory.events)

    @property
    def status(self) -> str:
        """`running`, `complete`, `interrupted` or `failed`."""
        return self.directory.status

    @property
    def colour(self) -> int:
        """The number of its colour, from 1."""
        return (self.number if self.shade is None else self.shade) % RUN_COLOURS + 1

    @cached_property
    def measures(self) -> dict[str, dict[str, object]]:
        """The figures that are no single request, by name (hostile), as summary.json has them."""
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

    @property
    def elapsed_s(self) -> float:
        """Seconds that the run took: to the end of its last request."""
        return self.statistics.duration_s

    @cached_property
    def evidence(self) -> RunEvidence:
        """The run as the gatekeeper knows it."""
        lag, response = (
            {name: figures.least_ms(name) for name in figures.ms}
            for figures in (self.statistics.samples[name].figures() for name in ("lag", "response"))
        )
        lag = {name: lag[name] for name in JUDGED}
        host = self.host.samples.columns
        return RunEvidence(self.directory, self.observation, {"whole": lag}, {"whole": response}, host)

    @cached_property
    def findings(self) -> list[Finding]:
        """What is wrong with it as evidence."""
        return list(run_findings(self.evidence))

    @property
    def generator_limited(self) -> bool:
        """True where run.json says so, or the records do: of a killed run only they can."""
        return any(finding.kind is FindingKind.GENERATOR_LIMITED for finding in self.findings)

    def as_chart_run(self) -> Run:
        """Return the run as the charts know it."""
        return Run(
            name=self.name,
            statistics=self.statistics,
            spans=spans(self.directory.events, self.elapsed_s),
            paced_by=self._paced_by(),
            number=self.number,
            shade=self.number if self.shade is None else self.shade,
        )

    def _paced_by(self) -> str:
        if self.directory.facts.loop == "closed":
            return ""
        return "the rate" if (self.directory.facts.speed or "").startswith("rate") else "the log"

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints of the run."""
        facts = self.directory.facts
        return {
            "name": self.name,
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
        return f"{self.name}: {self.status}, {counted(self.statistics.requests, 'request')}{failed}, {shown}"
