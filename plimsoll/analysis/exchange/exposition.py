"""Prometheus' text exposition format, as prometheus-client writes it: samples with labels. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from plimsoll.common.hostile import printable

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

    def families(self) -> Iterator[Metric]:
        """Yield the family, unless it is empty."""
        if self.samples:
            family = GaugeMetricFamily(self.name, self.help, labels=list(self.samples[0][0]))
            for labels, value in self.samples:
                family.add_metric(_values(labels), value)
            yield family


@dataclass(frozen=True)
class Histogram:
    """A histogram: how many are not above each bound, and above none. `total` None: unknown."""

    name: str
    help: str
    bounds: Sequence[float]
    counts: Sequence[int]
    total: float | None
    labels: Labels

    def families(self) -> Iterator[Metric]:
        """Yield the family."""
        family = HistogramMetricFamily(self.name, self.help, labels=list(self.labels))
        bounds = [*map(repr, self.bounds), "+Inf"]
        buckets = list(zip(bounds, map(float, self.counts), strict=True))
        family.add_metric(_values(self.labels), buckets, self.total)
        if self.total is None:  # the library leaves the count out with the sum
            family.add_sample(
                f"{self.name}_count",
                dict(zip(self.labels, _values(self.labels), strict=True)),
                self.counts[-1],
            )
        yield family


def text(parts: Iterable[Gauges | Histogram]) -> str:
    """Return the exposition of all."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected([family for part in parts for family in part.families()]))
    return generate_latest(registry).decode("utf-8")


class _Collected(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def _values(labels: Labels) -> list[str]:
    """Return the labels' values with control characters spelled out; the library escapes the format's own."""
    return [printable(value) for value in labels.values()]
