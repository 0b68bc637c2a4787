"""A volume as it is when full and used: filled, then overwritten at random until it is steady, by fio.

The filling is a folder on a backend's disk beside the clone; its file stays in the runs. On disks that exist
it also outlives a kill -9, so that it need not be written again: `whole` in it holds the name of the filling,
and is written last. A disk that the lab creates is created each time, and with it the filling.

When a volume is steady follows the Solid State Storage Performance Test Specification (SSS PTS) 2.0.2 of the
Storage Networking Industry Association, 1 October 2020, section 2.1.24 "Steady State". Of the values y in the
measurement window, here the last five rounds,

a) the range, max(y) - min(y), is no more than 20 % of their average, and
b) the excursion of the slope is no more than 10 % of it: that of the straight line of least squares through
   them, from its least value in the window to its greatest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from plimsoll.common.validation import Size
from plimsoll.lab.errors import LabError
from plimsoll.lab.fileio.bench import VolumeFolder
from plimsoll.lab.fileio.fio import read_fio_job
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import StrictModel
from plimsoll.lab.steps.step import Command, Remains


class PreconditionSettings(StrictModel):
    """The filling of a volume and its rounds. A field's description is its help text."""

    fill_percent: int = Field(
        80,
        ge=5,
        le=95,
        description="Share of the volume that is to be full before the first run, clone included.",
    )
    block_bytes: Annotated[Size, Field(ge=512, le=1 << 24)] = Field(
        4096, description="Size of each random overwrite."
    )
    threads: int = Field(4, ge=1, le=256, description="Number of threads that overwrite.")
    round_s: int = Field(60, ge=1, le=3600, description="Seconds that a round lasts.")
    most_rounds: int = Field(
        25, ge=5, le=10_000, description="Rounds after which the runs begin although it is not steady."
    )
    longest_s: int = Field(
        86_400,
        ge=10,
        le=30 * 86_400,
        description="Seconds that filling and rounds of a volume may take in all.",
    )


LEAST_BYTES = 32 << 20  # that are worth being overwritten
_WHOLE_MIB = 1 << 20
# A Btrfs that copies on write keeps what is overwritten until all of an extent is: twice the room, and more.
_IN_PLACE = 'mkdir -- "$1" && chattr +C "$1"'
_NAME = 'cat -- "$1/whole" 2>/dev/null && stat -c %s -- "$1/data"'


class Filling(VolumeFolder):
    """The folder of what fills a volume."""

    key, suffix, holds = "precondition", "filling", "the filling"

    @property
    def direct(self) -> bool:
        """Whether it is written past the page cache. ZFS has a cache of its own, and old ones refuse."""
        return self.place.filesystem != "zfs"

    def make(self) -> Command:
        """Make the folder; where there is a link in its place, nothing is made."""
        if self.place.filesystem == "btrfs":
            return Command(
                "make a folder that is overwritten in place", ("sh", "-c", _IN_PLACE, "sh", self.folder)
            )
        return super().make()

    def mark(self, filling: str) -> Command:
        """Note that it is whole, and that `filling` is its name."""
        return Command("note that it is whole", ("tee", "--", f"{self.folder}/whole"), stdin=f"{filling}\n")

    def room(self) -> list[str]:
        """Return the command that prints two numbers of bytes: those in use, and those that are free."""
        if self.place.pool:
            return ["zfs", "get", "-H", "-p", "-o", "value", "used,available", self.place.pool]
        return ["df", "--output=used,avail", "--block-size=1", "--", self.place.folder]

    def free(self) -> list[str]:
        """Return the command that prints the bytes that are free for it: a quota may leave it less."""
        return ["df", "--output=avail", "--block-size=1", "--", self.place.folder]

    async def whole(self, machine: Machine) -> tuple[str, int] | None:
        """Return the name and the bytes of a filling that is there, and whole. Raises MachineError."""
        said = (await machine.run(["sh", "-c", _NAME, "sh", self.folder], check=False)).out.split()
        return (said[0], int(said[1])) if len(said) == 2 and said[1].isdecimal() else None

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return what is there of it, on a disk that is not removed with it. Raises MachineError."""
        if self.place.size_bytes is not None:
            return []
        return await super().find(machine, backend)


def parse_numbers(printed: str) -> list[int]:
    """Return the whole numbers in what a command printed. Pure."""
    return [int(word) for word in printed.split() if word.isdecimal()]


def filling_bytes(percent: int, used_bytes: int, free_bytes: int, sharing: int) -> int:
    """Return how much to write so that `percent` of a volume is full, in whole MiB; 0 or less: it is.

    `sharing`: so many fillings are still to be made on it, of which this is one. Pure.
    """
    lacking = percent * (used_bytes + free_bytes) // 100 - used_bytes
    return lacking // sharing // _WHOLE_MIB * _WHOLE_MIB


def check_size(size_bytes: int, free_bytes: int, percent: int) -> None:
    """See that a filling of `size_bytes` is worth it and fits. Raises LabError."""
    if size_bytes < LEAST_BYTES:
        raise LabError(
            f"precondition.fill_percent: the volume is {percent} % full already, or nearly: raise it, or "
            "make room"
        )
    if size_bytes > free_bytes:
        raise LabError(
            f"precondition.fill_percent: {size_bytes >> 20} MiB are to be written and {free_bytes >> 20} MiB "
            "are free for them: lower it, or raise the quota"
        )


_FILL_BLOCK_BYTES = 1 << 20
DATA = "data"  # the file, in a folder of its own


@dataclass(frozen=True)
class Written:
    """What fio wrote, and how fast."""

    bytes: int
    seconds: float
    iops: float
    mib_per_s: float
    p999_ms: float | None


def fill(folder: str, size_bytes: int, direct: bool) -> list[str]:
    """Return the command that writes the file once, from its start to its end."""
    return [
        *_fio(folder, "plimsoll-fill", size_bytes, direct),
        "--rw=write",
        f"--bs={_FILL_BLOCK_BYTES}",
        "--fallocate=none",  # else blocks are promised, and not written
    ]


def overwrite(folder: str, size_bytes: int, direct: bool, wanted: PreconditionSettings) -> list[str]:
    """Return the command of a round: it overwrites blocks of the whole file at random."""
    return [
        *_fio(folder, "plimsoll-round", size_bytes, direct),
        "--rw=randwrite",
        f"--bs={wanted.block_bytes}",
        f"--numjobs={wanted.threads}",
        "--norandommap",
        "--randrepeat=0",
        "--allow_file_create=0",
        "--time_based",
        f"--runtime={wanted.round_s}",
    ]


def _fio(folder: str, name: str, size_bytes: int, direct: bool) -> list[str]:
    return [
        # fio takes a colon in a path for its end, so the path is left out.
        *("env", f"--chdir={folder}"),
        "fio",
        f"--name={name}",
        f"--filename={DATA}",
        f"--size={size_bytes}",
        "--ioengine=psync",
        f"--direct={int(direct)}",
        "--end_fsync=1",
        "--refill_buffers",  # nothing that compresses
        "--thread",
        "--group_reporting",
        "--eta=never",
        "--output-format=json",
    ]


def parse_written(output: str) -> Written:
    """Return what fio's JSON says of what it wrote; it may say other things before. Raises LabError."""
    return read_fio_job(output, _read_written, LabError)


def _read_written(job: dict[str, Any], _: str) -> Written:
    writes = job["write"]
    slow = writes.get("clat_ns", {}).get("percentile", {}).get("99.900000")
    return Written(
        int(writes["io_bytes"]),
        round(float(writes["runtime"]) / 1000, 3),
        round(float(writes["iops"]), 2),
        round(float(writes["bw_bytes"]) / (1 << 20), 2),
        None if slow is None else round(float(slow) / 1e6, 3),
    )


WINDOW = 5  # rounds
MOST_RANGE_PERCENT = 20.0
MOST_SLOPE_PERCENT = 10.0


@dataclass(frozen=True)
class Steadiness:
    """The range of the values of a window, and the excursion of their slope, in percent of their average."""

    range_percent: float
    slope_percent: float

    @property
    def steady(self) -> bool:
        """Whether the volume is steady."""
        return self.range_percent <= MOST_RANGE_PERCENT and self.slope_percent <= MOST_SLOPE_PERCENT


def steadiness(values: Sequence[float]) -> Steadiness | None:
    """Return the steadiness of the last five of `values`, one a round; None of fewer, and where all are 0."""
    window = values[-WINDOW:]
    average = sum(window) / WINDOW
    if len(window) < WINDOW or average <= 0:
        return None
    middle = (WINDOW - 1) / 2
    spread = sum((place - middle) ** 2 for place in range(WINDOW))
    slope = sum((place - middle) * (value - average) for place, value in enumerate(window)) / spread
    excursion = abs(slope) * (WINDOW - 1)
    return Steadiness(100 * (max(window) - min(window)) / average, 100 * excursion / average)
