"""The one measured run: what its run directory says of itself, and what its records show."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from plimsoll.analysis.evidence.host_rows import HostCounters, counters_of
from plimsoll.analysis.evidence.poolwork import PoolWork, pool_work
from plimsoll.analysis.evidence.traits import RecordTraits
from plimsoll.analysis.statistics.measures import StepFigures
from plimsoll.analysis.statistics.percentiles import P999, PERCENTILES, OrderStatistics, Sample, TimeFigures
from plimsoll.analysis.statistics.requests import KeptRequests
from plimsoll.analysis.statistics.routes import RouteAnswers, RouteFigures
from plimsoll.analysis.statistics.windows import PhaseSlices, Timeline, Window, Windows
from plimsoll.rundir.events import Saturation, saturation
from plimsoll.rundir.find import relative_name
from plimsoll.rundir.read import RunDirectory

WHOLE = "whole"
JUDGED = tuple(name for name, parts in PERCENTILES.items() if parts <= P999)  # no gate can limit those above


@dataclass(frozen=True)
class RunPhase:
    """One phase of a run, without the warm-up. Times are exact order statistics, in ms.

    `failures` are requests without a whole response, and wrong answers; a time that is one of theirs is a
    lower bound. `lag_ms` are the percentiles, those of `JUDGED`, of the generator's own lag; none where it is
    not known. `steps` are routes and measures by name (hostile). `kept` are the requests themselves, where
    they were asked for. `prompt` has the same phase without the time by which the generator was late: the
    other end of every response time; None where no request was sent over 1 ms late, and where that end is not
    known (generator.is_lateness_known).
    """

    requests: int
    failures: int
    response_ms: TimeFigures
    lag_ms: Mapping[str, float | None] = field(default_factory=dict, compare=False)
    steps: Mapping[str, StepFigures] = field(default_factory=dict)
    kept: KeptRequests | None = field(default=None, compare=False, repr=False)
    prompt: "RunPhase | None" = field(default=None, compare=False, repr=False)


class Connections(NamedTuple):
    """How many whole responses came, and over which connections: kept open, of HTTP/2, encrypted."""

    answers: int = 0
    reused: int = 0
    http2: int = 0
    tls: int = 0


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """One run, measured. Names and texts are hostile.

    `phases` has the `whole` run, and what was before, during and after a saturator; none of a run whose
    requests were only counted. `answers` are what came back, by route. `silence` says why the target counts
    as dead; None where it lives. `records_sha256` and `traits` of its records are None where they were not
    computed. `served` counts the whole answers outside the warm-up by what gave them (`records.SERVED`).
    `night` tells it from runs of other nights, which are called alike.
    """

    directory: RunDirectory
    phases: Mapping[str, RunPhase] = field(default_factory=dict)
    answers: Mapping[str, RouteAnswers] = field(default_factory=dict)
    silence: str | None = None
    records_sha256: str | None = None
    service_p50_ms: float | None = None
    damaged_measures: frozenset[str] = frozenset()
    night: str = ""
    traits: RecordTraits | None = field(default=None, repr=False)
    connections: Connections = field(default_factory=Connections)
    served: tuple[int, ...] = ()
    last_due_ns: int = 0

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
    def host(self) -> HostCounters:
        """What the observers counted meanwhile."""
        return counters_of(self.directory)

    @cached_property
    def pool_work(self) -> PoolWork:
        """What the pools under it did meanwhile."""
        return pool_work(self.directory, self.host.samples.columns)

    @cached_property
    def all_answers(self) -> RouteAnswers:
        """The answers of all routes together."""
        whole = RouteAnswers()
        for each in self.answers.values():
            whole.add(each)
        return whole


@dataclass(frozen=True, eq=False)
class DetailedRun(MeasuredRun):
    """A measured run, and all that a page draws of it. Of its phases it has the whole run alone.

    `prompt_ms` are the response times of every phase without the time by which the generator was late; none
    where it was in time, or where that is not known.
    """

    statistics: "RunFigures" = field(kw_only=True)
    prompt_ms: Mapping[str, TimeFigures] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class RunFigures:
    """One run's figures. Times by name (`response`, `service`, `lag`, `ttfb`) are exact order statistics.

    `client_queued` of the `queued` waited for a connection of their own client (`client_wait`; `unqueued` are
    the response times without that), and `client_timeouts` of these until their time was up.

    `failures` counts requests without a whole response and wrong answers: they count at `timeout_ms`, None
    where that is not known. `p999_clustering` is how many times fewer independent requests would say as much
    of p99.9 as these do. `served` counts whole answers by what gave them; empty where none says it.
    """

    requests: int
    failures: int
    timeout_ms: float | None
    warmup: int
    queued: int
    client_queued: int
    client_timeouts: int
    duration_s: float
    samples: Mapping[str, OrderStatistics]
    p999_upper_ms: float | None
    p999_clustering: float | None
    windows: Windows
    timeline: Timeline
    routes: dict[str, RouteFigures]
    total: RouteFigures
    errors: dict[str, int]
    statuses: dict[int, int]
    served: Mapping[str, int] = field(default_factory=dict)
    phases: PhaseSlices | None = None
    minutes: list[Window] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Return what `plimsoll report --json` prints of the run; absent figures are None."""
        line = self.windows.line
        return {
            "requests": {
                "sent": self.requests + self.warmup,
                "warmup": self.warmup,
                "queued": self.queued,
                "client_queued": self.client_queued,
                "client_timeouts": self.client_timeouts,
                "ok": self.total.grinder.tests,
                "errors": self.total.errors,
                "failures": self.failures,
                "status_mismatch": self.total.status_mismatch,
                "bytes_mismatch": self.total.bytes_mismatch,
            },
            "duration_s": self.duration_s,
            **{f"{name}_ms": sample.figures().as_json() for name, sample in self.samples.items()},
            "response_p99.9_upper_ms": self.p999_upper_ms,
            "response_p99.9_clustering": self.p999_clustering,
            "windows": {
                "width_s": self.windows.width_s,
                "shown": self.windows.shown,
                "line": None if line is None else asdict(line),
                "windows": [window.as_json() for window in self.windows.windows],
            },
            "routes": {name: figures.as_json() for name, figures in self.routes.items()},
            "total": self.total.as_json(),
            "errors": self.errors,
            "statuses": {str(status): count for status, count in self.statuses.items()},
            **({"served": dict(self.served)} if self.served else {}),
        }


@dataclass(frozen=True)
class RunStatistics(RunFigures):
    """One run's figures, and all the times that they were computed from: 16 bytes a request."""

    samples: dict[str, Sample]

    def condensed(self) -> RunFigures:
        """Return the figures alone."""
        kept = {one.name: getattr(self, one.name) for one in fields(self)}
        condensed = {name: sample.condensed() for name, sample in self.samples.items()}
        return RunFigures(**kept | {"samples": condensed})
