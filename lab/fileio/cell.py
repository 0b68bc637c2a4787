"""One cell of sysbench's matrix, measured."""

from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any

from lab.fileio.histogram import p999
from lab.fileio.output import Output
from lab.fileio.settings import BLOCK_BYTES, FileioSettings, MatrixCase


@dataclass(frozen=True)
class Cell:
    """A finished cell. sysbench prints rates only: reads and writes are its events, shared alike."""

    volume: str
    threads: int
    file_size_bytes: int
    block_bytes: int
    test: str
    time_s: int
    direct: bool
    reads: int
    writes: int
    fsyncs: int
    throughput_mib_per_s: float
    iops: float
    execution_s: float
    events: int
    p999_ms: float | None
    p999_low_ms: float | None
    p999_high_ms: float | None

    @property
    def key(self) -> Hashable:
        """The key of what was measured: two cells with the same key are the same cell."""
        return (
            self.volume,
            self.threads,
            self.file_size_bytes,
            self.block_bytes,
            self.test,
            self.time_s,
            self.direct,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the cell as it is kept and printed."""
        return asdict(self)


def cell_of(settings: FileioSettings, case: MatrixCase, output: Output) -> Cell:
    """Return the cell that sysbench's output makes. Pure."""
    slow = p999(output.buckets, output.max_ms)
    rates = output.reads_per_s + output.writes_per_s + output.fsyncs_per_s
    # Not execution_s: sysbench ends that a little earlier than the interval that its rates are made of.
    counted_s = output.events / rates if rates else 0.0
    return Cell(
        settings.name,
        case.threads,
        settings.file_size,
        BLOCK_BYTES,
        case.test,
        settings.time_s,
        settings.direct,
        reads=round(output.reads_per_s * counted_s),
        writes=round(output.writes_per_s * counted_s),
        fsyncs=round(output.fsyncs_per_s * counted_s),
        throughput_mib_per_s=round(output.read_mib_per_s + output.written_mib_per_s, 2),
        iops=round(output.reads_per_s + output.writes_per_s, 2),
        execution_s=output.execution_s,
        events=output.events,
        p999_ms=slow.value_ms if slow else None,
        p999_low_ms=slow.low_ms if slow else None,
        p999_high_ms=slow.high_ms if slow else None,
    )
