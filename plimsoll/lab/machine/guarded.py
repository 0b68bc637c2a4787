"""A command under the guard, on whatever machine: the same for a local process and for one over SSH."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Literal, Protocol, TypeVar

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine.linesplit import LineSplit, text_of
from plimsoll.lab.machine.machine import Done, Line

_CHUNK_BYTES = 1 << 16
_MOST_BYTES = 16 << 20  # that `run` keeps of a stream
_MOST_LINES = 10_000  # that wait to be read; then the command waits


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


async def begun_or_ended(beginning: Awaitable[Begun]) -> Begun:
    """Return the channel of a command that begins; cancelled meanwhile, it first ends that command.

    Cancelled in the middle, a command could have begun already, and nobody would hold the line to its guard.
    """
    begun = asyncio.ensure_future(beginning)
    try:
        return await asyncio.shield(begun)
    except asyncio.CancelledError:
        with contextlib.suppress(MachineError):
            await _ended(await begun)
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
) -> Done:
    """Run a command whose guard was just started to its end. Raises MachineError as Machine.run does."""
    outputs = _Output(channel.out), _Output(channel.err)
    try:
        async with asyncio.timeout(timeout_s):
            if stdin:
                await channel.send(stdin)
            await asyncio.gather(*(output.fill(channel) for output in outputs))
            status = await channel.status()
    except TimeoutError:
        await _ended(channel)
        raise MachineError(machine, f"did not end within {timeout_s:g} s", command) from None
    except BaseException:
        await _ended(channel)
        raise
    out, err = (text_of(bytes(output.data)) for output in outputs)
    if any(output.too_long for output in outputs):
        raise MachineError(machine, f"printed more than {_MOST_BYTES >> 20} MiB", command)
    if check and status:
        raise MachineError(machine, f"ended with status {status}", command, err, status)
    return Done(tuple(command), status, out, err)


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


async def _ended(channel: Channel) -> None:
    """Close the guard's input, and wait until it has ended the command, whose pipes must not be full."""
    channel.close()
    with contextlib.suppress(MachineError):
        await asyncio.shield(asyncio.gather(_drained(channel.out), _drained(channel.err), channel.status()))


async def _drained(reader: Reader) -> None:
    while await _some(reader):
        pass


async def _some(reader: Reader) -> bytes:
    """Return the next bytes; a broken connection ends them, and `status` then says so."""
    try:
        return await reader.read(_CHUNK_BYTES)
    except OSError:
        return b""
