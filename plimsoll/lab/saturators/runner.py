"""Starts and stops a saturator, and tells what it does: start, bytes each second, retries, stop."""

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from plimsoll.lab.errors import MachineError, last_words
from plimsoll.lab.machine import Line, Machine

_SECOND_NS = 10**9
_PERIOD_NS = _SECOND_NS  # of reports
_SHORTEST_NS = 50_000_000  # of a throughput that is told
_LAST_LINES_S = 1.0

# Gets each event; `at_ns` is when it was, by the monotonic clock, where that is known better than by now.
OnEvent = Callable[[dict[str, Any]], None]
Read = Callable[[Line], int | None]  # the bytes so far, from a line


class Saturator(Protocol):
    """Keeps disks busy from `start` to `stop`."""

    failure: str | None  # why it gave up, where it did

    async def start(self) -> None:
        """Remove what a crash left behind, and begin. Raises MachineError where it cannot."""
        ...

    async def stop(self) -> None:
        """End it, and remove what it made. May be called twice, and after it gave up."""
        ...


class Meter:
    """Bytes so far, over processes that each begin at 0."""

    def __init__(self) -> None:
        self._before = self._now = self._reported = 0

    @property
    def total(self) -> int:
        """All bytes."""
        return self._before + self._now

    def now(self, process_bytes: int) -> None:
        """Note what the present process has done so far; less than before is no news."""
        self._now = max(self._now, process_bytes)

    def next_process(self) -> None:
        """Begin with another process."""
        self._before, self._now = self.total, 0

    def per_second(self, elapsed_s: float) -> int:
        """Return the bytes a second since it was asked the last time, `elapsed_s` seconds ago."""
        new, self._reported = self.total - self._reported, self.total
        return round(new / elapsed_s) if elapsed_s > 0 else 0


class Runner(ABC):
    """The base of all saturators.

    `retry_s`: seconds that it waits before it tries again, more each time. `grace_s`: seconds that what it
    runs has to put things in order when it is told to end, before it is killed.
    """

    grace_s = 5.0

    def __init__(self, machine: Machine, kind: str, retries: int, on_event: OnEvent) -> None:
        self.machine, self.failure = machine, None
        self._kind, self._retries, self._on_event = kind, retries, on_event
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
        self._on_event({"event": self._kind, "phase": "start"})
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
            self._stopped(max(asked_ns, self._grew_ns))
            if tasks:
                await self._clean()

    @abstractmethod
    async def _prepare(self) -> None:
        """Remove leftovers, and see that it can work."""

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
                await self._once()
                failures = 0
            except MachineError as error:
                failures += 1
                if failures > self._retries:
                    self.failure = str(error)
                    self._stopped(time.monotonic_ns())
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

    def _stopped(self, at_ns: int) -> None:
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


async def at_least(seconds: float, work: Awaitable[None]) -> None:
    """Do `work` and take at least `seconds` over it, so that a loop with nothing to do does not spin."""
    until_s = time.monotonic() + seconds
    await work
    await asyncio.sleep(max(until_s - time.monotonic(), 0))
