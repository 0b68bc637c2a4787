"""Turns the output of a command into lines, and lines into phases. Pure."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from plimsoll.scenarios.running.client import Trouble
from plimsoll.scenarios.xenforo.installer import CommandOutput, StepNames, Texts, says

_LONGEST_BYTES = 1 << 16
_ENDS = re.compile(rb"\r\n|\r|\n")
_FATAL = re.compile(r"PHP (?:Fatal|Parse) error:|^(?:Fatal|Parse) error:", re.M)
_DISK = re.compile(r"No space left on device|Errcode: 28\b|The table '[^']*' is full")


class LineSplitter:
    """Cuts bytes into lines as they come; a carriage return (of a progress bar) ends one, too."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the lines that are whole now, empty ones left out; an endless one is cut at 64 KiB."""
        *whole, self._rest = _ENDS.split(self._rest + data)
        while len(self._rest) > _LONGEST_BYTES:
            whole.append(self._rest[:_LONGEST_BYTES])
            self._rest = self._rest[_LONGEST_BYTES:]
        for line in whole:
            if line.strip():
                yield line.decode("utf-8", errors="replace")

    def end(self) -> Iterator[str]:
        """Yield the last line, if no line feed ended it."""
        yield from self.feed(b"\n")


@dataclass(frozen=True)
class OutputPhase:
    """The time between two lines that name phases; instants of the monotonic clock."""

    name: str
    start_ns: int
    end_ns: int


class PhaseFinder:
    """Finds the phases in lines: one lasts from a line that names it to the next such line."""

    def __init__(self, pattern: str | None, start_ns: int) -> None:
        self._pattern = re.compile(pattern) if pattern else None
        self._names, self._name, self._start_ns = StepNames(), "begin", start_ns

    def line(self, text: str, t_ns: int) -> OutputPhase | None:
        """Return the piece that this line ends, if it does."""
        found = self._pattern.search(text) if self._pattern else None
        return self._next(self._names.name(found[1] or ""), t_ns) if found else None

    def end(self, t_ns: int) -> OutputPhase:
        """Return the last piece."""
        return self._next("", t_ns)

    def _next(self, name: str, t_ns: int) -> OutputPhase:
        piece = OutputPhase(self._name, self._start_ns, t_ns)
        self._name, self._start_ns = name, t_ns
        return piece


class LastLines:
    """The last lines of the output, which tell the outcome."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=50)

    def line(self, text: str) -> None:
        """Take one more line."""
        self._lines.append(text)

    def text(self, most: int = 50) -> str:
        """Return the last `most` lines."""
        return "\n".join(list(self._lines)[-most:])


def judge_output(
    command: CommandOutput, texts: Texts, exit_status: int | None, signal: str, tail: LastLines
) -> Trouble | None:
    """Return the trouble of a command that has ended, or None. `signal` is empty if none killed it."""
    text, last = tail.text(), tail.text(3).replace("\n", " | ")
    if _DISK.search(text):
        return Trouble("out_of_disk", last)
    if _FATAL.search(text):
        return Trouble("php_fatal", last)
    if exit_status == 0 and says(" ".join(text.split()), command.complete):
        return None
    if says(text, texts.locked):
        return Trouble("upgrade_locked", last)
    if says(text, texts.up_to_date):
        return Trouble("wrong_version", f"nothing to upgrade: {last}")
    if signal:
        return Trouble("upgrade_failed", f"the command was killed by signal {signal}: {last}")
    if exit_status is None:
        return Trouble("closed_early", f"the connection ended before the command did: {last}")
    if exit_status:
        return Trouble("upgrade_failed", f"the command exited with {exit_status}: {last}")
    return Trouble(
        "upgrade_failed", f"the command exited with 0, but did not say {command.complete!r}: {last}"
    )
