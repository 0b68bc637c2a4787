"""What every saturator is: its settings, its kind, the loop that runs it, how its progress is read.

A kind of saturator is a file of this package that ends with its `SaturatorKind`, and a line in `SATURATORS`.
"""

import asyncio
import contextlib
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

from pydantic import AfterValidator, Field

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.errors import MachineError, last_words
from plimsoll.lab.machine import Line, Machine
from plimsoll.lab.names import StrictModel, explained_in, own_name
from plimsoll.lab.steps.step import Check, Remains, no_reference

# Gets each event; `at_ns` is when it was, by the monotonic clock, where that is known better than by now.
OnEvent = Callable[[dict[str, Any]], None]
Read = Callable[[Line], int | None]  # the bytes so far, from a line
# Stands in settings for the clone's own dataset, subvolume or folder, whatever the backend.
CLONE: Literal["@clone"] = "@clone"


class SaturatorSettings(StrictModel):
    """The settings that every saturator has. A field's description is its help text."""

    model_config = explained_in("docs/saturators.md")

    kind: str = Field(description="Kind of saturator, such as `zfs-send`.")
    retries: int = Field(3, ge=0, le=1000, description="Failures in a row before the saturator gives up.")


Settings = TypeVar("Settings", bound=SaturatorSettings)


class Saturator(Protocol):
    """Keeps disks busy from `start` to `stop`."""

    failure: str | None  # why it gave up, where it did

    async def start(self) -> None:
        """Remove what a crash left behind, and begin. Raises MachineError where it cannot."""
        ...

    async def stop(self) -> None:
        """End it, and remove what it made. May be called twice, and after it gave up."""
        ...


async def _nothing(_machine: Machine, _settings: SaturatorSettings, _label: str, _of: str) -> list[Remains]:
    return []


@dataclass(frozen=True)
class SaturatorKind(Generic[Settings]):
    """An entry of the registry.

    `name`: the value of `kind` in lab.yml.
    `settings`: the model of its keys.
    `make`: returns the saturator for a machine, settings, a label and what is called with each event.
    `aim`: returns the settings with what they leave open (`@clone`) taken from where a clone's data lie;
    raises ValueError, which names the key, where the clone has no such thing.
    `programs`: what it runs, which `plimsoll check` looks for.
    `questions`: commands that change nothing and whose status decides what it does: `plimsoll check --plan`
    asks the machine itself.
    `rounds`: how many processes it starts, one after the other, until every kind of command was run.
    `checks`: what must hold before, for settings that are not aimed.
    `brief`: the settings as `check --plan` shows what it does: without waiting.
    `find`: returns what one that was killed left, for a machine, settings, label and backend: only what does
    not go with the clone or its disk. Looks only, by name. The settings are aimed if they can be.
    `mirrors_disk`: it needs as much room again as an emulated disk, beside that.
    """

    name: str
    settings: type[Settings]
    make: Callable[[Machine, Settings, str, OnEvent], Saturator]
    aim: Callable[[Settings, DataLocation], Settings]
    programs: frozenset[str]
    questions: tuple[tuple[str, ...], ...] = ()
    rounds: Callable[[Settings], int] = lambda _: 0
    checks: Callable[[Settings], list[Check]] = lambda _: []
    brief: Callable[[Settings], Settings] = lambda settings: settings
    find: Callable[[Machine, Settings, str, str], Coroutine[Any, Any, list[Remains]]] = _nothing
    mirrors_disk: bool = False


def aim_folder(key: str, at: DataLocation) -> str:
    """Return the folder of the clone's data, for the setting `key`. Raises ValueError where none is known."""
    if not at.folder:
        raise ValueError(f"{key}: is missing: the lab knows no folder of this clone; name one")
    return at.folder


_SECOND_NS = 10**9
_PERIOD_NS = _SECOND_NS  # of reports
_SHORTEST_NS = 50_000_000  # over which a throughput is reported
_LAST_LINES_S = 1.0


class Runner(ABC, Generic[Settings]):
    """The base of all saturators.

    `retry_s`: seconds that it waits before it tries again, more each time. `grace_s`: seconds that what it
    runs has to put things in order when it is told to end, before it is killed. `shortest_round_s`: seconds
    that a round takes at least, so that a loop with nothing to do does not spin.
    """

    grace_s = 5.0
    shortest_round_s = 0.0

    def __init__(self, machine: Machine, settings: Settings, label: str, on_event: OnEvent) -> None:
        self.machine, self.failure = machine, None
        self.settings, self.label = settings, label
        self._kind, self._on_event = settings.kind, on_event
        self.meter = Meter()
        self.retry_s = 1.0
        self._grew_ns = self._known_ns = self._reported_ns = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._running = False

    failure: str | None

    async def start(self) -> None:
        """See Saturator."""
        await self._prepare()
        self._running = True
        self._known_ns = self._reported_ns = time.monotonic_ns()
        self._on_event({"event": self._kind, "phase": "start", "saturator": True})
        self._tasks = [asyncio.create_task(self._again_and_again()), asyncio.create_task(self._report())]

    async def stop(self) -> None:
        """See Saturator."""
        tasks, self._tasks = self._tasks, []
        asked_ns = time.monotonic_ns()
        for task in tasks:
            task.cancel()
        try:
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        finally:
            # What it ran may end much later; its last byte was when the meter last rose, if not before.
            self._note_stop(max(asked_ns, self._grew_ns))
            if tasks:
                await self._clean()

    async def _prepare(self) -> None:
        """Remove leftovers, and see that it can work."""
        await self._clean()

    @abstractmethod
    async def _once(self) -> None:
        """Keep the disks busy for one round. Raises MachineError."""

    @abstractmethod
    async def _clean(self) -> None:
        """Remove what was made. Raises MachineError."""

    async def _again_and_again(self) -> None:
        failures = 0
        while True:
            try:
                await last_at_least(self.shortest_round_s, self._once())
                failures = 0
            except MachineError as error:
                failures += 1
                if failures > self.settings.retries:
                    self.failure = str(error)
                    self._note_stop(time.monotonic_ns())
                    return
                self._on_event({"event": f"{self._kind} retry", "error": str(error)})
                await asyncio.sleep(self.retry_s * min(failures, 30))

    async def _report(self) -> None:
        due_ns = self._reported_ns
        while self._running:
            # Those that are overdue are one report: each by itself would be of an instant.
            overdue_ns = max(time.monotonic_ns() + _SHORTEST_NS - due_ns, 0)
            due_ns += _PERIOD_NS * (1 + overdue_ns // _PERIOD_NS)
            await asyncio.sleep(max(due_ns - time.monotonic_ns(), 0) / _SECOND_NS)
            if self._running:
                self._tell_bytes(self._reported_ns, time.monotonic_ns())

    def _tell_bytes(self, since_ns: int, at_ns: int) -> None:
        """Tell the throughput of what was counted since the last report, over the time that it took."""
        bytes_per_s = self.meter.per_second((at_ns - since_ns) / _SECOND_NS)
        self._on_event({"event": f"{self._kind} bytes", "bytes_per_s": bytes_per_s, "at_ns": at_ns})
        self._reported_ns, self._known_ns = at_ns, self._grew_ns or since_ns

    def _note_stop(self, at_ns: int) -> None:
        if self._running:
            self._running = False
            # The last report had the bytes up to the line before it; so the rest is from line to line.
            if self._grew_ns - self._known_ns > _SHORTEST_NS:
                self._tell_bytes(self._known_ns, self._grew_ns)
            why = {"error": self.failure} if self.failure else {}
            self._on_event(
                {"event": self._kind, "phase": "stop", "bytes": self.meter.total, "at_ns": at_ns, **why}
            )

    def _count(self, bytes_: int, t_ns: int) -> None:
        before = self.meter.total
        self.meter.now(bytes_)
        if self.meter.total > before:
            self._grew_ns = t_ns

    async def _follow(self, command: list[str], read: Read, whole: Callable[[], int] = lambda: 0) -> None:
        """Run `command` to its end, the meter at what `read` says. Raises MachineError."""
        # `whole`: all bytes of a command that succeeded, where its last line came too early to have them.
        process = await self.machine.start(command)
        said = ""
        try:
            async for line in process.lines():
                if (bytes_ := read(line)) is not None:
                    self._count(bytes_, line.t_ns)
                elif line.stream == "err" and line.text.strip():
                    said = last_words(line.text)
            if not (status := await process.wait()):
                self.meter.now(whole())
        except BaseException:
            await process.stop(self.grace_s)
            with contextlib.suppress(TimeoutError):  # the bytes up to the end are in its last lines
                async with asyncio.timeout(_LAST_LINES_S):
                    async for line in process.lines():
                        if (bytes_ := read(line)) is not None:
                            self._count(bytes_, line.t_ns)
            raise
        finally:
            self.meter.next_process()
        if status:
            raise MachineError(
                self.machine.name, f"{self._kind} ended with status {status}", (), said, status
            )


class Meter:
    """Bytes so far, over processes that each begin at 0."""

    def __init__(self) -> None:
        self._before = self._now = self._reported = 0

    @property
    def total(self) -> int:
        """All bytes."""
        return self._before + self._now

    def now(self, process_bytes: int) -> None:
        """Note what the present process has done so far; less than before is ignored."""
        self._now = max(self._now, process_bytes)

    def next_process(self) -> None:
        """Begin with another process."""
        self._before, self._now = self.total, 0

    def per_second(self, elapsed_s: float) -> int:
        """Return the bytes a second since it was asked the last time, `elapsed_s` seconds ago."""
        new, self._reported = self.total - self._reported, self.total
        return round(new / elapsed_s) if elapsed_s > 0 else 0


async def last_at_least(seconds: float, work: Awaitable[None]) -> None:
    """Do `work` and take at least `seconds` over it, so that a loop with nothing to do does not spin."""
    until_s = time.monotonic() + seconds
    await work
    await asyncio.sleep(max(until_s - time.monotonic(), 0))


class LineProgress:
    """Reads the bytes so far from the lines that `form` is found in: by its groups `bytes` and `unit`.

    `each`: a line counts only its own bytes.
    """

    def __init__(self, form: re.Pattern[str], each: bool = False) -> None:
        self._form, self._each, self._sum = form, each, 0

    def read(self, line: Line) -> int | None:
        """Return the bytes so far, None where the line does not say it."""
        found = self._form.search(line.text)
        if not found or found["bytes"] is None:
            return None
        amount = amount_bytes(found["bytes"], found.groupdict().get("unit"))
        if amount is None or not self._each:
            return amount
        self._sum += amount
        return self._sum


_MOST_BYTES = 1 << 62
_UNIT = re.compile(r"([KMGTP])?(i?)(B|bytes?)?", re.IGNORECASE | re.ASCII)


def amount_bytes(number: str, unit: str | None = None) -> int | None:
    """Return the bytes of `1,024`, or of `1.5` with the unit `GiB`; None where it is not such an amount.

    K, M, G, T and P, alone or as KiB, are powers of 1024; kB, MB and so on are powers of 1000.
    """
    found = _UNIT.fullmatch((unit or "").strip())
    try:
        value = float(number.replace(",", "").replace("_", ""))
    except ValueError:
        return None
    if not found or not 0 <= value < _MOST_BYTES:
        return None
    base = 1000 if found[1] and found[3] and not found[2] else 1024
    power = "KMGTP".index(found[1].upper()) + 1 if found[1] else 0
    amount = round(value * base**power)
    return amount if amount < _MOST_BYTES else None


_PLACE = re.compile(r"(?<![\w@])@(own|clone)(?!\w)")
Word = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$"), AfterValidator(no_reference)]
Words = Annotated[tuple[Word, ...], Field(min_length=1)]


def needs_folder(words: Sequence[str]) -> bool:
    """Return whether `@clone`, the folder of the disk under test, stands in `words`."""
    return any(found[1] == "clone" for word in words for found in _PLACE.finditer(word))


def has_no_placeholder(word: str) -> bool:
    """Return whether nothing of the lab stands in `word`."""
    return _PLACE.search(word) is None


def fill_words(words: Sequence[str], label: str, folder: str = "") -> list[str]:
    """Return `words` with the saturator's own name, `plimsoll-LABEL`, for `@own`, `folder` for `@clone`."""
    named = {"own": own_name(label), "clone": folder}
    return [_PLACE.sub(lambda found: named[found[1]], word) for word in words]
