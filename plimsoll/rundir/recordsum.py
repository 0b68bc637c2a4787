"""The sum by which the records of a run are told from all others: `records_sha256` of `summary.json`."""

import hashlib
from collections.abc import Callable

import numpy as np

from plimsoll.rundir.requestfile import RequestFile


def records_sha256(requests: RequestFile, progress: Callable[[int], None] = lambda _: None) -> str:
    """Return the SHA-256 (hexadecimal) of all whole records without the header. Raises RunDirectoryError."""
    found = hashlib.sha256()
    for block in requests.blocks():
        found.update(block.view(np.uint8).data)
        progress(len(block))
    return found.hexdigest()
