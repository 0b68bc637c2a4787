"""A run directory and what was measured from it: what the page's sections are made of."""

from dataclasses import dataclass, fields
from functools import cached_property

from plimsoll.analysis.evidence.checks import run_findings
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.poolwork import named_facts
from plimsoll.analysis.evidence.run import WHOLE, DetailedRun
from plimsoll.analysis.page.chart import RUN_COLOURS, colour_of
from plimsoll.analysis.statistics.measures import (
    Failures,
    StepFigures,
    failures_in,
    failures_of,
    measured_steps,
    measures_by_phase,
    summaries,
)
from plimsoll.analysis.statistics.windows import PHASES
from plimsoll.common.units import counted
from plimsoll.rundir.events import Measures, Span, spans


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
    def values(self) -> dict[str, StepFigures]:
        """The same figures, value by value, with those whose iteration failed."""
        found = Measures.of(self.directory.events)
        return measured_steps(found, self.failed_measures, found.units)

    @cached_property
    def failed_measures(self) -> Failures:
        """Of each measure (hostile) what there would be more of, had no iteration failed."""
        return failures_of(self.directory.events, self.directory.facts.timeout_us)

    @cached_property
    def phase_values(self) -> dict[str, dict[str, StepFigures]]:
        """The same by phase, those without any left out; none where nothing kept its disks busy."""
        if not self.saturation:
            return {}
        found = measures_by_phase(self.directory.events, self.saturation)
        units = {name: one.unit for name, one in self.values.items()}
        steps = {
            phase: measured_steps(
                Measures.of(found.get(phase, [])),
                failures_in(self.failed_measures, phase, self.saturation),
                units,
            )
            for phase in PHASES
        }
        return {phase: each for phase, each in steps.items() if each}

    @property
    def own_disks(self) -> set[str]:
        """The kernel's names (hostile) of the storage's disks; none where run.json does not say."""
        return {device.removeprefix("/dev/") for device in named_facts(self.directory, "disks", "device")}

    @property
    def own_pools(self) -> set[str]:
        """The names (hostile) of the storage's pools; none where run.json does not say."""
        return named_facts(self.directory, "pools", "pool")

    @property
    def zero_ns(self) -> int:
        """The instant from which time is counted: the saturator's start, else that of the run."""
        return self.saturation.start_ns if self.saturation else 0

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
        """True where lateness that is not known, or something else, limited it."""
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
            "response_prompt_ms": self.prompt_ms[WHOLE].as_json() if self.prompt_ms else None,
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
