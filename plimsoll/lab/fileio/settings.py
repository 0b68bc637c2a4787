"""The settings of a measurement: one volume, and the cells of sysbench's matrix."""

from collections.abc import Hashable
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field

from plimsoll.common.units import AS_SIZE, counted
from plimsoll.lab.names import StrictModel

Test = Literal["rndrd", "seqrd", "rndwr", "seqwr", "rndrw"]
TESTS: tuple[Test, ...] = ("rndrd", "seqrd", "rndwr", "seqwr", "rndrw")
THREADS = (1, 8, 12, 16, 20, 24, 32)
BLOCK_BYTES = 16 << 10
FILES = 128  # sysbench's own default, made explicit
_STEP_BYTES = FILES * BLOCK_BYTES


def _whole(value: int) -> int:
    if value % _STEP_BYTES:
        raise ValueError(f"must be a multiple of {_STEP_BYTES >> 20}M: {FILES} files of whole blocks")
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/") or "\0" in value:
        raise ValueError("must be an absolute path, such as /srv/data")
    return value


def once(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `value` if it names nothing twice. Raises ValueError."""
    if len(set(value)) != len(value):
        raise ValueError("must not name anything twice")
    return value


AbsolutePath = Annotated[str, AfterValidator(_absolute)]


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

    tests: Annotated[tuple[Test, ...], AfterValidator(once)] = Field(
        TESTS, min_length=1, description="Tests: rndrd, seqrd, rndwr, seqwr, rndrw."
    )
    threads: Annotated[tuple[Annotated[int, Field(ge=1, le=1024)], ...], AfterValidator(once)] = Field(
        THREADS, min_length=1, description="Numbers of threads."
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

    def keyed(self, volume: str) -> dict[Hashable, MatrixCase]:
        """Return the cells by the keys that they have on `volume`, finished or not."""
        how = (self.time_s, self.direct)
        return {
            (volume, case.threads, self.file_size, BLOCK_BYTES, case.test, *how): case for case in self.cells
        }

    @property
    def needed_bytes(self) -> int:
        """The room that the test files need, with a little for the file system."""
        return self.file_size + self.file_size // 20


class OnVolume(StrictModel):
    """The volume that is measured."""

    directory: AbsolutePath = Field(description="Folder on the volume to be measured.")
    volume: str = Field(
        "", max_length=200, description="Name of the volume in the table. Default: the folder."
    )

    @property
    def name(self) -> str:
        """The volume's name in the table."""
        return self.volume or self.directory


class FileioSettings(Matrix, OnVolume):
    """The volume, and the cells that are measured on it."""
