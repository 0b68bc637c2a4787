"""The journal of an experiment: what happened, in order, so that it can go on after a crash.

Which runs are finished is not read from it: a finished run is a directory that stands in `runs/`. Nor is what
is there of clones and disks: that is looked for, by name.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab.experiment.files import append_line, read_lines


class Journal:
    """`journal.jsonl` of an experiment's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str, **further: Any) -> None:
        """Append what happened, down to the disk. Raises OutputError."""
        append_line(self.path, {"at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}", "what": what, **further})

    @property
    def ended(self) -> bool:
        """True if the experiment came to its end and was not begun again since."""
        last = [line["what"] for line in read_lines(self.path) if line.get("what") in ("begun", "ended")]
        return bool(last) and last[-1] == "ended"

    def failures(self, backend: str) -> int:
        """Return the number of runs of `backend` that failed in a row, up to now."""
        count = 0
        for line in read_lines(self.path):
            if line.get("backend") == backend:
                count = {"run failed": count + 1, "run finished": 0}.get(line.get("what", ""), count)
        return count

    @property
    def set_aside(self) -> dict[str, str]:
        """The backends that were set aside, and why."""
        return {
            line["backend"]: str(line.get("why", ""))
            for line in read_lines(self.path)
            if line.get("what") == "set aside" and isinstance(line.get("backend"), str)
        }
