"""Percentiles and the mean of response times."""

from analysis.comparing.metrics.metric import Metric, NoFigureError, Reading
from analysis.statistics.sample import PERCENTILES, fewest
from plimsoll.common.units import counted

PERCENTILE_METRICS = ("p99.9", "p99", "p95", "p90", "p50")


class ResponseTime(Metric):
    """A percentile of the response times, or their mean."""

    names = (*PERCENTILE_METRICS, "mean")
    meaning = "a percentile, or the mean, of the response time"
    limits = ("at_most_ratio", "at_most_ms")

    def in_words(self, metric: str, figures: str) -> str:
        """Return how many requests of how many took longer."""
        if metric not in PERCENTILES:
            return f"On average a request took {figures}"
        of = fewest(PERCENTILES[metric])
        who = "half of the requests" if of == 2 else f"of {of:,} requests, one"
        return f"{who[0].upper()}{who[1:]} took longer than {figures}"

    def value(self, reading: Reading) -> float:
        """Return it in ms."""
        value = reading.phase.times_ms[reading.metric]
        if value is None:
            needs = fewest(PERCENTILES[reading.metric]) if reading.metric in PERCENTILES else 1
            raise NoFigureError(
                f"{reading.run.name} has {counted(reading.phase.requests, 'request')} {reading.when}, and "
                f"{reading.metric} takes {needs:,}: make runs longer, or ask for a lower percentile"
            )
        return value
