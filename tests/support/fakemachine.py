"""A Machine whose files and programs are tables."""

from collections.abc import AsyncIterator, Callable, Sequence

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import CommandResult, Line

Answer = Callable[[tuple[str, ...], bytes | None], CommandResult | None]


class FakeProcess:
    """A process that wrote its lines at once, and ends when it is told to."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.stopped = False
        self.broken = False

    async def lines(self) -> AsyncIterator[Line]:
        for text in self._lines:
            yield Line("out", text, 0)

    async def wait(self) -> int:
        return 0

    async def stop(self, grace_s: float = 5.0) -> int:
        self.stopped = True
        if self.broken:
            raise MachineError("far", "the connection broke")
        return 143


class FakeMachine:
    """Reads `files` through the script that the lab has for it; `tee` writes them; the rest is `answers`."""

    def __init__(self, files: dict[str, str] | None = None, answers: dict[str, str] | None = None) -> None:
        self.name = "far"
        self.files, self.answers = files or {}, answers or {}
        self.ran: list[tuple[str, ...]] = []
        self.refuses: Callable[[tuple[str, ...], bytes | None], bool] = lambda _command, _stdin: False
        self.process = FakeProcess([])

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> CommandResult:
        line = tuple(command)
        self.ran.append(line)
        if self.refuses(line, stdin):
            raise MachineError(self.name, "ended with status 1", line, "Invalid argument", 1)
        if line[:2] == ("sh", "-c"):
            out = "\x1e" + "".join(self.files.get(path, "") + "\x1e" for path in line[4:])
            return CommandResult(line, 0, out, "")
        if line[0] == "tee":
            assert stdin is not None
            if line[1] not in self.files:
                raise MachineError(self.name, "ended with status 1", line, "No such file or directory", 1)
            self.files[line[1]] = stdin.decode()
            return CommandResult(line, 0, stdin.decode(), "")
        for start, out in self.answers.items():
            if " ".join(line).startswith(start):
                return CommandResult(line, 0, out, "")
        if check:
            raise MachineError(self.name, "ended with status 127", line, "not found", 127)
        return CommandResult(line, 127, "", "not found")

    async def start(self, command: Sequence[str]) -> FakeProcess:
        self.ran.append(tuple(command))
        return self.process

    async def read_text(self, path: str) -> str:
        if path not in self.files:
            raise MachineError(self.name, f"{path} cannot be read")
        return self.files[path]

    async def close(self) -> None:
        return None

    @property
    def changes(self) -> list[str]:
        """The commands that change something, as one would type them."""
        return [
            " ".join(line)
            for line in self.ran
            if line[0] == "tee" or line[:2] in (("zfs", "set"), ("zfs", "inherit"))
        ]
