"""What loads the clone in a run: the program of its scenario, or of each of several together."""

import asyncio
import time
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.lab.errors import LabError, last_words
from plimsoll.lab.experiment.command_line import PlannedLoad
from plimsoll.lab.experiment.folder import OUTPUT_FILE
from plimsoll.lab.experiment.phases import RunClock, until_begun
from plimsoll.lab.experiment.together.beginning import BEGIN_FILE
from plimsoll.lab.experiment.together.lasting import BEGIN_APART_S
from plimsoll.lab.machine import Machine, Process
from plimsoll.rundir.names import FACTS_FILE
from plimsoll.rundir.read import read_json

_BEGIN_S = 600.0  # until a scenario has begun: the first that needs k6 builds it
_STOP_S = 60.0  # for a scenario to end in good order once asked to


class Program:
    """A running scenario: its output goes to a file, and its last words are kept."""

    def __init__(self, process: Process, path: Path) -> None:
        self._process, self.path, self.words = process, path, ""
        self._reading = asyncio.create_task(self._read())

    def over(self) -> bool:
        """Return whether it has ended."""
        return self._reading.done()

    async def ended(self) -> int:
        """Wait until it has."""
        await asyncio.shield(self._reading)
        return await self._process.wait()

    async def stop(self) -> None:
        """End it in good order, or at once where it takes too long."""
        if not self.over():
            await self._process.stop(_STOP_S)
        await self.ended()

    async def _read(self) -> None:
        with self.path.open("w", encoding="utf-8", errors="replace") as file:
            async for line in self._process.lines():
                file.write(line.text + "\n")
                file.flush()
                if line.stream == "err" and line.text.strip():
                    self.words = last_words(line.text)


@dataclass(eq=False)
class LoadPart:
    """A member's part of a run, or all of it.

    `called` is what messages call it, `directory` its run directory, `clock` that run's. `stopped`: the lab
    ended it in good order, as the others had ended. `began_ns`: when one that begins later was let begin,
    by this machine's monotonic clock.
    """

    load: PlannedLoad
    called: str
    program: Program = field(init=False)
    directory: Path = field(init=False)
    clock: RunClock = field(init=False)
    stopped: bool = field(default=False, init=False)
    began_ns: int | None = field(default=None, init=False)

    async def start(self, here: Machine) -> None:
        """Start its program. Raises MachineError."""
        folder = Path(self.load.folder)
        folder.mkdir(exist_ok=True)
        self.program = Program(await here.start(self.load.command), folder / OUTPUT_FILE)

    async def begin(self) -> None:
        """Wait until its own clock runs. Raises LabError."""
        try:
            self.directory, started_at = await until_begun(
                Path(self.load.folder), self.program.over, _BEGIN_S
            )
        except LabError as error:
            words = self.program.words or "it printed nothing"
            raise LabError(f"{self.called}: {error}: {words}") from None
        self.clock = RunClock(started_at)

    async def let_begin(self, clock: RunClock, saturated: asyncio.Event | None) -> None:
        """Let one that begins later begin when it should, by the run's `clock`. Raises LabError.

        `saturated` is set once the saturator works; None where nothing saturates the disks.
        """
        begins = self.load.begins
        if begins is None:
            return
        if begins.with_saturator and saturated is not None:
            await saturated.wait()
        else:
            await clock.until(begins.at_s)
        path = Path(self.load.folder) / BEGIN_FILE
        try:
            path.touch()
        except OSError as error:
            raise LabError(f"{self.called}: {path} cannot be written: {error.strerror}") from None
        self.began_ns = time.monotonic_ns()

    async def end(self) -> None:
        """Wait until it has ended. Raises LabError unless its run is complete."""
        await self.program.ended()
        facts = read_json(self.directory / FACTS_FILE)
        status = facts.get("status")
        if status != "complete" and not (self.stopped and status == "interrupted"):
            # The run's own reason has the site's words; a program may end with its library's.
            words = facts.get("reason") or self.program.words or f"see {self.program.path}"
            raise LabError(f"{self.called}: the run is {status}: {words}")

    async def dismiss(self) -> None:
        """End it in good order, where it still runs, as all others have ended: its run is whole."""
        self.stopped = not self.program.over()
        await self.program.stop()


class Load:
    """All parts of one run, which has one clock: that of the part that begins last."""

    def __init__(self, parts: Sequence[LoadPart], endless: bool) -> None:
        """`endless`: it ends when all parts have that end by themselves; a crowd is stopped then."""
        self._parts = parts
        self._asked = [part for part in parts if not (endless and part.load.member.is_crowd)]
        self._started: list[LoadPart] = []

    async def begin(self, here: Machine) -> RunClock:
        """Start every part, and return the clock of all. Raises LabError.

        What is timed within a crowd begins when the crowd is there.
        """
        crowd = [part for part in self._parts if part.load.member.is_crowd]
        for parts in (crowd, [part for part in self._parts if part not in crowd]):
            for part in parts:
                await part.start(here)
                self._started.append(part)
            await in_step(part.begin() for part in parts)
        first, last = (pick(self._parts, key=lambda part: part.clock.start_ns) for pick in (min, max))
        apart_s = (last.clock.start_ns - first.clock.start_ns) / 1e9
        if apart_s > BEGIN_APART_S:
            raise LabError(
                f"{last.called} began {apart_s:.0f} s after {first.called}, and {BEGIN_APART_S:g} s are the "
                "most: is this machine too busy to start them?"
            )
        return last.clock

    async def let_begin(self, clock: RunClock, saturated: asyncio.Event | None) -> None:
        """Let each part that begins later begin when it should. Raises LabError."""
        await in_step(part.let_begin(clock, saturated) for part in self._parts)

    async def end(self) -> None:
        """Wait until all parts have ended. Raises LabError as soon as one has that is not complete."""
        ending = {part.called: asyncio.create_task(part.end()) for part in self._parts}
        try:
            while any(not ending[part.called].done() for part in self._asked):
                running = [task for task in ending.values() if not task.done()]
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            await in_step(part.dismiss() for part in self._parts)
            await asyncio.gather(*ending.values())
        finally:
            for task in ending.values():
                task.cancel()

    async def stop(self) -> None:
        """End in good order, and at once, what still runs."""
        await asyncio.gather(*(part.program.stop() for part in self._started), return_exceptions=True)


async def in_step(waiting: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all; the first that raises ends the others, and is raised."""
    tasks = [asyncio.create_task(each) for each in waiting]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
