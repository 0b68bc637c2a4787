"""The settings of a measurement of fsyncs: one volume, and the cells that are measured on it."""

from collections.abc import Hashable
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from plimsoll.common.units import Size, listed, size_text
from plimsoll.lab.fileio.settings import OnVolume, once
from plimsoll.lab.names import StrictModel
from plimsoll.rundir.volumes import Call, Engine, FsyncCase, Preset, WritingTest

THREADS = (1, 8)
BLOCK_SIZES = (4 << 10, 16 << 10)
_SECTOR_BYTES = 512
_MOST_PRESET_S = 600  # what a preset may take on a slow disk


def lays_out(case: FsyncCase) -> bool:
    """Return whether its files are written before it is measured: at random it writes over what is there."""
    return case.test == "rndwr"


def most_s(case: FsyncCase) -> int:
    """Return the seconds after which it ends at the latest."""
    return _MOST_PRESET_S if case.time_s is None else case.time_s


# The recipe of Matteo Olivi and Mike Spreitzer, "Using Fio to Tell Whether Your Storage is Fast Enough for
# Etcd", IBM, 18 April 2019: blocks and calls are those of etcd's write-ahead log.
ETCD = FsyncCase("etcd", "seqwr", "fdatasync", "sync", 2300, 1, 22 << 20, None, False)
PRESETS: dict[Preset, FsyncCase] = {"etcd": ETCD}


class FsyncMatrix(StrictModel):
    """The cells that are measured. A field's description is its help text."""

    preset: Preset | None = Field(
        None, description="etcd: its recipe alone. Default: that recipe, and the cells of all other keys."
    )
    calls: Annotated[tuple[Call, ...], AfterValidator(once)] = Field(
        ("fdatasync", "fsync"), min_length=1, description="Calls to measure: fdatasync, fsync."
    )
    tests: Annotated[tuple[WritingTest, ...], AfterValidator(once)] = Field(
        ("seqwr",), min_length=1, description="What is written before each call: seqwr, rndwr."
    )
    engines: Annotated[tuple[Engine, ...], AfterValidator(once)] = Field(
        ("sync",), min_length=1, description="fio's engines: sync, psync, pvsync2, libaio, io_uring."
    )
    block_sizes: Annotated[tuple[Annotated[Size, Field(ge=1, le=1 << 26)], ...], AfterValidator(once)] = (
        Field(BLOCK_SIZES, min_length=1, description="Sizes of a write.")
    )
    threads: Annotated[tuple[Annotated[int, Field(ge=1, le=1024)], ...], AfterValidator(once)] = Field(
        THREADS, min_length=1, description="Numbers of threads, each with a file of its own."
    )
    file_size: Annotated[Size, Field(gt=0)] = Field(2 << 30, description="Total size of all test files.")
    time_s: int = Field(30, ge=1, le=86_400, description="Seconds to measure each cell.")
    direct: bool = Field(False, description="Bypass the page cache (O_DIRECT).")

    @field_validator("file_size")
    @classmethod
    def _fits(cls, value: int, info: ValidationInfo) -> int:
        threads, blocks = info.data.get("threads"), info.data.get("block_sizes")
        if threads and blocks and value < (least := max(threads) * max(blocks)):
            raise ValueError(f"must be at least {size_text(least)}: a block for each thread")
        return value

    @field_validator("direct")
    @classmethod
    def _in_sectors(cls, value: bool, info: ValidationInfo) -> bool:
        odd = [size for size in info.data.get("block_sizes", ()) if size % _SECTOR_BYTES]
        if value and odd:
            said = listed([size_text(size) for size in odd])
            raise ValueError(f"needs block sizes in multiples of {_SECTOR_BYTES} B: {said} is none")
        return value

    @model_validator(mode="after")
    def _preset_alone(self) -> "FsyncMatrix":
        fields = FsyncMatrix.model_fields
        also = [name for name, field in fields.items() if getattr(self, name) != field.default]
        if self.preset and len(also) > 1:
            others = listed([name for name in also if name != "preset"])
            raise ValueError(f"{self.preset}'s recipe says all itself: leave {others} out, or the preset")
        return self

    @property
    def cells(self) -> list[FsyncCase]:
        """The cells in the order in which they are measured."""
        if self.preset:
            return [PRESETS[self.preset]]
        own = [
            FsyncCase(None, test, call, engine, block, threads, self.file_size, self.time_s, self.direct)
            for call in self.calls
            for test in self.tests
            for engine in self.engines
            for block in self.block_sizes
            for threads in self.threads
        ]
        return [ETCD, *own]

    def keyed(self, volume: str) -> dict[Hashable, FsyncCase]:
        """Return the cells by the keys that they have on `volume`, finished or not."""
        return {(volume, case): case for case in self.cells}

    @property
    def needed_bytes(self) -> int:
        """The room that the test files need, with a little for the file system."""
        most = max(case.file_size_bytes for case in self.cells)
        return most + most // 20


class FsyncSettings(FsyncMatrix, OnVolume):
    """The volume, and the cells that are measured on it."""
