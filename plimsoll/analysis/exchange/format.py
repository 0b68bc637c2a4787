"""The face of every export format: a name, what its file holds, and how it is written."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from plimsoll.rundir.read import RunDirectory

Advance = Callable[[int], None]
Writer = Callable[[IO[bytes]], None]


@dataclass(frozen=True)
class Format:
    """One export format. `holds` completes the help of `--to`.

    `prepare` takes a run and what to call with records read; before any file is opened it does what may
    fail, and returns how many requests the file stands for and what writes it. Raises PlimsollError.
    """

    name: str
    holds: str
    prepare: Callable[[RunDirectory, Advance], tuple[int, Writer]]


def by_blocks(
    blocks: Callable[[RunDirectory], Iterator[tuple[int, bytes]]],
) -> Callable[[RunDirectory, Advance], tuple[int, Writer]]:
    """Return how to prepare a format that is written a block of records at a time."""

    def prepare(run: RunDirectory, advance: Advance) -> tuple[int, Writer]:
        def write(file: IO[bytes]) -> None:
            for records, piece in blocks(run):
                file.write(piece)
                advance(records)

        return run.requests.count, write

    return prepare
