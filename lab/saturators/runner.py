"""Starts and stops a saturator, and tells what it does: start, bytes each second, retries, stop."""

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from lab.errors import MachineError, last_words
from lab.machine import Line, Machine

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
    """The base of all saturators. `retry_s`: seconds that it waits before it tries again, more each time."""

    def __init__(self, machine: Machine, kind: str, retries: int, on_event: OnEvent) -> None:
        self.machine, self.failure = machine, None
        self._kind, self._retries, self._on_event = kind, retries, on_event
        self.meter = Meter()
        self.retry_s = 1.0
        self._tasks: list[asyncio.Task[None]] = []
        self._running = False

    failure: str | None

    async def start(self) -> None:
        """See Saturator."""
        await self._prepare()
        self._running = True
        self._on_event({"event": self._kind, "phase": "start"})
        self._tasks = [asyncio.create_task(self._again_and_again()), asyncio.create_task(self._report())]

    async def stop(self) -> None:
        """See Saturator."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        try:
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        finally:
            self._stopped()
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
                    self._stopped()
                    return
                self._on_event({"event": f"{self._kind} retry", "error": str(error)})
                await asyncio.sleep(self.retry_s * min(failures, 30))

    async def _report(self) -> None:
        loop = asyncio.get_running_loop()
        reported_s = due_s = loop.time()
        while self._running:
            due_s += 1
            await asyncio.sleep(max(due_s - loop.time(), 0))
            now_s = loop.time()
            event = {"event": f"{self._kind} bytes", "bytes_per_s": self.meter.per_second(now_s - reported_s)}
            if self._running:
                self._on_event(event)
            reported_s = now_s

    def _stopped(self) -> None:
        if self._running:
            self._running = False
            why = {"error": self.failure} if self.failure else {}
            self._on_event({"event": self._kind, "phase": "stop", "bytes": self.meter.total} | why)

    async def _follow(self, command: list[str], read: Read, whole: Callable[[], int] = lambda: 0) -> None:
        """Run `command` to its end, the meter at what `read` says. Raises MachineError."""
        # `whole`: all bytes of a command that succeeded, where its last line came too early to have them.
        process = await self.machine.start(command)
        said = ""
        try:
            async for line in process.lines():
                if (bytes_ := read(line)) is not None:
                    self.meter.now(bytes_)
                elif line.stream == "err" and line.text.strip():
                    said = last_words(line.text)
            if not (status := await process.wait()):
                self.meter.now(whole())
        except BaseException:
            await process.stop()
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
