"""Findings: all that can be wrong with evidence, each with a stable name, a level, a meaning and a remedy.

docs/evidence.md lists them; a test holds it against `FindingKind`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from plimsoll.common.severity import Severity


class Rule(NamedTuple):
    """What a kind of finding means. `BAD` disqualifies: nothing is decided by the runs that it concerns."""

    name: str
    level: Severity
    meaning: str
    remedy: str


class FindingKind(Enum):
    """Every kind of finding there is."""

    KILLED = Rule(
        "killed",
        Severity.BAD,
        "The run was killed before it could say how it ended.",
        "Run it again, or take it out of the folder.",
    )
    RUNNING = Rule("running", Severity.BAD, "The run has not ended yet.", "Wait for it.")
    INCOMPLETE = Rule(
        "incomplete",
        Severity.BAD,
        "The run failed or was interrupted.",
        "Run it again, or take it out of the folder.",
    )

    @property
    def level(self) -> Severity:
        """How grave it is."""
        return self.value.level

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return self.value.remedy


@dataclass(frozen=True)
class Finding:
    """One thing found. `text` is a whole sentence that names the runs and the reason (hostile).

    `scenario` is None where it concerns all; `runs` are the names of the runs (hostile). `worse` says that it
    shows the candidate to be worse: then it breaks the gate instead of leaving it undecided. `remedy` is more
    specific than that of its kind, where given.
    """

    kind: FindingKind
    text: str
    runs: tuple[str, ...] = ()
    scenario: str | None = None
    worse: bool = False
    own_remedy: str | None = None

    @property
    def level(self) -> Severity:
        """Its severity."""
        return self.kind.level

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return self.own_remedy or self.kind.remedy

    @property
    def disqualifies(self) -> bool:
        """True where nothing can be decided by the runs that it concerns."""
        return self.level is Severity.BAD

    def as_json(self) -> dict[str, object]:
        """Return the finding for `--json`."""
        return {
            "name": self.kind.value.name,
            "level": self.level.value,
            "scenario": self.scenario,
            "runs": list(self.runs),
            "worse": self.worse,
            "text": self.text,
            "remedy": self.remedy,
        }


def disqualifying(findings: Iterable[Finding]) -> list[Finding]:
    """Return those after which nothing can be decided. Pure."""
    return [finding for finding in findings if finding.disqualifies]
