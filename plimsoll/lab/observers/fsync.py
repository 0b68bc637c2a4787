"""What a database waits for: a 4 KiB write and its fdatasync once a second, beside the clone's data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from pydantic import Field, PrivateAttr

from plimsoll.lab.machine import Machine, script_command
from plimsoll.lab.names import Folder, StrictModel
from plimsoll.lab.observers.observer import (
    CommandStream,
    Log,
    Observer,
    ObserverOptions,
    OwnKeys,
    Reading,
    ReadingPair,
    gauge,
    number,
)
from plimsoll.lab.steps.step import Command, Remains

_SCRIPT = Path(__file__).with_name("fsync_script.py")
_MS_OF_NS = 1 / 1e6
_REMOVE_S = 60.0  # a disk that stalls may keep it waiting
Options = TypeVar("Options", bound=ObserverOptions)
_FIELDS = ("write", "fdatasync", "write + fdatasync")

COLUMNS = (
    gauge("write_ms", _FIELDS[0], _MS_OF_NS),
    gauge("fdatasync_ms", _FIELDS[1], _MS_OF_NS),
    gauge("total_ms", _FIELDS[2], _MS_OF_NS),
)


@dataclass(frozen=True)
class ProbeFile:
    """The place of the probe's file, which is found and removed by its name.

    It has a folder on the disk, and the name of everything that belongs to the backend.
    """

    folder: str
    backend_name: str

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.backend_name}.fsync"

    @property
    def path(self) -> str:
        """The file's path."""
        return f"{self.folder.rstrip('/')}/{self.name}"

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return what a crash left of it. Looks only. Raises MachineError."""
        look = ["find", self.path, "-maxdepth", "0", "-type", "f"]
        if not (await machine.run(look, check=False)).out:
            return []
        remove = Command("remove the probe's file", ("rm", "-f", "--", self.path), timeout_s=_REMOVE_S)
        return [Remains(f"the file of the fsync probe {self.path}", backend, (remove,))]


@dataclass(frozen=True)
class FsyncProbe:
    """A place, and the machine whose processes may reach its disk: one under the disk's limits."""

    machine: Machine
    place: ProbeFile


class FsyncProbeSettings(StrictModel):
    """The folder that the fsync probe writes into."""

    folder: Folder | None = Field(
        None,
        description="Folder on the disk under test, no link; default: that of the clone's database or data.",
        examples=["/tank/site"],
    )
    _probe: FsyncProbe | None = PrivateAttr(None)

    @property
    def probe(self) -> FsyncProbe | None:
        """The file that is written, which is not a key of lab.yml: the lab names it."""
        return self._probe

    def probing(self, probe: FsyncProbe | None) -> Self:
        """Return these settings, with the file that is to be written."""
        found = self.model_copy()
        found._probe = probe
        return found


def with_probe(options: Options, probe: FsyncProbe | None) -> Options:
    """Return the options of observers, with the file that the fsync probe is to write."""
    own = options.own(FsyncProbeSettings) or FsyncProbeSettings(folder=None)
    return options.model_copy(update={"fsync": own.probing(probe)})


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


class _WorstOfASecond:
    """Reads lines of the probe; where two seconds' came at once, `take` gives those of the worse."""

    def __init__(self) -> None:
        self._worst: Reading = {}

    def add(self, line: str) -> None:
        found = parse(line)
        if found and found[_FIELDS[-1]] >= self._worst.get(_FIELDS[-1], 0.0):
            self._worst = found

    def take(self) -> ReadingPair:
        taken, self._worst = ReadingPair(self._worst, None, 1.0), {}
        return taken


class FsyncWatch(CommandStream):
    """One running probe, which removes its file when it is stopped."""

    def __init__(self, probed: FsyncProbe) -> None:
        words = command(probed.place.folder, probed.place.name)
        super().__init__("fsync", COLUMNS, probed.machine, words, _WorstOfASecond())


async def _prepare(_machine: Machine, options: ObserverOptions, log: Log) -> FsyncWatch | None:
    own = options.own(FsyncProbeSettings)
    if own is None or own.probe is None:
        log("fsync: where the site's data lie is not known here: name a folder on its disk, fsync.folder")
        return None
    return FsyncWatch(own.probe)


OBSERVER = Observer(
    "fsync", COLUMNS, _prepare, OwnKeys(FsyncProbeSettings, "Where the fsync observer writes.")
)
