"""What a database waits for: a 4 KiB write and its fdatasync once a second, beside the clone's data."""

import asyncio
from contextlib import suppress
from functools import cache
from pathlib import Path

from lab.errors import MachineError
from lab.machine import Machine, Process
from lab.observers.counters import Column, Pair, Reading, gauge, number
from lab.observers.fsync_place import Probed
from lab.observers.observer import Observer, Say
from lab.observers.settings import ObserverOptions

_MS_OF_NS = 1 / 1e6
_FIELDS = ("write", "fdatasync", "write + fdatasync")

COLUMNS = (
    gauge("write_ms", _FIELDS[0], _MS_OF_NS),
    gauge("fdatasync_ms", _FIELDS[1], _MS_OF_NS),
    gauge("total_ms", _FIELDS[2], _MS_OF_NS),
)


@cache
def _source() -> str:
    return Path(__file__).with_name("fsync_script.py").read_text(encoding="utf-8")


def command(folder: str, name: str) -> list[str]:
    """Return the command that probes a file `name` in `folder` until it is ended. Pure."""
    return ["python3", "-c", _source(), folder, name]


def parse(line: str) -> Reading | None:
    """Return the nanoseconds of a line of the probe; None for any other line."""
    word, *fields = line.split(" ")
    if word != "probe" or len(fields) != len(_FIELDS):
        return None
    values = zip(_FIELDS, map(number, fields), strict=True)
    found = {field: value for field, value in values if value is not None}
    return found if _FIELDS[-1] in found else None


class FsyncWatch:
    """One running probe; a Stream."""

    name = "fsync"
    columns: tuple[Column, ...] = COLUMNS

    def __init__(self, probed: Probed) -> None:
        self._machine, self._place = probed.machine, probed.place
        self._worst: Reading = {}
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self, say: Say) -> None:
        """Start the process. Raises MachineError."""
        self._process = await self._machine.start(command(self._place.folder, self._place.name))
        self._reading = asyncio.create_task(self._read(self._process, say))

    def sample(self) -> list[float | None]:
        """Return the figures that came since the last call; where two seconds' came, those of the worse."""
        taken, self._worst = Pair(self._worst, None, 1.0), {}
        return [column.formula(taken) for column in COLUMNS]

    async def stop(self) -> None:
        """End the process, which removes its file."""
        if self._reading:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        if self._process:
            with suppress(MachineError):  # where the connection broke, the process ended with it
                await self._process.stop()

    async def _read(self, process: Process, say: Say) -> None:
        why = "the probe ended by itself"
        try:
            async for line in process.lines():
                found = parse(line.text) if line.stream == "out" else None
                if found and found[_FIELDS[-1]] >= self._worst.get(_FIELDS[-1], 0.0):
                    self._worst = found
                elif line.stream == "err" and line.text.strip():
                    why = line.text.strip()[:200]
        except MachineError as error:
            why = str(error)
        say(f"fsync: {why}; its columns stay empty from now on")


async def _prepare(_machine: Machine, options: ObserverOptions, say: Say) -> FsyncWatch | None:
    if options.probed is None:
        say("fsync: where the site's data lie is not known here: name a folder on its disk, fsync.folder")
        return None
    return FsyncWatch(options.probed)


OBSERVER = Observer("fsync", COLUMNS, _prepare)
