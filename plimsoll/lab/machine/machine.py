"""A machine, and what runs on it: the interface that the rest of the lab is written against."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Done:
    """A command that ended. `status` is 128 + N where signal N ended it, as in a shell."""

    command: tuple[str, ...]
    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Line:
    """A line that a command wrote, without its end, and when it came (monotonic ns of this machine)."""

    stream: Literal["out", "err"]
    text: str
    t_ns: int


class Process(Protocol):
    """A command that runs. It has a process group of its own, and no input."""

    def lines(self) -> AsyncIterator[Line]:
        """Yield what it writes as it comes, until it ends. Asked for again, it goes on where it was left."""
        ...

    async def wait(self) -> int:
        """Return its status when it has ended. Output not read by `lines` is thrown away."""
        ...

    async def stop(self, grace_s: float = 5.0) -> int:
        """End its whole process group: TERM, and KILL after `grace_s` seconds. Returns its status."""
        ...


class Machine(Protocol):
    """A machine that runs commands: lists of arguments, never a line for a shell.

    A command runs in a session of its own. What it leaves running in its process group ends with it, and
    all of it ends when this program dies or the connection breaks.
    """

    name: str  # "local", or the host's name in lab.yml

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> Done:
        """Run `command` to its end.

        Raises MachineError where it cannot be run, takes longer than `timeout_s` seconds, writes more than
        16 MiB, or (with `check`) its status is not 0.
        """
        ...

    async def start(self, command: Sequence[str]) -> Process:
        """Start `command`. Raises MachineError where the machine cannot be reached."""
        ...

    async def read_text(self, path: str) -> str:
        """Return the content of the file at `path`, also below /proc. Raises MachineError."""
        ...

    async def close(self) -> None:
        """End the connection, where there is one, and what still runs over it."""
        ...
