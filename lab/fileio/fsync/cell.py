"""One cell of a measurement of fsyncs."""

from collections.abc import Hashable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lab.fileio.fsync.output import Figure, FioOutput
from lab.fileio.fsync.settings import Call, Engine, FsyncCase, Preset, WritingTest
from lab.fileio.output import FileioError
from plimsoll.common.problems import sentence_of

Count = Annotated[int, Field(ge=0, le=1 << 62)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Times = dict[Figure, Number | None]


class FsyncCell(BaseModel):
    """A finished cell; a figure that too few calls leave open is None."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    volume: str
    preset: Preset | None
    test: WritingTest
    call: Call
    engine: Engine
    block_bytes: Count
    threads: Count
    file_size_bytes: Count
    time_s: Count | None
    direct: bool
    fio: str
    writes: Count
    syncs: Count
    throughput_mib_per_s: Number
    iops: Number
    execution_s: Number
    sync_ms: Times
    write_ms: Times

    @property
    def case(self) -> FsyncCase:
        """What was measured."""
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

    def as_json(self) -> dict[str, Any]:
        """Return the cell as it is kept and printed."""
        return self.model_dump()


def fsync_cell(volume: str, case: FsyncCase, output: FioOutput) -> FsyncCell:
    """Return the cell that fio's output makes. Raises FileioError where a figure can be none. Pure."""
    try:
        return FsyncCell(
            volume=volume,
            **vars(case),
            fio=output.version,
            writes=output.writes,
            syncs=output.syncs,
            throughput_mib_per_s=output.mib_per_s,
            iops=output.iops,
            execution_s=output.execution_s,
            sync_ms=output.sync_ms,
            write_ms=output.write_ms,
        )
    except ValidationError as error:
        raise FileioError(f"fio printed figures that cannot be: {sentence_of(error)}") from None
