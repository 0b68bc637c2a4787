"""Parses the JSON that fio prints of one group of jobs. Pure."""

from dataclasses import dataclass
from typing import Any, get_args

from plimsoll.lab.fileio.fio_json import of_job
from plimsoll.lab.fileio.output import FileioError
from plimsoll.rundir.volumes import Figure

Figures = dict[Figure, float | None]

FIGURES: tuple[Figure, ...] = get_args(Figure)
_PERCENTILES: dict[str, tuple[Figure, int]] = {  # by fio's name, with the fewest times that it is given for
    "50.000000": ("p50", 2),
    "90.000000": ("p90", 10),
    "95.000000": ("p95", 20),
    "99.000000": ("p99", 100),
    "99.900000": ("p99.9", 1000),
}


@dataclass(frozen=True)
class FioOutput:
    """What fio says: counts of writes and syncs, and the times of each kind in milliseconds."""

    version: str
    writes: int
    syncs: int
    mib_per_s: float
    iops: float
    execution_s: float
    sync_ms: Figures
    write_ms: Figures


def parse_fio(printed: str) -> FioOutput:
    """Read what fio printed, which may say other things before its JSON. Raises FileioError."""
    needs = "it must be version 3.19 or newer (apt-get install fio): "
    return of_job(printed, _output, FileioError, needs)


def _output(job: dict[str, Any], version: str) -> FioOutput:
    written, synced = job["write"], job["sync"]["lat_ns"]
    # Not `total_ios` of `sync`: it counts fsyncs alone, and is 0 after fdatasyncs.
    return FioOutput(
        version[:40],
        int(written["total_ios"]),
        int(synced["N"]),
        round(float(written["bw_bytes"]) / (1 << 20), 3),
        round(float(written["iops"]), 2),
        round(float(written["runtime"]) / 1000, 3),
        _figures(synced),
        _figures(written["clat_ns"]),
    )


def _figures(told: dict[str, Any]) -> Figures:
    """Return the figures in milliseconds; None where there are too few times for one."""
    count, shares = int(told["N"]), told.get("percentile", {})
    if not count:
        return dict.fromkeys(FIGURES)
    longest = float(told["max"])
    found: Figures = {"mean": _ms(float(told["mean"]))}
    for fios, (name, fewest) in _PERCENTILES.items():
        # A bucket's middle, which can lie beyond the longest time.
        value = None if count < fewest or fios not in shares else min(float(shares[fios]), longest)
        found[name] = None if value is None else _ms(value)
    return {**found, "max": _ms(longest)}


def _ms(value_ns: float) -> float:
    return round(value_ns / 1e6, 6)
