"""Files that come from strangers: regular ones only, and no more of them than there was room for.

A name may lead to a device without an end, or to a pipe that nobody writes into.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from plimsoll.common.errors import DamagedFileError, RunDirectoryError

_WITHOUT_WAITING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextmanager
def regular_file(path: Path, most_bytes: int | None = None) -> Iterator[BinaryIO]:
    """Open the regular file `path`, or the one that it links to, for reading.

    Raises FileNotFoundError if there is none, DamagedFileError where it is anything else or larger than
    `most_bytes`, RunDirectoryError where it cannot be read, also inside the block.
    """
    try:
        check_regular(path, most_bytes)  # first: opening alone rewinds a tape, or wakes a watchdog
        with os.fdopen(os.open(path, _WITHOUT_WAITING), "rb") as file:
            _check(path, os.fstat(file.fileno()), most_bytes)
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Return all of the regular file `path`. Raises as `regular_file` does."""
    with regular_file(path, most_bytes) as file:
        return file.read(most_bytes)


def lines_of_regular(path: Path, most_bytes: int, longest_bytes: int) -> Iterator[bytes]:
    """Yield the lines of the regular file `path` with their line feeds; longer ones come in pieces.

    It ends where the file ended when it was opened, or at the end of that line: a run may still write it.
    Raises as `regular_file` does.
    """
    with regular_file(path, most_bytes) as file:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (line := file.readline(longest_bytes)):
            left -= len(line)
            yield line


def check_regular(path: Path, most_bytes: int | None = None) -> None:
    """Return if `path` is a regular file, or a link to one; it is not opened. Raises as `regular_file`."""
    try:
        _check(path, path.stat(), most_bytes)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None


def _check(path: Path, facts: os.stat_result, most_bytes: int | None) -> None:
    if not stat.S_ISREG(facts.st_mode):
        kind = next((name for is_it, name in _KINDS if is_it(facts.st_mode)), "something else")
        raise DamagedFileError(
            f"{path}: is {kind}, and only a regular file is read: put back the file that the run wrote, or "
            "leave the run out"
        )
    if most_bytes is not None and facts.st_size > most_bytes:
        raise DamagedFileError(
            f"{path}: is larger than {most_bytes >> 20} MiB, and no run writes so much there: put back the "
            "file that the run wrote, or leave the run out"
        )
