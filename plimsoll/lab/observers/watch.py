"""Keeps a command running on the host that prints its figures, and passes its lines on."""

from collections.abc import Sequence
from typing import Protocol

from plimsoll.lab.machine import Machine
from plimsoll.lab.observers.counters import Column, Pair
from plimsoll.lab.observers.linestream import LineStream
from plimsoll.lab.observers.observer import Say

END = "\x1e"  # a line of its own after each round; ASCII's record separator, which no program prints


class Taker(Protocol):
    """Takes lines as they come, and gives what they say once a second."""

    def add(self, line: str) -> None:
        """Take a line of standard output."""
        ...

    def take(self) -> Pair:
        """Return the figures since the last call."""
        ...


def rounds(commands: str, every_s: int, words: Sequence[str]) -> list[str]:
    """Return a command that runs `commands` of a shell again and again, with `END` after each round. Pure.

    They find `words` in "$@". The shell and what it runs end with the process group.
    """
    script = f"while :; do {commands}; printf '\\036\\n'; sleep {every_s}; done"
    return ["sh", "-c", script, "sh", *words]


class Watch:
    """One running command; a Stream."""

    def __init__(
        self,
        name: str,
        columns: tuple[Column, ...],
        machine: Machine,
        command: Sequence[str],
        taker: Taker,
        shown: str,
    ) -> None:
        """`shown` is what messages call the command."""
        self.name, self.columns, self._taker = name, columns, taker
        self._lines = LineStream(name, machine, command, taker.add, shown)

    async def start(self, say: Say) -> None:
        """Start the process. Raises MachineError."""
        await self._lines.start(say)

    def sample(self) -> list[float | None]:
        """Return the figures that came since the last call."""
        pair = self._taker.take()
        return [column.formula(pair) for column in self.columns]

    async def stop(self) -> None:
        """End the process."""
        await self._lines.stop()
