"""Percentiles and the mean of response times."""

from collections.abc import Sequence
from dataclasses import replace

from plimsoll.analysis.comparing.levels import PhaseLevels
from plimsoll.analysis.comparing.metrics.metric import Metric, NoFigureError, Reading, censored
from plimsoll.analysis.comparing.requests import cut_alike
from plimsoll.analysis.statistics.sample import PERCENTILES, Sample, fewest
from plimsoll.common.units import counted

PERCENTILE_METRICS = ("p99.9", "p99", "p95", "p90", "p50")


class ResponseTime(Metric):
    """A percentile of the response times, or their mean."""

    names = (*PERCENTILE_METRICS, "mean")
    meaning = "a percentile, or the mean, of the response time; failures count at their time-out"
    limits = ("at_most_ratio", "at_most_ms")

    def in_words(self, metric: str, figures: str) -> str:
        """Return how many requests of how many took longer."""
        if metric not in PERCENTILES:
            return f"On average a request took {figures}"
        of = fewest(PERCENTILES[metric])
        who = "half of the requests" if of == 2 else f"of {of:,} requests, one"
        return f"{who[0].upper()}{who[1:]} took longer than {figures}"

    def alike(self, phases: Sequence[PhaseLevels], metric: str) -> list[PhaseLevels]:
        """Cut them to one length and one number of requests, where that matters."""
        kept = [phase.kept for phase in phases if phase.kept is not None and len(phase.kept)]
        cut = (
            cut_alike(kept, PERCENTILES.get(metric, PERCENTILES["p50"])) if len(kept) == len(phases) else None
        )
        if cut is None:
            return list(phases)
        found = [Sample.of_times(each.times).figures() for each in cut]
        return [
            replace(phase, requests=len(each), times_ms=one.ms, at_least_ms=one.censored, kept=each)
            for phase, each, one in zip(phases, cut, found, strict=True)
        ]

    def value(self, reading: Reading) -> float:
        """Return it in ms."""
        value, phase = reading.phase.times_ms[reading.metric], reading.phase
        if reading.metric in phase.censored:
            raise censored(reading, reading.metric, phase.at_least_ms[reading.metric])
        if value is None and reading.metric == "mean" and phase.errors:
            raise NoFigureError(
                f"{reading.run.name} has {counted(phase.errors, 'failure')} {reading.when}, and run.json "
                "does not say at which time-out they count in the mean: ask for a percentile"
            )
        if value is None:
            needs = fewest(PERCENTILES[reading.metric]) if reading.metric in PERCENTILES else 1
            raise NoFigureError(
                f"{reading.run.name} has {counted(reading.phase.requests, 'request')} {reading.when}, and "
                f"{reading.metric} takes {needs:,}: make runs longer, or ask for a lower percentile"
            )
        return value
