"""The one measured run: what its run directory says of itself, and what its records show."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from plimsoll.analysis.evidence.answers import RouteAnswers
from plimsoll.analysis.evidence.poolwork import PoolWork, pool_work, read_pool_work
from plimsoll.analysis.statistics.measures import StepFigures
from plimsoll.analysis.statistics.percentiles import P999, PERCENTILES, TimeFigures
from plimsoll.analysis.statistics.requests import KeptRequests
from plimsoll.rundir.events import Saturation, saturation
from plimsoll.rundir.find import relative_name
from plimsoll.rundir.hostfile import Column
from plimsoll.rundir.read import RunDirectory

WHOLE = "whole"
JUDGED = tuple(name for name, parts in PERCENTILES.items() if parts <= P999)  # no gate can limit those above


@dataclass(frozen=True)
class RunPhase:
    """One phase of a run, without the warm-up. Times are exact order statistics, in ms.

    `failures` are requests without a whole response, and wrong answers; a time that is one of theirs is a
    lower bound. `lag_ms` are the percentiles, those of `JUDGED`, of the generator's own lag; none where it is
    not known. `steps` are routes and measures by name (hostile). `kept` are the requests themselves, where
    they were asked for.
    """

    requests: int
    failures: int
    response_ms: TimeFigures
    lag_ms: Mapping[str, float | None] = field(default_factory=dict, compare=False)
    steps: Mapping[str, StepFigures] = field(default_factory=dict)
    kept: KeptRequests | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """One run, measured. Names and texts are hostile.

    `phases` has the `whole` run, and what was before, during and after a saturator; none of a run whose
    requests were only counted. `answers` are what came back, by route. `silence` says why the target counts
    as dead; None where it lives. `records_sha256` is None where it was not computed. `host` has the columns
    of its host.csv, where somebody has read them already. `night` tells it from runs of other nights, which
    are called alike.
    """

    directory: RunDirectory
    phases: Mapping[str, RunPhase] = field(default_factory=dict)
    answers: Mapping[str, RouteAnswers] = field(default_factory=dict)
    silence: str | None = None
    records_sha256: str | None = None
    service_p50_ms: float | None = None
    damaged_measures: frozenset[str] = frozenset()
    host: Mapping[str, Column] | None = None
    night: str = ""

    @cached_property
    def name(self) -> str:
        """Its directory's name, which alone tells two runs of one backend apart."""
        name = relative_name(self.directory.path)
        return f"{self.night}/{name}" if self.night else name

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        return self.directory.facts.scenario

    @property
    def repeat(self) -> int | str | None:
        """The number of its repeat."""
        return self.directory.facts.repeat

    @property
    def started_at(self) -> datetime | None:
        """The instant it began."""
        return self.directory.facts.started_at

    @property
    def emulated(self) -> str | None:
        """The storage that its own imitated; None for storage that is what it is called."""
        storage = self.directory.facts.storage
        return storage.emulated if storage else None

    @cached_property
    def saturation(self) -> Saturation | None:
        """The saturator that kept its disks busy, if there was one."""
        return saturation(self.directory.events)

    @cached_property
    def pool_work(self) -> PoolWork:
        """What the pools under it did meanwhile."""
        return read_pool_work(self.directory) if self.host is None else pool_work(self.directory, self.host)

    @cached_property
    def all_answers(self) -> RouteAnswers:
        """The answers of all routes together."""
        whole = RouteAnswers()
        for each in self.answers.values():
            whole.add(each)
        return whole
