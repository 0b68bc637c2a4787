"""Lines of a file, plain or gzip, in bounded memory, whatever stands in it."""

import gzip
import os
import select
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO

from plimsoll.common.errors import PlimsollError
from plimsoll.common.units import counted
from plimsoll.rundir.write import Status

LONGEST_BYTES = 1 << 20
MOST_FILES = 0xFFFF  # a client's number has so much room for the file that it is from
_CHUNK = 1 << 16
_TELL_LINES = 1 << 12
_MOST_BROKEN = 0.01
_GZIP = b"\x1f\x8b"


class ImportingError(PlimsollError):
    """A file that cannot be imported; the message names it and says what to do."""


class CutOffError(Exception):
    """The file ends in the middle, as a killed program leaves it; the message says how."""


def decide_status(broken: int, lines: int) -> tuple[Status, str | None]:
    """Return how an import ends if so many of its `lines` could not be read: over 1 % is no run. Pure."""
    if not broken:
        return "complete", None
    reason = f"{counted(broken, 'line')} of {lines:,} could not be read"
    return ("failed" if broken > _MOST_BROKEN * lines else "complete"), reason


def read_file_lines(path: Path, advance: Callable[[int], None] = lambda _: None) -> Iterator[bytes]:
    """Yield the lines of `path` with their line feeds; one longer than 1 MiB comes in pieces.

    `advance` is called now and then with the bytes of the file that were read since its last call. Raises
    ImportingError where it cannot be read, CutOffError after the last line of a gzip file that is cut off or
    damaged.
    """
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == _GZIP
            file.seek(0)
            source: IO[bytes] = gzip.GzipFile(fileobj=file) if zipped else file  # type: ignore[assignment]
            told = 0
            for number, line in enumerate(iter(partial(source.readline, LONGEST_BYTES), b"")):
                yield line
                if number % _TELL_LINES == 0:
                    advance(file.tell() - told)
                    told = file.tell()
            advance(file.tell() - told)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CutOffError(f"the gzip data is cut off or damaged ({error})") from None
    except OSError as error:
        raise ImportingError(f"{path}: cannot be read: {error.strerror}") from None


def check_files(paths: Sequence[Path]) -> None:
    """Return if each of `paths` is a file, and given once. Raises ImportingError, a line for each other."""
    wrong = [f"{path}: there is no such file" for path in paths if not path.is_file()]
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            wrong.append(f"{path}: is given twice")
        seen.add(path.resolve())
    if len(paths) > MOST_FILES:
        wrong.append(f"{len(paths)} files are more than can be told apart")
    if wrong:
        raise ImportingError("\n".join(wrong))


def count_two_passes(paths: Sequence[Path], progress: Callable[[int, int], None]) -> Callable[[int], None]:
    """Return what to call with bytes that were read, where all of `paths` are read twice."""
    total, done = 2 * sum(path.stat().st_size for path in paths), 0

    def advance(read: int) -> None:
        nonlocal done
        done += read
        progress(done, total)

    return advance


def lines_from_pipe(descriptor: int, ended: Callable[[], bool]) -> Iterator[bytes]:
    """Yield the lines that come through a named pipe until nobody has it open and `ended()` is true."""
    rest = b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], 0.1)
        over = ended()
        chunk = _read(descriptor) if ready or over else b""
        if chunk:
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line + b"\n"
            if len(rest) > LONGEST_BYTES:
                yield rest
                rest = b""
        elif over:
            break
        elif ready:  # no writer yet, or none any more: such a pipe is always ready
            select.select([], [], [], 0.02)
    if rest:
        yield rest


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return b""
