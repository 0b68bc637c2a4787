"""A machine that tells every command before it is run: for what is no list of steps, such as a saturator."""

from collections.abc import Callable, Sequence

from plimsoll.lab.machine import Done, Machine, Process
from plimsoll.lab.steps.step import Command

Record = Callable[[Command], None]

_CHANGE = (("tee",), ("zfs", "set"), ("zfs", "inherit"))


def changes_settings(words: Sequence[str]) -> bool:
    """Return whether a command of lab.tuning changes something; the others only look. Pure."""
    return any(tuple(words[: len(start)]) == start for start in _CHANGE)


class RecordedMachine:
    """A Machine that records the commands run on `machine`: those that `which` accepts, by default all."""

    def __init__(
        self, machine: Machine, tell: Record, which: Callable[[Sequence[str]], bool] = lambda _: True
    ) -> None:
        self.name, self._machine, self._tell, self._which = machine.name, machine, tell, which

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> Done:
        """Run `command` to its end. Raises MachineError."""
        if self._which(command):
            said = None if stdin is None else stdin.decode(errors="replace")
            self._tell(Command("", tuple(command), stdin=said))
        return await self._machine.run(command, stdin=stdin, timeout_s=timeout_s, check=check)

    async def start(self, command: Sequence[str]) -> Process:
        """Start `command`. Raises MachineError."""
        self._tell(Command("", tuple(command)))
        return await self._machine.start(command)

    async def read_text(self, path: str) -> str:
        """Return the content of the file at `path`. Raises MachineError."""
        return await self._machine.read_text(path)

    async def close(self) -> None:
        """Leave it open: it is somebody else's."""
