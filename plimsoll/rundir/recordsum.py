"""The sum by which the records of a run are told from all others: `records_sha256` of `summary.json`."""

import hashlib

import numpy as np

from plimsoll.rundir.requestfile import Records, RequestFile


class RecordSum:
    """Sums the records of a run, block by block, in the order in which they stand."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()

    def add(self, block: Records) -> None:
        """Take the next block of whole records."""
        self._sum.update(block.view(np.uint8).data)

    def hexdigest(self) -> str:
        """Return the SHA-256 of all that was taken, in hexadecimal."""
        return self._sum.hexdigest()


def records_sha256(requests: RequestFile) -> str:
    """Return the SHA-256 (hexadecimal) of all whole records without the header. Raises RunDirectoryError."""
    found = RecordSum()
    for block in requests.blocks():
        found.add(block)
    return found.hexdigest()
