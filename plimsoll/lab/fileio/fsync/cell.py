"""One cell of fsyncs, measured. Pure."""

from pydantic import ValidationError

from plimsoll.common.validation import sentence_of
from plimsoll.lab.fileio.fsync.output import FioOutput
from plimsoll.lab.fileio.output import FileioError
from plimsoll.rundir.volumes import FsyncCase, FsyncCell


def fsync_cell(volume: str, case: FsyncCase, output: FioOutput) -> FsyncCell:
    """Return the cell that fio's output makes. Raises FileioError where a figure can be none."""
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
