"""The share of requests that failed."""

from plimsoll.analysis.comparing.metrics.metric import Metric, NoFigureError, Reading

ERROR_SHARE = "error share"
MORE_ERRORS = 0.001


class ErrorShare(Metric):
    """Requests without a whole response, and wrong answers, by all requests."""

    names = (ERROR_SHARE,)
    meaning = "the share of requests that failed: without a whole response, or with a wrong status"
    is_share = True
    limits = ("at_most_more", "at_most_share")

    def in_words(self, metric: str, figures: str) -> str:
        """Return how many requests failed."""
        return f"Requests that failed: {figures}"

    def value(self, reading: Reading) -> float:
        """Return it, from 0 to 1."""
        if not reading.phase.requests:
            raise NoFigureError(f"{reading.run.name} has no request {reading.when}")
        return reading.phase.errors / reading.phase.requests
