"""What a database waits for: a 4 KiB write and its fdatasync once a second, beside the clone's data."""

from pathlib import Path

from plimsoll.lab.machine import Machine, script_command
from plimsoll.lab.observers.observer import (
    Column,
    Observer,
    ProcessLines,
    Reading,
    ReadingPair,
    Say,
    gauge,
    number,
)
from plimsoll.lab.observers.settings import FsyncProbe, ObserverOptions

_SCRIPT = Path(__file__).with_name("fsync_script.py")
_MS_OF_NS = 1 / 1e6
_FIELDS = ("write", "fdatasync", "write + fdatasync")

COLUMNS = (
    gauge("write_ms", _FIELDS[0], _MS_OF_NS),
    gauge("fdatasync_ms", _FIELDS[1], _MS_OF_NS),
    gauge("total_ms", _FIELDS[2], _MS_OF_NS),
)


def command(folder: str, name: str) -> list[str]:
    """Return the command that probes a file `name` in `folder` until it is ended. Pure."""
    return script_command(_SCRIPT, folder, name)


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

    def __init__(self, probed: FsyncProbe) -> None:
        words = command(probed.place.folder, probed.place.name)
        self._stream = ProcessLines(self.name, probed.machine, words, self._take)
        self._worst: Reading = {}

    async def start(self, say: Say) -> None:
        """Start the process. Raises MachineError."""
        await self._stream.start(say)

    def sample(self) -> list[float | None]:
        """Return the figures that came since the last call; where two seconds' came, those of the worse."""
        taken, self._worst = ReadingPair(self._worst, None, 1.0), {}
        return [column.formula(taken) for column in COLUMNS]

    async def stop(self) -> None:
        """End the process, which removes its file."""
        await self._stream.stop()

    def _take(self, line: str) -> None:
        found = parse(line)
        if found and found[_FIELDS[-1]] >= self._worst.get(_FIELDS[-1], 0.0):
            self._worst = found


async def _prepare(_machine: Machine, options: ObserverOptions, say: Say) -> FsyncWatch | None:
    if options.probed is None:
        say("fsync: where the site's data lie is not known here: name a folder on its disk, fsync.folder")
        return None
    return FsyncWatch(options.probed)


OBSERVER = Observer("fsync", COLUMNS, _prepare)
