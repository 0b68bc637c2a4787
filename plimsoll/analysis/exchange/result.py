"""The result of an import."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class ImportResult:
    """Results of another program that are a run directory now, and what was not in order with them."""

    source: str
    directory: Path
    status: str
    reason: str | None
    requests: int
    broken_lines: int
    notes: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """True where every line could be read."""
        return self.status == "complete" and not self.broken_lines

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints of it."""
        return {
            "source": self.source,
            "directory": str(self.directory),
            "status": self.status,
            "reason": self.reason,
            "requests": self.requests,
            "broken_lines": self.broken_lines,
            "notes": self.notes,
        }

    def lines(self) -> list[str]:
        """Return what the command prints."""
        said = [] if self.reason is None else [f"  {self.status}: {self.reason}"]
        return [f"{self.directory}: {self.requests} requests from {self.source}", *said] + [
            f"  {note}" for note in self.notes
        ]
