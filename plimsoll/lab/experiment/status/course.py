"""The course of an experiment so far, from the lines of its journal: what is open, and what took how long."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

Part = Literal["make", "cell", "fsync", "before", "load", "after"]
Line = dict[str, Any]
Spent = dict[Part, list[tuple[str, float]]]  # by the name of the run, or of the backend that was made

_PARTS: dict[str, tuple[Part, set[str]]] = {  # a line that begins a part, and those that end it
    "making": ("make", {"made"}),
    "fileio cell": ("cell", {"fileio cell", "fileio files", "fsync cell", "fileio ended"}),
    "fsync cell": ("fsync", {"fsync cell", "fileio ended"}),
    "run begun": ("before", {"load begun"}),
    "load begun": ("load", {"load ended"}),
    "load ended": ("after", {"run finished"}),
}


@dataclass
class Course:
    """What the journal says. Lines of another version that are not known are passed over."""

    begun_at: datetime | None = None
    ended_at: datetime | None = None
    last: Line = field(default_factory=dict)  # the last line that began or ended something
    last_at: datetime | None = None
    step: str | None = None  # the heading of the steps that are being done
    made: set[str] = field(default_factory=set)  # rigs
    rigs: dict[str, str] = field(default_factory=dict)  # by the variant that runs on it
    tries: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    failures: list[tuple[Line, datetime, str | None]] = field(default_factory=list)
    not_measured: dict[str, str] = field(default_factory=dict)  # volumes whose fileio failed, and why
    attempts: dict[str, str] = field(default_factory=dict)
    spent: Spent = field(default_factory=lambda: {part: [] for part in get_args(Part)})

    def add(self, line: Line) -> None:
        """Take the next line of the journal."""
        what, at = line.get("what"), _instant(line.get("at"))
        if not isinstance(what, str) or at is None:
            return
        run, backend = str(line.get("run", "")), str(line.get("backend", ""))
        if what == "step":
            self.step = str(line.get("says", ""))
            return
        if what == "attempt":
            self.attempts[run] = str(line.get("attempt", ""))
            return
        self._measure(what, at, run or backend)
        self.last, self.last_at, self.step = line, at, None
        if what == "begun":
            self.begun_at, self.ended_at, self.made = self.begun_at or at, None, set()
            self.not_measured = {}
        elif what == "ended":
            self.ended_at = at
        elif what == "made":
            self.made.add(backend)
        elif what == "fileio failed":
            self.not_measured[backend] = str(line.get("why", ""))
        elif what == "run begun":
            self.tries[run] += 1
            self.attempts.pop(run, None)
        elif what == "run failed":
            self.made.discard(self.rigs.get(backend, backend))
            self.failures.append((line, at, self.attempts.get(run)))

    def _measure(self, what: str, at: datetime, name: str) -> None:
        part, ends = _PARTS.get(str(self.last.get("what")), (None, set[str]()))
        if part and what in ends and self.last_at:
            self.spent[part].append((name, max((at - self.last_at).total_seconds(), 0.0)))


def _instant(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return None
