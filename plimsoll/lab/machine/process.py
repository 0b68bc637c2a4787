"""One command under the guard: started, read line by line, and ended with all that it left running.

It is the same for a process here and for one over SSH.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from plimsoll.lab.errors import MachineError

_CHUNK_BYTES = 1 << 16
_MOST_BYTES = 16 << 20  # that `run` keeps of a stream
_MOST_LINES = 10_000  # that wait to be read; then the command waits
_END = re.compile(rb"\r?\n|\r(?=[^\n])")  # at the end of a piece, a carriage return waits for what follows
_LONGEST_BYTES = 1 << 16  # an endless line must not fill the memory: longer lines come in pieces


@dataclass(frozen=True)
class CommandResult:
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


class Reader(Protocol):
    """One stream of a command."""

    async def read(self, n: int = -1, /) -> bytes:
        """Return up to `n` bytes as soon as there are any; none at its end."""
        ...


class Channel(Protocol):
    """The guard's input and outputs."""

    out: Reader
    err: Reader

    async def send(self, data: bytes) -> None:
        """Write to the guard's input; an error here tells no more than its status does."""
        ...

    async def status(self) -> int:
        """Return the guard's status when it has ended. Raises MachineError where the connection broke."""
        ...

    def close(self) -> None:
        """End the guard's input: it ends the command."""
        ...


Begun = TypeVar("Begun", bound=Channel)


async def begin_or_end(beginning: Awaitable[Begun]) -> Begun:
    """Return the channel of a command that begins; cancelled meanwhile, it first ends that command.

    Cancelled in the middle, a command could have begun already, and nobody would hold the line to its guard.
    """
    begun = asyncio.ensure_future(beginning)
    try:
        return await asyncio.shield(begun)
    except asyncio.CancelledError:
        with contextlib.suppress(MachineError):
            await _end_command(await begun)
        raise


class GuardedProcess:
    """A Process."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._queue: asyncio.Queue[Line | None] = asyncio.Queue()
        self._room = asyncio.Event()
        self._asked = self._stopping = False
        self._pumps = asyncio.gather(self._pump("out", channel.out), self._pump("err", channel.err))
        self._pumps.add_done_callback(lambda _: self._queue.put_nowait(None))

    @property
    def runs(self) -> bool:
        """True while the command may still write."""
        return not self._pumps.done()

    def lines(self) -> AsyncIterator[Line]:
        """Yield what it writes as it comes."""
        self._asked = True
        return self._lines()

    async def _lines(self) -> AsyncIterator[Line]:
        while (line := await self._queue.get()) is not None:
            self._room.set()
            yield line

    async def wait(self) -> int:
        """Return its status when it has ended."""
        if not self._asked:
            async for _ in self.lines():
                pass
        return await self._channel.status()

    async def stop(self, grace_s: float = 5.0) -> int:
        """End its whole process group."""
        self._stopping = True
        self._room.set()
        await self._channel.send(b"TERM\n")
        ended = asyncio.ensure_future(self._channel.status())
        await asyncio.wait([ended], timeout=grace_s)
        if not ended.done():
            await self._channel.send(b"KILL\n")
        return await ended

    async def _pump(self, stream: Literal["out", "err"], reader: Reader) -> None:
        split = LineSplit()
        while data := await _some(reader):
            t_ns = time.monotonic_ns()
            for text in split.feed(data):
                self._queue.put_nowait(Line(stream, text, t_ns))
            while self._queue.qsize() > _MOST_LINES and not self._stopping:
                self._room.clear()
                await self._room.wait()
        for text in split.end():
            self._queue.put_nowait(Line(stream, text, time.monotonic_ns()))


async def run_guarded(
    machine: str, command: Sequence[str], channel: Channel, stdin: bytes | None, timeout_s: float, check: bool
) -> CommandResult:
    """Run a command whose guard was just started to its end. Raises MachineError as Machine.run does."""
    outputs = _Output(channel.out), _Output(channel.err)
    try:
        async with asyncio.timeout(timeout_s):
            if stdin:
                await channel.send(stdin)
            await asyncio.gather(*(output.fill(channel) for output in outputs))
            status = await channel.status()
    except TimeoutError:
        await _end_command(channel)
        raise MachineError(machine, f"did not end within {timeout_s:g} s", command) from None
    except BaseException:
        await _end_command(channel)
        raise
    out, err = (decode_output(bytes(output.data)) for output in outputs)
    if any(output.too_long for output in outputs):
        raise MachineError(machine, f"printed more than {_MOST_BYTES >> 20} MiB", command)
    if check and status:
        raise MachineError(machine, f"ended with status {status}", command, err, status)
    return CommandResult(tuple(command), status, out, err)


class _Output:
    """The output of a command on one stream."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.data = bytearray()

    @property
    def too_long(self) -> bool:
        return len(self.data) > _MOST_BYTES

    async def fill(self, channel: Channel) -> None:
        """Read to the end; too much ends the command."""
        while piece := await _some(self._reader):
            if not self.too_long:
                self.data += piece
                if self.too_long:
                    channel.close()


async def _end_command(channel: Channel) -> None:
    """Close the guard's input, and wait until it has ended the command, whose pipes must not be full."""
    channel.close()
    with contextlib.suppress(MachineError):
        await asyncio.shield(asyncio.gather(_drain(channel.out), _drain(channel.err), channel.status()))


async def _drain(reader: Reader) -> None:
    while await _some(reader):
        pass


async def _some(reader: Reader) -> bytes:
    """Return the next bytes; a broken connection ends them, and `status` then says so."""
    try:
        return await reader.read(_CHUNK_BYTES)
    except OSError:
        return b""


# Its input is the line to the caller: a signal's name goes to the command's process group; its end (the
# caller died, the connection broke) ends the group. $1 is the number of bytes that come first, as the
# command's own input: they are kept in a file without a name, since the line must stay free; if they are
# cut short, the command is not started.
# The command is a background job, so it starts with SIGINT ignored: it is ended by TERM.
# Once the command has ended, what is left of its group gets TERM, and KILL after 5 s.
_GUARD = r"""_bytes=$1; shift
exec 3<&0 4</dev/null
if [ -n "$_bytes" ]; then
    _file=$(mktemp) || exit 125
    head -c "$_bytes" <&3 >"$_file"
    exec 4<"$_file"
    _came=$(wc -c <"$_file"); rm -f "$_file"
    [ "$_came" -eq "$_bytes" ] || { echo "its input did not arrive completely" >&2; exit 125; }
fi
setsid "$@" <&4 3<&- 4<&- &
_child=$!
exec 4<&- >/dev/null 2>&1
tell() { kill -s "$1" -- "-$_child" || kill -s "$1" "$_child"; } # it may have no group yet
fade() {
    _tenths=50
    while [ "$_tenths" -gt 0 ] && kill -s 0 -- "-$_child"; do sleep 0.1; _tenths=$((_tenths - 1)); done
    kill -s KILL -- "-$_child"
}
{
    while read -r _signal; do tell "$_signal"; done
    tell TERM
    fade
} <&3 &
_listener=$!
exec 3<&-
wait "$_child"
_status=$?
kill -s TERM -- "-$_child" && fade
kill "$_listener"
exit "$_status"
"""


def guard_command(command: Sequence[str], stdin_bytes: int | None, become: bool) -> list[str]:
    """Return `command` under the guard; `stdin_bytes` of input come first, `become` makes it root. Pure."""
    before = ["sudo", "-n", "--"] if become else []
    return [*before, "sh", "-c", _GUARD, "sh", "" if stdin_bytes is None else str(stdin_bytes), *command]


def decode_output(data: bytes) -> str:
    r"""Return `data` as text; what is not UTF-8 is spelled out (`\xff`)."""
    return data.decode("utf-8", "backslashreplace")


class LineSplit:
    """Takes pieces of bytes, and gives the lines that they complete.

    What stands behind a carriage return, or before one that ends a piece, is given at once: a program writes
    the end of that line only with its next one. If more of it comes, it is given again, whole.
    """

    def __init__(self) -> None:
        self._rest = self._given = b""
        self._is_progress = False  # the rest stands behind a carriage return

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that `data` completes, without their ends."""
        data, at, lines = self._rest + data, 0, list[bytes]()
        for end in _END.finditer(data):
            lines.append(data[at : end.start()])
            at, self._is_progress = end.end(), end[0] == b"\r"
        self._rest = data[at:]
        if lines:
            lines = lines[bool(self._given and lines[0] == self._given) :]
            self._given = b""
        while len(self._rest) > _LONGEST_BYTES:
            lines.append(self._rest[:_LONGEST_BYTES])
            self._rest = self._rest[_LONGEST_BYTES:]
        begun = self._rest.removesuffix(b"\r")
        if begun and begun != self._given and (self._is_progress or begun != self._rest):
            lines.append(begun)
            self._given = begun
        return [decode_output(line) for line in lines]

    def end(self) -> list[str]:
        """Return the last line where it had no end."""
        rest, self._rest = self._rest.removesuffix(b"\r"), b""
        return [decode_output(rest)] if rest and rest != self._given else []
