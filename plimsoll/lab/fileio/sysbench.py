"""sysbench's fileio matrix on a volume: its settings, its command lines, what it prints. Pure."""

import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from plimsoll.common.units import counted
from plimsoll.common.validation import AS_SIZE
from plimsoll.lab.fileio.bench import Bench, FileioError, OnVolume, refuse_repeats
from plimsoll.lab.machine import CommandResult
from plimsoll.lab.names import StrictModel
from plimsoll.rundir.volumes import MatrixCell

Test = Literal["rndrd", "seqrd", "rndwr", "seqwr", "rndrw"]
TESTS: tuple[Test, ...] = ("rndrd", "seqrd", "rndwr", "seqwr", "rndrw")
THREADS = (1, 8, 12, 16, 20, 24, 32)
BLOCK_BYTES = 16 << 10
FILES = 128  # sysbench's own default, made explicit
_STEP_BYTES = FILES * BLOCK_BYTES
_OWN = "plimsoll-fileio"


def _whole(value: int) -> int:
    if value % _STEP_BYTES:
        raise ValueError(f"must be a multiple of {_STEP_BYTES >> 20}M: {FILES} files of whole blocks")
    return value


class MatrixCase(NamedTuple):
    """A cell that is to be measured: a test, with a number of threads."""

    test: Test
    threads: int

    @property
    def says(self) -> str:
        """What is measured, in words."""
        return f"{self.test} with {counted(self.threads, 'thread')}"


class Matrix(StrictModel):
    """The cells that are measured. A field's description is its help text."""

    tests: Annotated[tuple[Test, ...], AfterValidator(refuse_repeats)] = Field(
        TESTS, min_length=1, description="Tests: rndrd, seqrd, rndwr, seqwr, rndrw."
    )
    threads: Annotated[tuple[Annotated[int, Field(ge=1, le=1024)], ...], AfterValidator(refuse_repeats)] = (
        Field(THREADS, min_length=1, description="Numbers of threads.")
    )
    file_size: Annotated[int, AS_SIZE, AfterValidator(_whole)] = Field(
        2 << 30, gt=0, le=1 << 50, description="Total size of all test files."
    )
    time_s: int = Field(30, ge=1, le=86_400, description="Seconds to measure each cell.")
    direct: bool = Field(False, description="Bypass the page cache (O_DIRECT).")

    @property
    def cells(self) -> list[MatrixCase]:
        """The cells in the order in which they are measured."""
        return [MatrixCase(test, threads) for test in self.tests for threads in self.threads]

    def cases_by_key(self, volume: str) -> dict[Hashable, MatrixCase]:
        """Return the cells by the keys that they have on `volume`, finished or not."""
        how = (self.time_s, self.direct)
        return {
            (volume, case.threads, self.file_size, BLOCK_BYTES, case.test, *how): case for case in self.cells
        }

    @property
    def needed_bytes(self) -> int:
        """The room that the test files need, with a little for the file system."""
        return self.file_size + self.file_size // 20


class FileioSettings(Matrix, OnVolume):
    """The volume, and the cells that are measured on it."""


class SysbenchBench(Bench[MatrixCase]):
    """sysbench's fileio test; all cells use the same files, which are written before the first."""

    program = "sysbench"

    def __init__(self, settings: FileioSettings) -> None:
        self._settings = settings
        self.directory, self.needed_bytes = settings.directory, settings.needed_bytes
        self.folder = f"{settings.directory.rstrip('/')}/{_OWN}"

    def most_s(self, case: MatrixCase) -> float:
        """Return the seconds that a cell measures."""
        return self._settings.time_s

    def files(self) -> list[str]:
        """Return the command that writes the test files."""
        return [*self._sysbench(), "prepare"]

    def cuts_off(self, case: MatrixCase) -> bool:
        """Return whether a cell leaves files that are shorter than the next one expects."""
        return case.test == "seqwr"

    def run(self, case: MatrixCase) -> list[str]:
        """Return the command that measures a cell."""
        direct = ["--file-extra-flags=direct"] if self._settings.direct else []
        return [
            *self._sysbench(),
            f"--file-block-size={BLOCK_BYTES}",
            f"--file-test-mode={case.test}",
            *direct,
            f"--threads={case.threads}",
            f"--time={self._settings.time_s}",
            "--events=0",
            "--histogram=on",
            "run",
        ]

    def cell(self, case: MatrixCase, printed: str) -> MatrixCell:
        """Return the cell that sysbench printed. Raises FileioError."""
        return parse_cell(self._settings, case, parse_output(printed))

    def complaint(self, done: CommandResult) -> str:
        """Return sysbench's own error: a line with FATAL on either stream."""
        lines = (done.err + "\n" + done.out).splitlines()
        return next((line for line in lines if "FATAL" in line), "")

    def clean_up(self) -> list[list[str]]:
        """Return the commands that remove the test files and then the folder."""
        return [[*self._sysbench(), "cleanup"], ["rmdir", "--", self.folder]]

    def _sysbench(self) -> list[str]:
        # sysbench works in the current folder, and has no option for another.
        here = ["env", f"--chdir={self.folder}"]
        files = [f"--file-total-size={self._settings.file_size}", f"--file-num={FILES}"]
        return [*here, "sysbench", "fileio", *files]


# The latency histogram has 1,024 buckets between 1 µs and 100 s, evenly on a logarithmic scale. Bucket i
# stands for the times around `exp(ln(0.001) + i × step)` ms, half a step to each side, so a figure from it is
# off by at most 0.91 %, and by what its three printed decimals leave out.
_BUCKETS = 1024
_LEAST_MS, _MOST_MS = 1e-3, 1e5
_HALF_STEP = math.log(_MOST_MS / _LEAST_MS) / (_BUCKETS - 1) / 2
_PRINTED_MS = 0.0005
_FEWEST = 1000  # events that p99.9 is given for

_BUCKET = re.compile(r"\s*(\d{1,9}\.\d{3}) \|[* ]* (\d{1,18})\s*", re.ASCII)
_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"
_FIGURES = {
    "reads_per_s": r"reads/s:\s+" + _NUMBER,
    "writes_per_s": r"writes/s:\s+" + _NUMBER,
    "fsyncs_per_s": r"fsyncs/s:\s+" + _NUMBER,
    "read_mib_per_s": r"read, MiB/s:\s+" + _NUMBER,
    "written_mib_per_s": r"written, MiB/s:\s+" + _NUMBER,
    "execution_s": r"total time:\s+" + _NUMBER + "s",
    "events": r"total number of events:\s+(\d{1,18})",
    "max_ms": r"max:\s+" + _NUMBER,
}
_PATTERNS = {name: re.compile(r"\s*" + form + r"\s*", re.ASCII) for name, form in _FIGURES.items()}


@dataclass(frozen=True)
class Bucket:
    """A line of the histogram."""

    value_ms: float
    count: int


@dataclass(frozen=True)
class SysbenchOutput:
    """The figures of one run, as printed; `events` are reads, writes and fsyncs."""

    reads_per_s: float
    writes_per_s: float
    fsyncs_per_s: float
    read_mib_per_s: float
    written_mib_per_s: float
    execution_s: float
    events: int
    max_ms: float
    buckets: tuple[Bucket, ...]


def parse_cell(settings: FileioSettings, case: MatrixCase, output: SysbenchOutput) -> MatrixCell:
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


def parse_output(text: str) -> SysbenchOutput:
    """Read what sysbench printed. Raises FileioError, also where the histogram does not hold all events."""
    found: dict[str, float] = {}
    buckets: list[Bucket] = []
    for line in text.splitlines():
        if bucket := _BUCKET.fullmatch(line):
            buckets.append(Bucket(float(bucket[1]), int(bucket[2])))
            continue
        for name, pattern in _PATTERNS.items():
            if name not in found and (figure := pattern.fullmatch(line)):
                found[name] = float(figure[1])
    if missing := [name for name in _PATTERNS if name not in found]:
        raise FileioError(
            f"sysbench printed no {', no '.join(missing)}: it must be version 1.0 (apt-get install sysbench)"
        )
    events = int(found.pop("events"))
    if (counted := sum(bucket.count for bucket in buckets)) != events:
        raise FileioError(f"sysbench's histogram holds {counted} of {events} events: it must be version 1.0")
    return SysbenchOutput(**found, events=events, buckets=tuple(buckets))


@dataclass(frozen=True)
class Percentile:
    """A percentile; the true order statistic lies between `low_ms` and `high_ms`, both included."""

    value_ms: float
    low_ms: float
    high_ms: float


def p999(buckets: Sequence[Bucket], max_ms: float) -> Percentile | None:
    """Return the 99.9th percentile: that of the event of rank ⌈0.999 n⌉; None under 1,000 events.

    `max_ms` is the longest time, rounded to two decimals as sysbench prints it: no bucket reaches beyond it.
    """
    total = sum(bucket.count for bucket in buckets)
    if total < _FEWEST:
        return None
    rank = (999 * total + 999) // 1000
    seen = 0
    for bucket in buckets:
        seen += bucket.count
        if seen >= rank:
            return _bound_by(bucket.value_ms, max_ms + 0.005)
    return None  # not reached: the last bucket holds the last rank


def _bound_by(value_ms: float, max_ms: float) -> Percentile:
    low_ms = (value_ms - _PRINTED_MS) * math.exp(-_HALF_STEP)
    high_ms = (value_ms + _PRINTED_MS) * math.exp(_HALF_STEP)
    if value_ms <= _LEAST_MS + _PRINTED_MS:
        low_ms = 0.0  # the first bucket holds all that was faster
    high_ms = max_ms if value_ms >= _MOST_MS - 1 else min(high_ms, max_ms)  # the last, all that was slower
    return Percentile(value_ms, min(low_ms, value_ms), max(high_ms, value_ms))
