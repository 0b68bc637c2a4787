"""The figures of one run for Prometheus: gauges, and histograms of its times, in seconds.

A run is over when it is exported, so its counts are gauges: nothing counts on.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from plimsoll.analysis.evidence.measure import Progress, measure_figures
from plimsoll.analysis.evidence.run import RunStatistics
from plimsoll.analysis.exchange.csvfile import Advance, Writer
from plimsoll.analysis.statistics.percentiles import Sample, TimeFigures
from plimsoll.analysis.statistics.routes import RouteFigures
from plimsoll.common.hostile import printable
from plimsoll.rundir.facts import MeasureSummary
from plimsoll.rundir.find import relative_name
from plimsoll.rundir.read import RunDirectory

# 1-2-5 from a half to a hundred: fine where pages are answered, coarse where nobody waits any more.
BOUNDS_S = (
    *(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0),
)
_TIMES = {"response": "due to last byte", "service": "start to last byte"}


Labels = Mapping[str, str]


@dataclass
class Gauges:
    """All gauges of one name; their labels have the same names. Those that have no value are left out."""

    name: str
    help: str
    samples: list[tuple[Labels, float]] = field(default_factory=list)

    def add(self, value: float | None, labels: Labels) -> None:
        """Add a gauge."""
        if value is not None:
            self.samples.append((labels, value))


@dataclass(frozen=True)
class Histogram:
    """A histogram: how many are not above each bound, and above none. `total` None: unknown."""

    name: str
    help: str
    bounds: Sequence[float]
    counts: Sequence[int]
    total: float | None
    labels: Labels


def prometheus_text(run: RunDirectory, progress: Progress = lambda _: None) -> tuple[int, str]:
    """Return how many requests of `run` count, and the text. Raises NoRequestsError where none does."""
    figures = measure_figures(run, progress)
    labels = {"run": relative_name(run.path), "scenario": run.facts.scenario}
    if run.facts.backend:
        labels["backend"] = run.facts.backend
    if run.facts.repeat is not None:
        labels["repeat"] = str(run.facts.repeat)
    metrics = [
        *_facts(run, figures, labels),
        *_counts(run, figures, labels),
        *_times(figures, labels),
        *_routes(figures.routes, labels),
        *_measures(run.summary.measures if run.summary else {}, labels),
    ]
    return figures.requests, text(metrics)


def _one(name: str, help_: str, value: float | None, labels: Labels) -> Gauges:
    metric = Gauges(name, help_)
    metric.add(value, labels)
    return metric


def _facts(run: RunDirectory, figures: RunStatistics, labels: Labels) -> list[Gauges]:
    facts = run.facts
    about = {
        "program": facts.program.name,
        "version": facts.program.version,
        "loop": facts.loop,
        "status": run.status,
        "target": facts.target.url if facts.target else None,
        "experiment": facts.experiment.name if facts.experiment else None,
    }
    known = {name: text for name, text in about.items() if text}
    started_s = facts.started_at.timestamp() if facts.started_at else None
    return [
        _one("plimsoll_run_info", "What was run; always 1.", 1, {**labels, **known}),
        _one("plimsoll_run_start_timestamp_seconds", "When the run started.", started_s, labels),
        _one(
            "plimsoll_run_duration_seconds", "Until its last request had ended.", figures.duration_s, labels
        ),
        _one("plimsoll_run_complete", "Whether it ran to its end.", int(run.status == "complete"), labels),
        _one(
            "plimsoll_run_generator_limited",
            "Whether the load generator itself was late: the figures are then not the server's.",
            int(facts.generator_limited),
            labels,
        ),
    ]


def _counts(run: RunDirectory, figures: RunStatistics, labels: Labels) -> list[Gauges]:
    requests = Gauges("plimsoll_run_requests", "Requests outside the warm-up, by outcome.")
    requests.add(figures.total.grinder.tests, {**labels, "outcome": "ok"})
    requests.add(figures.total.errors, {**labels, "outcome": "error"})
    failures = _one(
        "plimsoll_run_failed_requests",
        "Requests without a whole response, and wrong answers: they count at their time-out.",
        figures.failures,
        labels,
    )
    errors = Gauges("plimsoll_run_errors", "Requests without a whole response, by kind of error.")
    for kind, count in figures.errors.items():
        errors.add(count, {**labels, "kind": kind})
    responses = Gauges("plimsoll_run_responses", "Responses, by status.")
    for status, count in figures.statuses.items():
        if status:
            responses.add(count, {**labels, "status": str(status)})
    unsent = Gauges("plimsoll_run_unsent_requests", "Requests that were not sent, by reason.")
    if run.summary:
        for reason, count in run.summary.requests.skipped.items():
            unsent.add(count, {**labels, "reason": reason})
        unsent.add(run.summary.requests.unsent, {**labels, "reason": "run_ended"})
    warmup = _one("plimsoll_run_warmup_requests", "Requests of the warm-up.", figures.warmup, labels)
    return [requests, failures, warmup, errors, responses, unsent]


def _times(figures: RunStatistics, labels: Labels) -> list[Gauges | Histogram]:
    histograms = [
        _histogram(f"plimsoll_{name}_seconds", f"Times from {what}.", figures.samples[name], labels)
        for name, what in _TIMES.items()
    ]
    mean = Gauges("plimsoll_time_mean_seconds", "Means.")
    largest = Gauges("plimsoll_time_max_seconds", "Maxima.")
    percentiles = Gauges("plimsoll_time_percentile_seconds", "Percentiles: exact order statistics.")
    bounds = Gauges(
        "plimsoll_time_percentile_at_least_seconds",
        "Lower bounds of percentiles that are a failure's, which have no figure.",
    )
    for name, sample in figures.samples.items():
        of_time = {**labels, "time": name}
        mean.add(_s(sample.mean_ms), of_time)
        largest.add(_s(sample.max_ms), of_time)
        figures_of = sample.tail()
        _percentiles(percentiles, figures_of.ms, of_time)
        _percentiles(bounds, _bounds(figures_of), of_time)
    return [*histograms, mean, largest, percentiles, bounds]


def _histogram(name: str, help_: str, sample: Sample, labels: Labels) -> Histogram:
    bounds_us = np.rint(np.array(BOUNDS_S) * 1e6).astype(sample.sorted_us.dtype)
    below = np.searchsorted(sample.sorted_us, bounds_us, side="right").tolist()
    # with failures whose time-out is not known there is no sum
    total_s = int(sample.sorted_us.sum(dtype=np.uint64)) / 1e6 if sample.all_known else None
    return Histogram(name, help_, BOUNDS_S, [*below, sample.n], total_s, labels)


def _routes(routes: Mapping[str, RouteFigures], labels: Labels) -> list[Gauges]:
    requests = Gauges("plimsoll_route_requests", "Requests, by route.")
    failures = Gauges("plimsoll_route_failed_requests", "Requests that failed, by route.")
    errors = Gauges("plimsoll_route_errors", "Requests without a whole response, by route.")
    percentiles = Gauges(
        "plimsoll_route_response_percentile_seconds", "Percentiles of response times, by route."
    )
    bounds = Gauges(
        "plimsoll_route_response_percentile_at_least_seconds",
        "Lower bounds of percentiles that are a failure's, by route.",
    )
    seen: Counter[str] = Counter()
    for numbered, figures in routes.items():
        name = numbered.partition(" ")[2]
        seen[name] += 1
        of_route = {**labels, "route": name if seen[name] == 1 else f"{name} ({numbered.partition(' ')[0]})"}
        requests.add(figures.requests, of_route)
        errors.add(figures.errors, of_route)
        failures.add(figures.failures, of_route)
        _percentiles(percentiles, figures.response_ms.ms, of_route)
        _percentiles(bounds, _bounds(figures.response_ms), of_route)
    return [requests, errors, failures, percentiles, bounds]


def _measures(measures: Mapping[str, MeasureSummary], labels: Labels) -> list[Gauges]:
    values = Gauges(
        "plimsoll_measure_values", "How many values there are of a figure that is not of a single request."
    )
    times = Gauges("plimsoll_measure_percentile_seconds", "Percentiles of measures that are times.")
    others = Gauges(
        "plimsoll_measure_percentile", "Percentiles of other measures, in the unit that they have."
    )
    for name, one in measures.items():
        of_measure = {**labels, "measure": name}
        values.add(one.count, of_measure)
        figures = {"p50": one.p50, "p90": one.p90, "p99": one.p99, "p100": one.max}
        if one.unit == "ms":
            _percentiles(times, figures, of_measure)
        else:
            for percentile, value in figures.items():
                others.add(value, {**of_measure, "unit": one.unit, "percentile": percentile[1:]})
    return [values, times, others]


def _percentiles(metric: Gauges, figures_ms: Mapping[str, float | None], labels: Labels) -> None:
    for name, value_ms in figures_ms.items():
        if name.startswith("p"):
            metric.add(_s(value_ms), {**labels, "percentile": name[1:]})


def _bounds(figures: TimeFigures) -> dict[str, float | None]:
    """Return the lower bounds of what is censored; the largest is the hundredth percentile."""
    return {"p100" if name == "max" else name: value_ms for name, value_ms in figures.censored.items()}


def _s(value_ms: float | None) -> float | None:
    """Return seconds, with no more digits than the microseconds of `value_ms` have."""
    return None if value_ms is None else round(value_ms / 1000, 9)


def text(parts: Iterable[Gauges | Histogram]) -> str:
    """Return the text exposition of all, as prometheus-client writes it. Pure."""
    from prometheus_client import generate_latest  # here, for commands that load this module need it not
    from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

    families: list[Metric] = []
    for part in parts:
        if isinstance(part, Histogram):
            histogram = HistogramMetricFamily(part.name, part.help, labels=list(part.labels))
            bounds = [*map(repr, part.bounds), "+Inf"]
            buckets = list(zip(bounds, map(float, part.counts), strict=True))
            histogram.add_metric(_values(part.labels), buckets, part.total)
            if part.total is None:  # the library leaves the count out with the sum
                labels = dict(zip(part.labels, _values(part.labels), strict=True))
                histogram.add_sample(f"{part.name}_count", labels, part.counts[-1])
            families.append(histogram)
        elif part.samples:
            gauge = GaugeMetricFamily(part.name, part.help, labels=list(part.samples[0][0]))
            for labels_of, value in part.samples:
                gauge.add_metric(_values(labels_of), value)
            families.append(gauge)
    registry: Any = SimpleNamespace(collect=lambda: families)
    return generate_latest(registry).decode("utf-8")


def _values(labels: Labels) -> list[str]:
    """Return the labels' values with control characters spelled out; the library escapes the format's own."""
    return [printable(value) for value in labels.values()]


def prepare(run: RunDirectory, advance: Advance) -> tuple[int, Writer]:
    """Return the number of requests and what writes the figures. Raises PlimsollError."""
    requests, exposition = prometheus_text(run, advance)  # before a file is opened: there may be none
    return requests, lambda file: file.write(exposition.encode("utf-8"))
