"""Errors that end a command, the severity of findings that do not, and "did you mean".

Every error's message is one sentence for whoever typed the command.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import StrEnum
from typing import Protocol, TypeVar


class PlimsollError(Exception):
    """Anything that the user can correct; the command prints the message and exits 2."""


class SettingsError(PlimsollError):
    """Options or a file that cannot be used; the message has all problems, a line each."""


class RunDirectoryError(PlimsollError):
    """The directory is not a run directory, or not one that can be read."""


class FormatVersionError(RunDirectoryError):
    """The run directory was written in a format that this version does not know."""


class DamagedFileError(RunDirectoryError):
    """A file of the run directory does not hold what docs/run-format.md says."""


class NoRequestsError(RunDirectoryError):
    """The run directory does not hold a single whole record."""


class OutputError(PlimsollError):
    """The report cannot be written where it should go."""


class HistoryError(PlimsollError):
    """The history of runs cannot be opened, read or written."""


class Severity(StrEnum):
    """Most severe first. `BAD`: do not trust the figures."""

    BAD = "bad"
    WARN = "warn"
    NOTE = "note"


class _HasSeverity(Protocol):
    """Anything that has a severity."""

    @property
    def level(self) -> Severity:
        """Its severity."""


_Finding = TypeVar("_Finding", bound=_HasSeverity)
_ORDER = list(Severity)


def gravest_first(findings: Iterable[_Finding]) -> list[_Finding]:
    """Return `findings` by severity; those of one severity keep their order. Pure."""
    return sorted(findings, key=lambda finding: _ORDER.index(finding.level))


def did_you_mean(said: object, known: Iterable[str]) -> str:
    """Return `: did you mean X?` where one of `known` is nearly what was written, else nothing."""
    by_word = {one.lower().replace("-", "_"): one for one in known}
    word = str(said).lower().replace("-", "_")
    near = get_close_matches(word, by_word, 1, 0.65) or [one for one in by_word if one.startswith(f"{word}_")]
    return f": did you mean {by_word[near[0]]}?" if near else ""
