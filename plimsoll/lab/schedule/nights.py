"""The outcomes of the nights, in nights.json, and the nights that were missed."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from plimsoll.common.errors import OutputError, SettingsError
from plimsoll.common.validation import sentence_of
from plimsoll.lab.schedule.calendar import Calendar, dues
from plimsoll.lab.schedule.steps import Write, carry_out

KEPT = 400
GRACE = timedelta(minutes=5)  # a night that begins later than this counts as missed
_FURTHEST = timedelta(days=400)

NightOutcome = Literal[
    "running",  # or was killed: whoever holds the lock knows
    "passed",
    "regression",
    "undecided",
    "failed",
    "wrong",
    "interrupted",
    "killed",
    "skipped",
    "missed",
]
BAD = frozenset({"regression", "undecided", "failed", "wrong", "interrupted", "killed"})
AGAIN = frozenset({"interrupted", "killed"})  # after these, the night is not done


class Night(BaseModel):
    """One night. `due` is None where it was begun by hand; exit codes are None where nothing was run."""

    model_config = ConfigDict(extra="ignore")

    due: AwareDatetime | None
    began: AwareDatetime | None = None
    ended: AwareDatetime | None = None
    outcome: NightOutcome
    folder: str | None = None
    resumed: bool = False
    experiment: int | None = None
    regress: int | None = None
    exit: int | None = None
    said: str = ""


class _File(BaseModel):
    format: Literal[1] = 1
    nights: list[Night] = []


class Nights:
    """The file nights.json in a timer's folder: the last 400 nights, the latest at the end."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "nights.json"
        self._lock = folder / "nights.lock"

    def read(self) -> list[Night]:
        """Return the nights. Raises SettingsError."""
        try:
            return _File.model_validate_json(self.path.read_bytes()).nights
        except FileNotFoundError:
            return []
        except OSError as error:
            raise SettingsError(f"{self.path}: cannot be read: {error.strerror}") from None
        except ValidationError as error:
            raise SettingsError(
                f"{self.path}: was not written by this version: {sentence_of(error)}; move it away"
            ) from None

    def change(self, how: Callable[[list[Night]], Iterable[Night]]) -> None:
        """Put `how(nights)` in their place, whole; two processes take turns. Raises PlimsollError."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise OutputError(f"{self._lock}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            kept = list(how(self.read()))[-KEPT:]
            text = _File(nights=kept).model_dump_json(indent=1) + "\n"
            carry_out([Write("the nights", self.path, text)])
        finally:
            os.close(descriptor)

    def add(self, *nights: Night) -> None:
        """Append `nights`."""
        self.change(lambda before: [*before, *nights])

    def settle(self, night: Night) -> None:
        """Put `night` in the place of the one that began when it did."""
        self.change(
            lambda before: [
                night if one.began == night.began and one.outcome == "running" else one for one in before
            ]
        )


def missed(
    nights: Iterable[Night], calendar: Calendar, zone: tzinfo, since: datetime, until: datetime
) -> list[Night]:
    """Return the nights due after `since`, up to `until`, that nobody recorded: missed, or skipped while an
    earlier one ran. Pure.
    """  # noqa: D205 one sentence
    nights = list(nights)
    known = {night.due for night in nights}
    since = max(since, until - _FURTHEST)
    found = []
    for due in dues(calendar, zone, since, until):
        if due in known:
            continue
        before = still_running(nights, due)
        if before is None:
            found.append(Night(due=due, outcome="missed", said="nothing ran"))
        else:
            found.append(Night(due=due, outcome="skipped", said=still(before)))
    return found


def still_running(nights: Iterable[Night], due: datetime) -> Night | None:
    """Return the night that was running at `due`, None where there was none. Pure."""
    for night in nights:
        if night.began is not None and night.began <= due and night.outcome not in ("skipped", "killed"):
            over = due < night.ended if night.ended else night.outcome == "running"
            if over and night.due != due:
                return night
    return None


def nobody_runs(nights: list[Night]) -> list[Night]:
    """Return `nights` for when nobody holds the lock: one noted as running was killed. Pure."""
    said = {"outcome": "killed", "said": "killed, or the machine went down; the next night continues it"}
    return [night.model_copy(update=said) if night.outcome == "running" else night for night in nights]


def still(night: Night) -> str:
    """Return the note on a night that did not begin because of `night`."""
    return f"skipped: still running since {night.began:%Y-%m-%d %H:%M:%S} UTC"


def runs(folder: Path) -> bool:
    """Return whether a night of the timer in `folder` runs. Changes nothing."""
    if not (folder / "lock").exists():
        return False
    with held(folder) as lock:
        return lock is None


@contextlib.contextmanager
def held(folder: Path) -> Iterator[int | None]:
    """Hold the lock of the timer in `folder`; yields its descriptor, None where somebody else holds it.

    A process that inherits the descriptor holds it too: while an experiment that outlives this process
    runs, no other begins. Raises OutputError.
    """
    path = folder / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield descriptor
    finally:
        os.close(descriptor)
