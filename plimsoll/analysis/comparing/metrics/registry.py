"""The registry of metrics: adding one is its module and its line here."""

from plimsoll.analysis.comparing.metrics.answers import Answers
from plimsoll.analysis.comparing.metrics.error_share import ErrorShare
from plimsoll.analysis.comparing.metrics.measure import Measure
from plimsoll.analysis.comparing.metrics.metric import Metric
from plimsoll.analysis.comparing.metrics.response_time import ResponseTime
from plimsoll.analysis.comparing.metrics.stalls import Stalls

METRICS: list[Metric] = [ResponseTime(), ErrorShare(), Answers(), Stalls(), Measure()]


def metric_of(text: str) -> Metric:
    """Return the metric that gates.yml writes as `text`. Raises ValueError that names all there are."""
    for metric in METRICS:
        if metric.takes(text):
            return metric
    raise ValueError(f"must be one of {', '.join(name for metric in METRICS for name in metric.names)}")
