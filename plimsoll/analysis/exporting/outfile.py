"""A file that appears whole or not at all; or standard output."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from plimsoll.common.atomic import replacing
from plimsoll.common.errors import OutputError
from plimsoll.rundir.names import RECORDS

STDOUT = Path("-")


def check(out: Path, run: Path) -> None:
    """Return if `out` may be written. Raises OutputError for a directory and for files of the run itself."""
    if out.is_dir():
        raise OutputError(f"{out}: is a directory; give the name of a file with --out")
    if _is_record(out, run):
        raise OutputError(f"{out}: is part of the run; give another name with --out")


def _is_record(path: Path, run: Path) -> bool:
    """Return whether `path` is one of the run's own files, or lies in one of its folders."""
    try:
        inside = (path.parent.resolve() / path.name).relative_to(run.resolve())
    except ValueError:
        return False
    return inside.parts[0] in RECORDS


@contextmanager
def written(out: Path) -> Iterator[IO[bytes]]:
    """Open `out` to be written, by way of a hidden file beside it and a rename. Raises OutputError.

    Its folder is made where it is missing. `-` is standard output; a pipe or a device is written as it is.
    """
    if out == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    whole = not out.exists() or out.is_file()
    try:
        with replacing(out, parents=True) if whole else out.open("wb") as file:
            yield file
    except OSError as error:
        raise OutputError(
            f"{out}: cannot be written: {error.strerror or error}; choose another place with --out"
        ) from None
