"""Whether a run stalls."""

import re

from plimsoll.analysis.comparing.metrics.metric import Metric, NoFigureError, Reading
from plimsoll.analysis.comparing.stalls import IN_A_ROW

_STALLS = re.compile(r"stalls over (\d{1,6}(?:\.\d{1,3})?) ms")


class Stalls(Metric):
    """1 for a run in which a row of requests was slow at once, else 0; limited is the share of runs."""

    names = ("stalls over N ms",)
    meaning = (
        f"whether half of {IN_A_ROW} requests in a row, or more, took over N ms in some place; "
        "limited is the share of runs in which that is so"
    )
    is_share = True
    limits = ("at_most_share_of_runs",)

    def takes(self, metric: str) -> bool:
        """Return whether `metric` is `stalls over N ms`."""
        return _STALLS.fullmatch(metric) is not None

    def label(self, metric: str) -> str:
        """Return it as a share of runs."""
        return f"runs with {metric}"

    def in_words(self, metric: str, figures: str) -> str:
        """Return in which share of the runs it stalls."""
        return f"Runs with {metric}: {figures}"

    def value(self, reading: Reading) -> float:
        """Return 1 or 0."""
        kept = reading.phase.kept
        if kept is None:
            raise NoFigureError(
                f"{reading.run.name} was kept without its requests, so its stalls are not known: judge them "
                "by plimsoll compare"
            )
        worst_ms = kept.worst_ms
        if worst_ms is None:
            raise NoFigureError(
                f"{reading.run.name} has {len(kept)} requests {reading.when}, and stalls take "
                f"{IN_A_ROW}: make runs longer"
            )
        found = _STALLS.fullmatch(reading.metric)
        assert found is not None  # noqa: S101 else another metric would have been asked
        return float(worst_ms > float(found[1]))
