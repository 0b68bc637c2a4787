"""All figures of one run, as data: what the report shows and `--json` prints."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields

import numpy as np

from plimsoll.analysis.statistics.clusters import clustering
from plimsoll.analysis.statistics.collect import Collection
from plimsoll.analysis.statistics.failures import timeout_us
from plimsoll.analysis.statistics.interval import upper_bound_ms
from plimsoll.analysis.statistics.phases import PhaseSlices
from plimsoll.analysis.statistics.routes import RouteFigures
from plimsoll.analysis.statistics.sample import P999, OrderStatistics, Sample
from plimsoll.analysis.statistics.timeline import Timeline
from plimsoll.analysis.statistics.windows import Window, Windows, make_windows, minutes_of
from plimsoll.common.errors import NoRequestsError
from plimsoll.rundir.events import saturation
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import Records

Progress = Callable[[int], None]


@dataclass(frozen=True)
class RunFigures:
    """One run's figures. Times by name (`response`, `service`, `lag`, `ttfb`) are exact order statistics.

    `client_queued` of the `queued` waited for a connection of their own client (`client_wait`; `unqueued` are
    the response times without that), and `client_timeouts` of these until their time was up.

    `failures` counts requests without a whole response and wrong answers: they count at `timeout_ms`, None
    where that is not known. `p999_clustering` is how many times fewer independent requests would say as much
    of p99.9 as these do.
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


def measure(
    run: RunDirectory,
    progress: Progress = lambda _: None,
    *,
    compared: bool = False,
    watch: Callable[[Records], None] = lambda _: None,
) -> RunStatistics:
    """Read every record of `run` once and return its figures.

    `progress` is called with the number of records that were read since its last call. Phases are measured
    of a run whose disks were saturated, and of one that is `compared` with others. `watch` is given each
    block of records, so that whoever wants them too need not read them again.
    """
    busy = saturation(run.events)
    phases = PhaseSlices(busy.start_ns, busy.stop_ns) if busy else PhaseSlices() if compared else None
    collection = Collection(phases, timeout_us(run.facts))
    for block in run.requests.blocks():
        collection.add(block)
        watch(block)
        progress(len(block))
    if not collection.requests:
        raise NoRequestsError(
            f"{run.path}: every request belongs to the warm-up, so there is nothing to report"
        )
    return figures_of(collection, run.route_name, run.error_name)


def figures_of(
    collection: Collection, route_name: Callable[[int], str], error_name: Callable[[int], str]
) -> RunStatistics:
    """Return the figures of what was collected, which gives its times away; names are looked up by number."""
    samples = collection.samples()
    response, elapsed_s = samples["response"], collection.elapsed_s
    windows, minutes = make_windows(collection.timeline), minutes_of(collection.timeline)
    clustered = clustering(collection.timeline.response, response)
    collection.timeline.forget_times()
    return RunStatistics(
        requests=collection.requests,
        failures=collection.failures,
        timeout_ms=None if collection.timeout_us is None else collection.timeout_us / 1000,
        warmup=collection.warmup,
        queued=collection.queued,
        client_queued=collection.client_queued,
        client_timeouts=collection.client_timeouts,
        duration_s=collection.end_ns / 1e9,
        samples=samples,
        p999_upper_ms=None if clustered is None else upper_bound_ms(response, P999, clustered),
        p999_clustering=clustered,
        windows=windows,
        timeline=collection.timeline,
        routes={
            _distinct(route_name, number): collection.routes.figures(number, elapsed_s)
            for number in collection.routes.used()
        },
        total=collection.routes.all_figures(response, elapsed_s),
        errors={
            error_name(number): int(count)
            for number, count in enumerate(collection.error_counts)
            if number and count
        },
        statuses={
            int(status): int(collection.status_counts[status])
            for status in np.flatnonzero(collection.status_counts)
        },
        phases=collection.phases,
        minutes=minutes,
    )


def _distinct(route_name: Callable[[int], str], number: int) -> str:
    return f"{number + 1} {route_name(number)}"
