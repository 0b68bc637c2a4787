"""One cell of sysbench's matrix, measured. Pure."""

from plimsoll.lab.fileio.histogram import p999
from plimsoll.lab.fileio.output import Output
from plimsoll.lab.fileio.settings import BLOCK_BYTES, FileioSettings, MatrixCase
from plimsoll.rundir.volumes import MatrixCell


def cell_of(settings: FileioSettings, case: MatrixCase, output: Output) -> MatrixCell:
    """Return the cell that sysbench's output makes. Pure."""
    slow = p999(output.buckets, output.max_ms)
    rates = output.reads_per_s + output.writes_per_s + output.fsyncs_per_s
    # Not execution_s: sysbench ends that a little earlier than the interval that its rates are made of.
    counted_s = output.events / rates if rates else 0.0
    return MatrixCell(
        volume=settings.name,
        threads=case.threads,
        file_size_bytes=settings.file_size,
        block_bytes=BLOCK_BYTES,
        test=case.test,
        time_s=settings.time_s,
        direct=settings.direct,
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
