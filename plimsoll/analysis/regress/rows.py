"""The rows of the history as judging takes them: nights, runs, figures, and reported changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from plimsoll.analysis.regress.night import NightFacts
from plimsoll.common.severity import Severity


@dataclass(frozen=True)
class NightFinding:
    """What the gatekeeper found on runs of a night, by their numbers. `text` and `remedy` are hostile.

    `worse` says that it shows the site to be worse than in the nights before.
    """

    name: str
    level: Severity
    text: str
    remedy: str
    worse: bool
    runs: tuple[int, ...]

    @property
    def disqualifies(self) -> bool:
        """True where its runs are no evidence."""
        return self.level is Severity.BAD


@dataclass(frozen=True)
class NightRow:
    """A night with its number in the history, and whether the baseline begins or ends with it.

    `findings` is None where the gatekeeper has not looked at it yet.
    """

    id: int
    facts: NightFacts
    baseline: bool
    findings: tuple[NightFinding, ...] | None = ()

    @property
    def name(self) -> str:
        """Its own name within its experiment (hostile)."""
        return self.facts.key.name


@dataclass(frozen=True)
class RunRow:
    """A run without its figures. Names are hostile.

    `censored` has the (phase, metric) of figures that are failures', of which no more than a lower bound is
    known.
    `unfit` says why nothing can be decided by it, and `refused` why not beside the nights before.
    """

    id: int
    night: int
    scenario: str
    backend: str
    repeat: str | None
    unfit: tuple[str, ...]
    path: str
    root: str
    identity: str
    started_at: str
    size_bytes: int
    readable: bool
    pruned: bool
    censored: frozenset[tuple[str, str]] = frozenset()
    refused: tuple[str, ...] = ()

    @property
    def is_fit(self) -> bool:
        """True where it enters its series."""
        return not self.unfit and not self.refused

    @property
    def group(self) -> tuple[str, str]:
        """Its scenario and backend."""
        return self.scenario, self.backend

    @property
    def name(self) -> str:
        """The name of its directory (hostile)."""
        return self.path.rsplit("/", 1)[-1]


class FigureRow(NamedTuple):
    """One figure of one phase of a run. Names are hostile."""

    run: int
    phase: str
    metric: str
    value: float
    unit: str


@dataclass(frozen=True)
class ChangeRow:
    """A change that was reported: whose it is, its first night, the night that found it, both levels.

    `kind`: `worse` and `better` are changes of a series, `baseline` is a gate that failed. `recovered` is the
    first night on which it was mended, `recovery_found` the one that found that; None while it is not.
    """

    kind: Literal["worse", "better", "baseline"]
    scenario: str
    backend: str
    phase: str
    metric: str
    night: int
    found: int
    before: float
    after: float
    p: float
    accepted: bool = False
    recovered: int | None = None
    recovery_found: int | None = None

    @property
    def group(self) -> tuple[str, str]:
        """The scenario and backend that one regression moves at once."""
        return self.scenario, self.backend


@dataclass(frozen=True)
class Decision:
    """What somebody decided, and why: `accept` changes, set a `baseline`, `drop` what runs no more.

    `name` is what is accepted or dropped, or the baseline's night; `night` was the last one then (None:
    nobody knows). Texts are hostile.
    """

    kind: Literal["accept", "baseline", "drop"]
    name: str
    night: int | None
    at: str
    by: str
    note: str


@dataclass(frozen=True)
class Past:
    """All that the history knows of one experiment, the oldest first; `changes` were reported before.

    `daily`: its nights are days of access logs.
    """

    experiment: str
    nights: Sequence[NightRow]
    runs: Sequence[RunRow]
    figures: Sequence[FigureRow]
    error_shares: Sequence[tuple[int, float]]
    changes: Sequence[ChangeRow]
    decisions: Sequence[Decision] = ()
    daily: bool = False
