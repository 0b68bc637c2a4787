"""Room on the disk for the end of a run: a run whose disk is full can still be marked as failed."""

import os
from contextlib import suppress
from pathlib import Path

from plimsoll.common.files import write_error

_NAME = ".reserve"
_BYTES = 64 << 10  # of the last run.json and of summary.json


class Reserve:
    """A file in the run directory that holds the room, until `release`. See docs/run-format.md."""

    def __init__(self, directory: Path) -> None:
        """Take the room. Raises OutputError where there is none."""
        self._path = directory / _NAME
        try:
            self._path.write_bytes(os.urandom(_BYTES))  # zeros take no room where the file system compresses
        except OSError as error:
            self.release()
            raise write_error(self._path, error) from None

    def release(self) -> None:
        """Give the room up. May be called twice."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
