"""A file that appears whole or not at all; or standard output."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from analysis.errors import OutputError

STDOUT = Path("-")
# The run itself, which no export may replace.
_OF_THE_RUN = {
    "run.json",
    "requests.npy",
    "routes.json",
    "errors.json",
    "events.jsonl",
    "host.csv",
    "summary.json",
    "grinder-0-data.log",
    "rejects.log",
}


def check(out: Path, run: Path) -> None:
    """Return if `out` may be written. Raises OutputError for a directory and for files of the run itself."""
    if out.is_dir():
        raise OutputError(f"{out}: is a directory; give the name of a file with --out")
    if out.name in _OF_THE_RUN and out.resolve().parent == run.resolve():
        raise OutputError(f"{out}: is part of the run; give another name with --out")


@contextmanager
def written(out: Path) -> Iterator[IO[bytes]]:
    """Open `out` to be written, by way of a hidden file beside it and a rename. Raises OutputError.

    `-` is standard output; a pipe or a device is written as it is.
    """
    if out == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    whole = not out.exists() or out.is_file()
    path = out.with_name(f".{out.name}.{os.getpid()}.new") if whole else out
    try:
        try:
            with path.open("wb") as file:
                yield file
            if whole:
                path.replace(out)
        except BaseException:
            if whole:
                with suppress(OSError):
                    path.unlink()
            raise
    except OSError as error:
        raise OutputError(
            f"{out}: cannot be written: {error.strerror or error}; choose another place with --out"
        ) from None
