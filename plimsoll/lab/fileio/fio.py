"""Fsyncs on a volume by fio: their settings, the command lines, what fio prints. Pure."""

import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator

from plimsoll.common.units import listed, size_text
from plimsoll.common.validation import Size, sentence_of
from plimsoll.lab.errors import LabError
from plimsoll.lab.fileio.bench import SLOWEST_BYTES_PER_S, Bench, FileioError, OnVolume, refuse_repeats
from plimsoll.lab.machine import CommandResult
from plimsoll.lab.names import StrictModel
from plimsoll.rundir.volumes import Call, Engine, Figure, FsyncCase, FsyncCell, Preset, WritingTest

THREADS = (1, 8)
BLOCK_SIZES = (4 << 10, 16 << 10)
_SECTOR_BYTES = 512
_MOST_PRESET_S = 600  # what a preset may take on a slow disk
_OWN = "plimsoll-fsync"
_NAME = "plimsoll"  # of the job: its files are plimsoll.0.0, plimsoll.1.0, …
_RW = {"seqwr": "write", "rndwr": "randwrite"}

# The recipe of Matteo Olivi and Mike Spreitzer, "Using Fio to Tell Whether Your Storage is Fast Enough for
# Etcd", IBM, 18 April 2019: blocks and calls are those of etcd's write-ahead log.
ETCD = FsyncCase("etcd", "seqwr", "fdatasync", "sync", 2300, 1, 22 << 20, None, False)
PRESETS: dict[Preset, FsyncCase] = {"etcd": ETCD}


class FsyncMatrix(StrictModel):
    """The cells that are measured. A field's description is its help text."""

    preset: Preset | None = Field(
        None, description="etcd: its recipe alone. Default: that recipe, and the cells of all other keys."
    )
    calls: Annotated[tuple[Call, ...], AfterValidator(refuse_repeats)] = Field(
        ("fdatasync", "fsync"), min_length=1, description="Calls to measure: fdatasync, fsync."
    )
    tests: Annotated[tuple[WritingTest, ...], AfterValidator(refuse_repeats)] = Field(
        ("seqwr",), min_length=1, description="What is written before each call: seqwr, rndwr."
    )
    engines: Annotated[tuple[Engine, ...], AfterValidator(refuse_repeats)] = Field(
        ("sync",), min_length=1, description="fio's engines: sync, psync, pvsync2, libaio, io_uring."
    )
    block_sizes: Annotated[
        tuple[Annotated[Size, Field(ge=1, le=1 << 26)], ...], AfterValidator(refuse_repeats)
    ] = Field(BLOCK_SIZES, min_length=1, description="Sizes of a write.")
    threads: Annotated[tuple[Annotated[int, Field(ge=1, le=1024)], ...], AfterValidator(refuse_repeats)] = (
        Field(THREADS, min_length=1, description="Numbers of threads, each with a file of its own.")
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
            raise ValueError(f"needs block sizes in multiples of {_SECTOR_BYTES} B: {said} is not")
        return value

    @model_validator(mode="after")
    def _preset_alone(self) -> "FsyncMatrix":
        fields = FsyncMatrix.model_fields
        also = [name for name, field in fields.items() if getattr(self, name) != field.default]
        if self.preset and len(also) > 1:
            others = listed([name for name in also if name != "preset"])
            raise ValueError(
                f"{self.preset}'s recipe sets everything itself: leave {others} out, or the preset"
            )
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

    def cases_by_key(self, volume: str) -> dict[Hashable, FsyncCase]:
        """Return the cells by the keys that they have on `volume`, finished or not."""
        return {(volume, case): case for case in self.cells}

    @property
    def needed_bytes(self) -> int:
        """The room that the test files need, with a little for the file system."""
        most = max(case.file_size_bytes for case in self.cells)
        return most + most // 20


class FsyncSettings(FsyncMatrix, OnVolume):
    """The volume, and the cells that are measured on it."""


def lays_out(case: FsyncCase) -> bool:
    """Return whether its files are written before it is measured: at random it writes over what is there."""
    return case.test == "rndwr"


def most_s(case: FsyncCase) -> int:
    """Return the seconds after which it ends at the latest."""
    return _MOST_PRESET_S if case.time_s is None else case.time_s


class FioBench(Bench[FsyncCase]):
    """fio, which writes and syncs; each cell makes its own files, and removes them."""

    program = "fio"

    def __init__(self, settings: FsyncSettings) -> None:
        self._settings = settings
        self.directory, self.needed_bytes = settings.directory, settings.needed_bytes
        self.folder = f"{settings.directory.rstrip('/')}/{_OWN}"

    def most_s(self, case: FsyncCase) -> float:
        """Return the seconds that a cell takes at most, files that it writes itself included."""
        return most_s(case) + (case.file_size_bytes / SLOWEST_BYTES_PER_S if lays_out(case) else 0.0)

    def files(self) -> None:
        """Return None: each cell writes its own."""

    def run(self, case: FsyncCase) -> list[str]:
        """Return the command that measures a cell."""
        size_bytes = case.file_size_bytes // case.threads
        return [
            # fio takes a colon in a path for its end, so the path is left out.
            *("env", f"--chdir={self.folder}", "fio", f"--name={_NAME}", "--directory=."),
            f"--rw={_RW[case.test]}",
            f"--ioengine={case.engine}",
            f"--{case.call}=1",
            f"--size={size_bytes if size_bytes % (1 << 20) else f'{size_bytes >> 20}m'}",
            f"--bs={case.block_bytes}",
            *([] if case.preset else _matrix_options(case)),
            f"--runtime={most_s(case)}",
            # As processes, fio's jobs are sessions of their own: one can outlive fio.
            "--thread",
            "--group_reporting",
            "--unlink=1",
            "--eta=never",
            "--output-format=json",
        ]

    def cell(self, case: FsyncCase, printed: str) -> FsyncCell:
        """Return the cell that fio printed. Raises FileioError."""
        return fsync_cell(self._settings.name, case, parse_fio(printed))

    def complaint(self, done: CommandResult) -> str:
        """Return fio's own error: a line that begins with its name, on either stream."""
        lines = (done.err + "\n" + done.out).splitlines()
        return next((line for line in lines if line.startswith("fio:")), "")

    def clean_up(self) -> list[list[str]]:
        """Return the commands that remove what a killed fio left, each file by its name, and the folder."""
        most = max(case.threads for case in self._settings.cells)
        files = [f"{self.folder}/{_NAME}.{job}.0" for job in range(most)]
        return [["rm", "-f", "--", *files], ["rmdir", "--", self.folder]]


def _matrix_options(case: FsyncCase) -> list[str]:
    """Return what etcd's recipe leaves open."""
    return [
        "--iodepth=1",
        f"--direct={int(case.direct)}",
        f"--numjobs={case.threads}",
        "--fallocate=none",  # not everywhere to be had, and it spares each fsync the growth of the file
        # At random, written over as in a database; one after another, appended as to its log.
        *(["--overwrite=1", "--norandommap"] if lays_out(case) else []),
        "--time_based",
    ]


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


def fsync_cell(volume: str, case: FsyncCase, output: FioOutput) -> FsyncCell:
    """Return the cell in fio's output. Raises FileioError if a figure is impossible."""
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
        raise FileioError(f"fio printed impossible figures: {sentence_of(error)}") from None


def parse_fio(printed: str) -> FioOutput:
    """Read what fio printed, which may say other things before its JSON. Raises FileioError."""
    needs = "it must be version 3.19 or newer (apt-get install fio): "
    return read_fio_job(printed, _output, FileioError, needs)


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


def _figures(latency: dict[str, Any]) -> Figures:
    """Return the figures in milliseconds; None where there are too few times for one."""
    count, shares = int(latency["N"]), latency.get("percentile", {})
    if not count:
        return dict.fromkeys(FIGURES)
    longest = float(latency["max"])
    found: Figures = {"mean": _ms(float(latency["mean"]))}
    for fios, (name, fewest) in _PERCENTILES.items():
        # A bucket's middle, which can lie beyond the longest time.
        value = None if count < fewest or fios not in shares else min(float(shares[fios]), longest)
        found[name] = None if value is None else _ms(value)
    return {**found, "max": _ms(longest)}


def _ms(value_ns: float) -> float:
    return round(value_ns / 1e6, 6)


Read = TypeVar("Read")


def read_fio_job(
    printed: str, read: Callable[[dict[str, Any], str], Read], failure: type[LabError], needs: str = ""
) -> Read:
    """Return what `read` makes of the one job that fio printed, and of fio's version.

    Other things may stand before the JSON. Raises `failure` where the job failed, or where fio printed
    something else; then with what it `needs`.
    """
    start = 0 if printed.startswith("{") else printed.find("\n{\n") + 1
    try:
        document = json.loads(printed[start:])
        (job,) = document["jobs"]
        if job["error"]:
            raise failure(f"fio ended with error {int(job['error'])}")
        return read(job, str(document["fio version"]))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise failure(f"cannot parse what fio prints: {needs}{printed.strip()[:100] or 'nothing'}") from None
