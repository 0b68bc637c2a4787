"""Files that grow while they are read: each byte is read once."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.files import open_regular
from plimsoll.rundir.records import HEADER_BYTES, RECORD, Records

_BLOCK_BYTES = RECORD.itemsize << 14  # 1.1 MB
_MOST_LINES_BYTES = 8 << 20  # at a look


class Tail:
    """Yields what was appended to `path` since the last call; nothing while the file is not there."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path, self._offset = path, offset

    def lines(self) -> list[bytes]:
        """Return the whole lines that were appended; one that is only begun comes with a later call."""
        data = self._read(_MOST_LINES_BYTES)
        end = data.rfind(b"\n") + 1
        self._offset += end
        return data[:end].splitlines()

    def records(self) -> Iterator[Records]:
        """Yield the whole records that were appended, in arrays of shape (n,)."""
        self._offset = max(self._offset, HEADER_BYTES)
        while count := len(data := self._read(_BLOCK_BYTES)) // RECORD.itemsize:
            self._offset += count * RECORD.itemsize
            yield np.frombuffer(data, dtype=RECORD, count=count)

    def _read(self, most_bytes: int) -> bytes:
        try:
            with open_regular(self._path) as file:
                return os.pread(file.fileno(), most_bytes, self._offset)
        except (FileNotFoundError, RunDirectoryError):  # not yet, or moved among the finished runs
            return b""
