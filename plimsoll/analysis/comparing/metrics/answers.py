"""The share of requests that were not answered as they should be."""

from plimsoll.analysis.comparing.metrics.metric import Metric, NoFigureError, Reading
from plimsoll.analysis.evidence.agreement import wrong_share

ANSWERS_METRIC = "answers"
MORE_WRONG = 0.01


class Answers(Metric):
    """Requests that failed, or were answered with another status class or an empty body, by all requests."""

    names = (ANSWERS_METRIC,)
    meaning = "the share of requests that failed, or whose answers are not what the log has (whole run)"
    is_share = True
    limits = ("at_most_more", "at_most_share")

    def in_words(self, metric: str, figures: str) -> str:
        """Return how many answers were not what they should be."""
        return f"Wrong or missing answers: {figures}"

    def value(self, reading: Reading) -> float:
        """Return it, from 0 to 1."""
        share = wrong_share(reading.run.evidence)
        if share is None:
            raise NoFigureError(f"{reading.run.name} has no request")
        return share
