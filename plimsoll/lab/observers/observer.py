"""The contract of an observer: counters that it reads become columns of `host.csv`.

An observer is part of a file of this package, and a line in its `__init__`. It reads files, which are read
for all observers at once, or follows a process of its own that prints its figures.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import Field

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import LocalMachine, Machine, Process
from plimsoll.lab.names import DeviceName, PoolName, StrictModel, explained_in
from plimsoll.lab.steps.step import Check

Log = Callable[[str], None]
Reading = Mapping[str, float]
# ASCII's record separator, which no program prints and no file of /proc or /sys holds: a line of its own
# after each round of a command, and the mark before each file that is read and after the last.
END = "\x1e"
BUSY_S = 60.0  # for what is read once, and fails a run where it is not: a host under load answers late
_TIMEOUT_S = 10.0
_SCRIPT = """for file do printf '\\036'; cat -- "$file" 2>/dev/null; done; printf '\\036'"""
# Beyond this a float no longer tells one count from the next; no real counter of 64 bits is larger.
_LARGEST = 1 << 64
_LONGEST = 200


@dataclass(frozen=True)
class ReadingPair:
    """A reading and the one before it, None at the start. What cannot be given is None, never 0."""

    now: Reading
    before: Reading | None
    elapsed_s: float

    def gauge(self, field: str) -> float | None:
        """Return the present value of `field`."""
        return self.now.get(field)

    def delta(self, field: str) -> float | None:
        """Return by how much `field` grew; None if it fell: it was reset, or it wrapped around."""
        now = self.now.get(field)
        before = None if self.before is None else self.before.get(field)
        if now is None or before is None or now < before:
            return None
        return now - before

    def rate(self, field: str) -> float | None:
        """Return the growth of `field` a second."""
        grown = self.delta(field)
        return None if grown is None or self.elapsed_s <= 0 else grown / self.elapsed_s

    def ratio(self, numerator: float | None, denominator: float | None) -> float | None:
        """Return the quotient of two deltas; None where one is missing or nothing happened."""
        return None if numerator is None or not denominator else numerator / denominator


Formula = Callable[[ReadingPair], float | None]
Own = TypeVar("Own", bound=StrictModel)


@dataclass(frozen=True)
class Column:
    """One column of `host.csv`: its name after the observer's, ending in its unit, and how it is made."""

    name: str
    source: str
    formula: Formula


@dataclass
class FileSource:
    """An observer that reads the files at `paths`, and its last reading."""

    name: str
    columns: tuple[Column, ...]
    read: Callable[[tuple[str, ...]], Reading]
    paths: tuple[str, ...] = ()
    _before: Reading | None = field(default=None, init=False)
    _before_ns: int = field(default=0, init=False)

    def sample(self, texts: Sequence[str | None], at_ns: int) -> list[float | None]:
        """Return the figures of the columns, from texts read at the monotonic instant `at_ns`.

        A text that could not be read counts as empty. The next sample compares with the last reading that
        there was, so that after a gap a rate is that of the whole gap.
        """
        reading = self.read(tuple(text or "" for text in texts))
        if not reading:
            return [None] * len(self.columns)
        pair = ReadingPair(reading, self._before, (at_ns - self._before_ns) / 1e9)
        self._before, self._before_ns = reading, at_ns
        return [column.formula(pair) for column in self.columns]


class Stream(Protocol):
    """An observer that a process of its own feeds, as long as the observing lasts."""

    name: str
    columns: tuple[Column, ...]

    async def start(self, log: Log) -> None:
        """Start the process. Raises MachineError."""
        ...

    def sample(self) -> list[float | None]:
        """Return the figures that came since the last call."""
        ...

    async def stop(self) -> None:
        """End the process."""
        ...


class ObserverOptions(StrictModel):
    """What observers watch. A field's description is its help text."""

    model_config = explained_in("docs/observers.md")

    disks: tuple[DeviceName, ...] = Field(
        (), description="Devices to watch, such as sda, nvme0n1, loop3; default: every whole disk."
    )
    pools: tuple[PoolName, ...] = Field((), description="Pools to watch; default: every imported pool.")

    def own(self, model: type[Own]) -> Own | None:
        """Return the keys that one observer has for itself; None where there are none."""
        return next((value for _, value in self if isinstance(value, model)), None)


@dataclass(frozen=True)
class OwnKeys:
    """The keys that an observer has for itself, below its name.

    `needs` says what it cannot do without, with an example; where it is "", defaults will do. `checks`
    returns what must hold on the machine before the start.
    """

    model: type[StrictModel]
    description: str
    needs: str = ""
    checks: Callable[[Any], list[Check]] = lambda _: []


@dataclass(frozen=True)
class Observer:
    """An entry of the registry.

    `name`: its name in lab.yml, and before the dot of its columns in `host.csv`.
    `columns`: as they are documented; `DEVICE` or `POOL` stands for what a host has several of.
    `prepare`: returns what is sampled on a machine, None where there is nothing; `log` gets the reason, once.
    It is sampled by default unless its own keys say that it needs something.
    """

    name: str
    columns: tuple[Column, ...]
    prepare: Callable[[Machine, ObserverOptions, Log], Coroutine[Any, Any, FileSource | Stream | None]]
    own: OwnKeys | None = None


def file_observer(
    name: str, columns: tuple[Column, ...], read: Callable[[tuple[str, ...]], Reading], paths: tuple[str, ...]
) -> Observer:
    """Return an observer whose columns are the same on every host; `read` gets the texts of `paths`."""

    async def prepare(_machine: Machine, _options: ObserverOptions, _log: Log) -> FileSource:
        return FileSource(name, columns, read, paths)

    return Observer(name, columns, prepare)


def gauge(name: str, field: str, scale: float = 1.0) -> Column:
    """Return a column that shows the value of `field`, times `scale`."""
    return Column(name, field, lambda pair: _scale(pair.gauge(field), scale))


def rate(name: str, field: str, scale: float = 1.0) -> Column:
    """Return a column that shows how much `field` grows a second, times `scale`."""
    return Column(name, field, lambda pair: _scale(pair.rate(field), scale))


def per(name: str, numerator: str, denominator: str, scale: float = 1.0) -> Column:
    """Return a column of how much `numerator` grew for each one that `denominator` grew, times `scale`."""
    return Column(
        name,
        f"{numerator} / {denominator}",
        lambda pair: _scale(pair.ratio(pair.delta(numerator), pair.delta(denominator)), scale),
    )


def _scale(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


def number(text: str) -> float | None:
    """Return a counter's value as a float; None for what no kernel would print as one."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 20:
        return None
    value = int(text)
    return float(value) if value < _LARGEST else None


class LineReader(Protocol):
    """Takes lines as they come, and gives what they say once a second."""

    def add(self, line: str) -> None:
        """Take a line of standard output."""
        ...

    def take(self) -> ReadingPair:
        """Return the figures since the last call."""
        ...


class CommandStream:
    """A command that keeps running on the host and prints its figures; a Stream. Its end is logged once."""

    def __init__(
        self,
        name: str,
        columns: tuple[Column, ...],
        machine: Machine,
        command: Sequence[str],
        reader: LineReader,
        label: str = "its process",
    ) -> None:
        """`label` is what messages call the command."""
        self.name, self.columns = name, columns
        self._machine, self._command, self._reader, self._label = machine, command, reader, label
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self, log: Log) -> None:
        """Start the process. Raises MachineError."""
        self._process = await self._machine.start(self._command)
        self._reading = asyncio.create_task(self._read(self._process, log))

    def sample(self) -> list[float | None]:
        """Return the figures that came since the last call."""
        pair = self._reader.take()
        return [column.formula(pair) for column in self.columns]

    async def stop(self) -> None:
        """End the process."""
        if self._reading:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        if self._process:
            with suppress(MachineError):  # where the connection broke, the process ended with it
                await self._process.stop()

    async def _read(self, process: Process, log: Log) -> None:
        why = f"{self._label} ended by itself"
        try:
            async for line in process.lines():
                if line.stream == "out":
                    self._reader.add(line.text)
                elif line.text.strip():
                    why = line.text.strip()[:_LONGEST]
        except MachineError as error:
            why = str(error)
        log(f"{self.name}: {why}; its columns stay empty from now on")


def repeat_command(commands: str, every_s: int, words: Sequence[str]) -> list[str]:
    """Return a command that runs `commands` of a shell again and again, with `END` after each round. Pure.

    They find `words` in "$@". The shell and what it runs end with the process group.
    """
    script = f"while :; do {commands}; printf '\\036\\n'; sleep {every_s}; done"
    return ["sh", "-c", script, "sh", *words]


async def read_files(
    machine: Machine, paths: Sequence[str], timeout_s: float = _TIMEOUT_S
) -> list[str | None]:
    """Return the texts of `paths`, None for each that is not there. Raises MachineError."""
    if not paths:
        return []
    if isinstance(machine, LocalMachine):  # needs no process, and no root for files that all may read
        return [await asyncio.to_thread(_read_text, path) for path in paths]
    sent = files_command(paths)
    done = await machine.run(sent, timeout_s=timeout_s, check=False)
    try:
        return part_files(done.out, len(paths))
    except ValueError as error:
        raise MachineError(machine.name, str(error), sent, done.err, done.status) from None


def files_command(paths: Sequence[str]) -> list[str]:
    """Return the command that prints the files with a mark before each and after the last. Pure."""
    return ["sh", "-c", _SCRIPT, "sh", *paths]


def part_files(out: str, count: int) -> list[str | None]:
    """Return the texts that `files_command` printed of `count` files, None for one unread. Pure.

    Raises ValueError if their number differs: then none of it can be trusted.
    """
    first, *texts = out.split(END)
    if first or len(texts) != count + 1 or texts[-1]:
        raise ValueError(f"asked for {count} files, and got something else")
    return [text or None for text in texts[:-1]]


def _read_text(path: str) -> str | None:
    try:
        return Path(path).read_bytes().decode("utf-8", "backslashreplace") or None
    except OSError:
        return None
