"""What is stored about volumes: the cells of `plimsoll fileio`, the rounds of preconditioning."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plimsoll.common.files import read_lines
from plimsoll.common.units import counted, size_text

# None that reads: fio 3.33 also syncs after reads, when there is nothing to save.
WritingTest = Literal["seqwr", "rndwr"]
Call = Literal["fdatasync", "fsync"]
Engine = Literal["sync", "psync", "pvsync2", "libaio", "io_uring"]
Preset = Literal["etcd"]
Figure = Literal["mean", "p50", "p90", "p95", "p99", "p99.9", "max"]

_Count = Annotated[int, Field(ge=0, le=1 << 62)]
_Threads = Annotated[int, Field(ge=1, le=1 << 20)]
_Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Times = dict[Figure, _Number | None]
_STRICT = ConfigDict(extra="ignore", frozen=True, strict=True, defer_build=True)


class _Cell(BaseModel):
    model_config = _STRICT

    def as_json(self) -> dict[str, Any]:
        """Return the cell as it is kept and printed."""
        return self.model_dump()


class MatrixCell(_Cell):
    """A cell of sysbench's matrix (hostile).

    sysbench prints rates only: reads and writes are its events, shared alike. Fewer than 1,000 events have no
    p99.9.
    """

    volume: str
    threads: _Threads
    file_size_bytes: _Count
    block_bytes: _Count
    test: str
    time_s: _Count
    direct: bool
    reads: _Count
    writes: _Count
    fsyncs: _Count
    throughput_mib_per_s: _Number
    iops: _Number
    execution_s: _Number
    events: _Count
    p999_ms: _Number | None
    p999_low_ms: _Number | None
    p999_high_ms: _Number | None

    @property
    def how(self) -> tuple[int, int, bool]:
        """The settings in which two lines of one volume may differ."""
        return self.file_size_bytes, self.block_bytes, self.direct

    @property
    def key(self) -> Hashable:
        """The key of what was measured: two cells with the same key are the same cell."""
        how = (self.time_s, self.direct)
        return (self.volume, self.threads, self.file_size_bytes, self.block_bytes, self.test, *how)


@dataclass(frozen=True)
class FsyncCase:
    """What is measured of fsyncs: the call after each write. `time_s` None: until the file is written."""

    preset: Preset | None
    test: WritingTest
    call: Call
    engine: Engine
    block_bytes: int
    threads: int
    file_size_bytes: int
    time_s: int | None
    direct: bool

    @property
    def says(self) -> str:
        """What is measured, in words."""
        if self.preset:
            return f"{self.call} as in {self.preset}'s recipe"
        threads = counted(self.threads, "thread")
        return (
            f"{self.call} after {self.test} of {size_text(self.block_bytes)} by {self.engine} with {threads}"
        )


class FsyncCell(_Cell):
    """A cell of fsyncs (hostile); a figure with too few calls is None."""

    volume: str
    preset: Preset | None
    test: WritingTest
    call: Call
    engine: Engine
    block_bytes: _Count
    threads: _Threads
    file_size_bytes: _Count
    time_s: _Count | None
    direct: bool
    fio: str
    writes: _Count
    syncs: _Count
    throughput_mib_per_s: _Number
    iops: _Number
    execution_s: _Number
    sync_ms: Times
    write_ms: Times

    @property
    def case(self) -> FsyncCase:
        """What was measured, whichever the volume."""
        return FsyncCase(
            self.preset,
            self.test,
            self.call,
            self.engine,
            self.block_bytes,
            self.threads,
            self.file_size_bytes,
            self.time_s,
            self.direct,
        )

    @property
    def key(self) -> Hashable:
        """The key of what was measured: two cells with the same key are the same cell."""
        return (self.volume, self.case)


AnyCell = MatrixCell | FsyncCell


def cell_in(value: object) -> AnyCell | None:
    """Return the cell in a line of JSON, or None. Pure."""
    kind = FsyncCell if isinstance(value, dict) and "sync_ms" in value else MatrixCell
    try:
        return kind.model_validate(value)
    except ValidationError:
        return None


class VolumeRound(BaseModel):
    """A round on a volume (hostile); number 0 is the filling, which is called `filling`.

    `range_percent` and `slope_percent` are of the five rounds up to this one, None before there are five, and
    so is `steady`. `bytes` is the size of the file in number 0, else what was written. The filling has no
    `iops`.
    """

    model_config = _STRICT

    volume: str
    filling: str
    round: _Count
    fill_percent: _Count
    block_bytes: _Count
    threads: _Count
    bytes: _Count
    seconds: _Number
    mib_per_s: _Number
    iops: _Number | None = None
    p999_ms: _Number | None = None
    range_percent: _Number | None = None
    slope_percent: _Number | None = None
    steady: bool | None = None


def parse_round(value: object) -> VolumeRound | None:
    """Return the round in a line of JSON, or None. Pure."""
    try:
        found = VolumeRound.model_validate(value)
    except ValidationError:
        return None
    return found if found.iops is not None or found.round == 0 else None


def last_filling(every: Sequence[VolumeRound], volume: str) -> list[VolumeRound]:
    """Return those of the last filling of `volume`, the filling itself first; empty before it. Pure."""
    own = [one for one in every if one.volume == volume]
    return [one for one in own if one.filling == own[-1].filling]


def read_rounds(path: Path) -> list[VolumeRound]:
    """Return the rounds in `path`, of all volumes and fillings; other lines are left out."""
    return [one for value in read_lines(path) if (one := parse_round(value))]
