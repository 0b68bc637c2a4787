"""fio's command lines for the filling and a round, and what it prints of them. Pure."""

from dataclasses import dataclass
from typing import Any

from plimsoll.lab.errors import LabError
from plimsoll.lab.fileio.fio_json import of_job
from plimsoll.lab.fileio.precondition.settings import PreconditionSettings

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
        # fio takes a colon in a path for its end, so the path is not told.
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


def written(output: str) -> Written:
    """Return what fio's JSON says of what it wrote; it may say other things before. Raises LabError."""
    return of_job(output, _written, LabError)


def _written(job: dict[str, Any], _: str) -> Written:
    told = job["write"]
    slow = told.get("clat_ns", {}).get("percentile", {}).get("99.900000")
    return Written(
        int(told["io_bytes"]),
        round(float(told["runtime"]) / 1000, 3),
        round(float(told["iops"]), 2),
        round(float(told["bw_bytes"]) / (1 << 20), 2),
        None if slow is None else round(float(slow) / 1e6, 3),
    )
