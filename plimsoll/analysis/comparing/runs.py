"""One measured run of a comparison."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from plimsoll.analysis.comparing.levels import Levels, Progress, levels_of
from plimsoll.analysis.evidence.load import load_facts
from plimsoll.analysis.evidence.run import JUDGED, Observation, Observer, RunEvidence
from plimsoll.rundir.events import Saturation, saturation
from plimsoll.rundir.find import relative_name
from plimsoll.rundir.read import RunDirectory


@dataclass(frozen=True)
class ComparedRun:
    """One run, with its figures. Its name is hostile."""

    directory: RunDirectory
    levels: Levels
    observation: Observation = field(default_factory=Observation)

    @property
    def name(self) -> str:
        """Its directory's name, which alone tells two runs of one backend apart."""
        return relative_name(self.directory.path)

    @property
    def scenario(self) -> str:
        """The scenario's name (hostile)."""
        return self.directory.facts.scenario

    @property
    def repeat(self) -> int | str | None:
        """The number of its repeat."""
        return self.directory.facts.repeat

    @property
    def started_at(self) -> datetime | None:
        """The instant it began."""
        return self.directory.facts.started_at

    @cached_property
    def saturation(self) -> Saturation | None:
        """The saturator that kept its disks busy."""
        return saturation(self.directory.events)

    @property
    def emulated(self) -> str | None:
        """The storage that its own imitated (hostile)."""
        storage = self.directory.facts.storage
        return storage.emulated if storage else None

    @property
    def done_as(self) -> dict[str, Any]:
        """What has to be the same in runs that are compared (hostile)."""
        return load_facts(self.evidence)

    @cached_property
    def evidence(self) -> RunEvidence:
        """The run as the gatekeeper knows it."""
        times = {
            name: {each: phase.times.least_ms(each) for each in JUDGED}
            for name, phase in self.levels.phases.items()
        }
        return RunEvidence(self.directory, self.observation, self.levels.lag_ms, times)


def compared_run(
    directory: RunDirectory, progress: Progress = lambda _: None, *, keep_requests: bool = False
) -> ComparedRun:
    """Read every record of a run once: its figures, its answers, its sum. Raises RunDirectoryError."""
    observer = Observer(directory, summed=True)
    levels = levels_of(directory, progress, keep_requests=keep_requests, watch=observer.watch)
    return ComparedRun(directory, levels, observer.observation())
