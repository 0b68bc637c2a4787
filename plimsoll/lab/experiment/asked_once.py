"""A machine that is asked each question once: for looks, among which nothing changes."""

from collections.abc import Sequence

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Done, Machine, Process

_Question = tuple[tuple[str, ...], bytes | None]


class AskedOnce:
    """A Machine that answers from memory what was asked before. Not for two who ask at the same time."""

    def __init__(self, machine: Machine) -> None:
        self.name, self._machine = machine.name, machine
        self._known: dict[_Question, Done | MachineError] = {}

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> Done:
        """Run `command` to its end, or recall what came of it. Raises MachineError."""
        question = (tuple(command), stdin)
        if question not in self._known:
            try:
                done = await self._machine.run(command, stdin=stdin, timeout_s=timeout_s, check=False)
                self._known[question] = done
            except MachineError as error:
                self._known[question] = error
        known = self._known[question]
        if isinstance(known, MachineError):
            raise known
        if check and known.status:
            raise MachineError(
                self.name, f"ended with status {known.status}", command, known.err, known.status
            )
        return known

    async def start(self, command: Sequence[str]) -> Process:
        """Start `command`. Raises MachineError."""
        return await self._machine.start(command)

    async def read_text(self, path: str) -> str:
        """Return the content of the file at `path`. Raises MachineError."""
        return await self._machine.read_text(path)

    async def close(self) -> None:
        """Leave it open: it is somebody else's."""
