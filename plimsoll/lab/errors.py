"""The errors of the lab. Every message is one sentence for whoever typed the command."""

import shlex
from collections.abc import Sequence

from plimsoll.common.errors import PlimsollError
from plimsoll.common.hostile import redact

_LONGEST = 200


class LabError(PlimsollError):
    """Anything in the lab that the user can put right."""


class MachineError(LabError):
    """A machine cannot be reached, or a command on it did not do what it is for: in one line.

    Without `command` the error is the machine's own. `doing` says what the command was for. `words` is the
    last line that the command wrote to its errors, without secrets; `status` is None where there is none.
    """

    def __init__(
        self,
        machine: str,
        what: str,
        command: Sequence[str] = (),
        err: str = "",
        status: int | None = None,
        doing: str = "",
    ) -> None:
        self.machine, self.what, self.command, self.status = machine, what, tuple(command), status
        self.words = redact(last_words(err))
        parts = [machine, doing, _describe_command(command, doing), what, self.words]
        super().__init__(": ".join(part for part in parts if part))

    def while_doing(self, doing: str) -> "MachineError":
        """Return the same error that says what the command was for, where there was one."""
        if not self.command:
            return self
        return MachineError(self.machine, self.what, self.command, self.words, self.status, doing)


def last_words(text: str) -> str:
    """Return the last line of `text` that is not empty, cut to 200 characters."""
    lines = [line.strip() for line in text[-10_000:].splitlines() if line.strip()]
    return _shorten(lines[-1]) if lines else ""


def _describe_command(command: Sequence[str], doing: str) -> str:
    """Return `command` in one line; a script is not for people to read, and is left out of it."""
    if not any("\n" in word for word in command):
        return _shorten(redact(shlex.join(command))) if command else ""
    if doing:
        return ""
    return _shorten(redact(" ".join("…" if "\n" in word else shlex.quote(word) for word in command)))


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
