"""A machine on which what is run counts against a disk's limits: for saturators and the like."""

from collections.abc import Sequence

from plimsoll.lab.disks.limits import joined
from plimsoll.lab.machine import Done, Machine, Process


class LimitedMachine:
    """A Machine whose commands join a control group before they begin."""

    def __init__(self, machine: Machine, group: str) -> None:
        """`group`: a place's, filled in."""
        self._machine, self._group = machine, group
        self.name = machine.name

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> Done:
        """See Machine."""
        return await self._machine.run(
            joined(self._group, command), stdin=stdin, timeout_s=timeout_s, check=check
        )

    async def start(self, command: Sequence[str]) -> Process:
        """See Machine."""
        return await self._machine.start(joined(self._group, command))

    async def read_text(self, path: str) -> str:
        """See Machine."""
        return await self._machine.read_text(path)

    async def close(self) -> None:
        """Leave the machine open: it is somebody else's."""
