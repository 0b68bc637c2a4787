"""The journal of an experiment: what happened, in order, so that it can go on after a crash.

Whoever carries the experiment out holds a lock on it, which the kernel takes back when that process ends.

Which runs are finished is not read from it: a finished run is a directory that stands in `runs/`. Nor is what
is there of clones and disks: that is looked for, by name.
"""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll.common.files import sync_to_disk
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.files import append_line, read_lines

_TRIED_AGAIN = "tried again"
_PATIENCE_S = 2.0  # whoever looks whether it is held, holds it for an instant


class Journal:
    """`journal.jsonl` of an experiment's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str, *, sync: bool = True, **further: Any) -> None:
        """Append what happened, with `sync` down to the disk. Raises OutputError."""
        line = {"at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}", "what": what, **further}
        append_line(self.path, line, sync)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold it while the experiment is carried out. Raises LabError where another process does."""
        new = not self.path.exists()
        with self.path.open("ab") as file:
            if new:
                sync_to_disk(self.path.parent)
            until_s = time.monotonic() + _PATIENCE_S
            while not _locked(file.fileno(), fcntl.LOCK_EX):
                if time.monotonic() > until_s:
                    raise LabError(f"{self.path.parent}: another process carries this experiment out")
                time.sleep(0.05)
            yield

    @property
    def is_held(self) -> bool:
        """True while a process of this machine carries the experiment out."""
        try:
            with self.path.open("rb") as file:
                return not _locked(file.fileno(), fcntl.LOCK_SH)
        except FileNotFoundError:
            return False

    def attempt(self, run: str) -> str | None:
        """Return the name of the folder of the last try of `run`, None where it came to none."""
        found = None
        for line in read_lines(self.path):
            if line.get("run") == run and line.get("what") in ("run begun", "attempt"):
                found = line.get("attempt")
        return found

    def tries(self, run: str) -> int:
        """Return how often `run` was begun."""
        return sum(
            line.get("what") == "run begun" and line.get("run") == run for line in read_lines(self.path)
        )

    @property
    def ended(self) -> bool:
        """True if the experiment came to its end and was not begun again since."""
        last = [line["what"] for line in read_lines(self.path) if line.get("what") in ("begun", "ended")]
        return bool(last) and last[-1] == "ended"

    def failures(self, backend: str, scenario: str | None = None) -> int:
        """Return how often in a row `scenario` failed on `backend`, up to now.

        Without `scenario`: how often the backend did by itself, so that no scenario came to begin.
        """
        count = 0
        for line in read_lines(self.path):
            what, of = line.get("what", ""), line.get("scenario")
            if what == _TRIED_AGAIN:
                count = 0
            if line.get("backend") != backend or what not in ("run failed", "run finished"):
                continue
            if what == "run failed" and of == scenario:
                count += 1
            elif scenario is None or (what == "run finished" and of == scenario):
                count = 0
        return count

    @property
    def set_aside(self) -> dict[str, str]:
        """What was set aside, and why: a backend, or a scenario on a backend, by `aside_name`."""
        found: dict[str, str] = {}
        for line in read_lines(self.path):
            if line.get("what") == _TRIED_AGAIN:
                found.clear()
            if line.get("what") == "set aside" and isinstance(line.get("backend"), str):
                found[aside_name(line["backend"], line.get("scenario"))] = str(line.get("why", ""))
        return found

    def try_again(self) -> None:
        """Note that nothing is set aside any more; failures count from here on. Raises OutputError."""
        self.note(_TRIED_AGAIN)


def aside_name(backend: str, scenario: str | None) -> str:
    """Return what is set aside, as people read it; without `scenario` it is the backend. Pure."""
    return f"{scenario} on {backend}" if scenario else backend


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
