"""The judgement of a night: series, gates, what cannot be judged, and one verdict. Texts are hostile."""

from dataclasses import dataclass, field
from typing import Literal

from analysis.comparing.decision import Verdict
from analysis.comparing.gates import Gate
from analysis.history.rows import NightRow
from analysis.history.series import NightSeries

# steady: no news. news: worse since tonight. known: worse, reported before. better: since tonight.
# young: too few nights. missing: no value tonight.
SeriesState = Literal["steady", "news", "known", "better", "young", "missing"]
NightVerdict = Literal["worse", "unjudged", "steady"]
EXIT_CODES: dict[NightVerdict, int] = {"steady": 0, "worse": 1, "unjudged": 3}


@dataclass(frozen=True)
class SeriesResult:
    """One series and what is to be said of it. `level`: of the nights before, since the last change.

    `changes`: the places of the nights that a page marks; `since`: when the news began.
    """

    series: NightSeries
    state: SeriesState
    says: str
    tonight: float | None
    level: float | None
    changes: list[int] = field(default_factory=list)
    since: str | None = None


@dataclass(frozen=True)
class GateResult:
    """One limit on one backend, against the baseline's nights."""

    backend: str
    gate: Gate
    limit: str
    at_most: float
    verdict: Verdict
    nights: tuple[int, int]
    is_news: bool = False

    @property
    def name(self) -> str:
        """Its name (hostile)."""
        where = f" on {self.backend}" if self.backend else ""
        return f"{self.gate.scenario}{where}, {self.gate.phase}: {self.gate.metric}"


@dataclass(frozen=True)
class Judgement:
    """One experiment's last night, judged. `unjudged` says why it cannot be; `notes` forbid nothing."""

    experiment: str
    night: NightRow
    nights: int
    series: list[SeriesResult]
    gates: list[GateResult]
    unjudged: list[str]
    notes: list[str]
    baseline: list[NightRow]

    @property
    def news(self) -> list[SeriesResult]:
        """The regressions of tonight."""
        return [each for each in self.series if each.state == "news"]

    @property
    def failed(self) -> list[GateResult]:
        """The gates that FAIL."""
        return [each for each in self.gates if each.verdict.outcome == "FAIL"]

    @property
    def verdict(self) -> NightVerdict:
        """The verdict on tonight."""
        if self.news or self.failed:
            return "worse"
        return "unjudged" if self.unjudged else "steady"

    @property
    def has_news(self) -> bool:
        """True where there is news to send."""
        return bool(self.news or any(each.is_news for each in self.gates) or self.unjudged)


def overall(judgements: list[Judgement]) -> NightVerdict:
    """Return the verdict on all experiments: worse before unjudged before steady."""
    words = {each.verdict for each in judgements}
    return "worse" if "worse" in words else "unjudged" if "unjudged" in words else "steady"
