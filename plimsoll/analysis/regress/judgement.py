"""The judgement of a night: series, gates, what cannot be judged, and one verdict. Texts are hostile."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from plimsoll.analysis.comparing.decision import Verdict
from plimsoll.analysis.comparing.gates import Gate
from plimsoll.analysis.regress.rows import Decision, NightFinding, NightRow
from plimsoll.analysis.regress.series import NightSeries

# steady: no news. news: worse since tonight. known: worse, reported before. recovered: as before again, found
# tonight. better: since tonight. young: too few nights. missing: no value tonight.
SeriesState = Literal["steady", "news", "known", "recovered", "better", "young", "missing"]
NightVerdict = Literal["worse", "unjudged", "steady"]
EXIT_CODES: dict[NightVerdict, int] = {"steady": 0, "worse": 1, "unjudged": 3}
STALE_AFTER_S = 36 * 3600.0


@dataclass(frozen=True)
class Terms:
    """How a night is judged: at which instant, after how long the newest night is stale, what stays red.

    `tell_once`: a regression is no failure any more from the night on after the one that reported it.
    """

    at: datetime
    stale_after_s: float = STALE_AFTER_S
    tell_once: bool = False


@dataclass(frozen=True)
class SeriesResult:
    """One series and what is to be said of it. `level`: of the nights before, since the last change.

    `changes`: the places of the nights that a page marks; `since`: when the news began; `is_open`: what was
    reported before tonight was neither accepted nor mended.
    """

    series: NightSeries
    state: SeriesState
    says: str
    tonight: float | None
    level: float | None
    changes: list[int] = field(default_factory=list)
    since: str | None = None
    is_open: bool = False


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
    is_recovered: bool = False

    @property
    def name(self) -> str:
        """Its name (hostile)."""
        where = f" on {self.backend}" if self.backend else ""
        return f"{self.gate.scenario}{where}, {self.gate.phase}: {self.gate.metric}"


@dataclass(frozen=True)
class Judgement:
    """One experiment's last night, judged. `unjudged` says why it cannot be; `notes` forbid nothing.

    `decisions` are those that somebody took; `is_stale`: a newer night is overdue; `findings` are the
    gatekeeper's on tonight's runs, beside those of the nights before. `daily`: its nights are days of access
    logs; `earlier` are days that were added along with it, and had news.
    """

    experiment: str
    night: NightRow
    nights: int
    series: list[SeriesResult]
    gates: list[GateResult]
    unjudged: list[str]
    notes: list[str]
    baseline: list[NightRow]
    decisions: list[Decision] = field(default_factory=list)
    tell_once: bool = False
    is_stale: bool = False
    findings: list[NightFinding] = field(default_factory=list)
    daily: bool = False
    earlier: list["Judgement"] = field(default_factory=list)

    @property
    def unit(self) -> str:
        """What its nights are."""
        return "day" if self.daily else "night"

    @property
    def last(self) -> str:
        """What the last of them is called."""
        return "that day" if self.daily else "tonight"

    @property
    def news(self) -> list[SeriesResult]:
        """The regressions of tonight."""
        return [each for each in self.series if each.state == "news"]

    @property
    def recovered(self) -> list[SeriesResult]:
        """The series that are found tonight to be as before a regression."""
        return [each for each in self.series if each.state == "recovered"]

    @property
    def red(self) -> list[SeriesResult]:
        """The series that fail: by what is news, and by what is neither accepted nor mended."""
        return [each for each in self.series if self.is_red(each)]

    def is_red(self, result: SeriesResult) -> bool:
        """Return whether a series fails."""
        return result.state == "news" or (result.is_open and not self.tell_once)

    @property
    def failed(self) -> list[GateResult]:
        """The gates that FAIL."""
        return [each for each in self.gates if each.verdict.outcome == "FAIL"]

    @property
    def shown_worse(self) -> list[NightFinding]:
        """The findings that show the site to be worse."""
        return [each for each in self.findings if each.disqualifies and each.worse]

    @property
    def verdict(self) -> NightVerdict:
        """The verdict on tonight."""
        if self.red or self.failed or self.shown_worse:
            return "worse"
        return "unjudged" if self.unjudged else "steady"

    @property
    def has_news(self) -> bool:
        """True where there is news to send."""
        gates = any(each.is_news or each.is_recovered for each in self.gates)
        return bool(self.news or self.recovered or gates or self.unjudged or self.shown_worse)


def overall(judgements: list[Judgement]) -> NightVerdict:
    """Return the verdict on all experiments: worse before unjudged before steady."""
    words = {each.verdict for each in judgements}
    return "worse" if "worse" in words else "unjudged" if "unjudged" in words else "steady"
