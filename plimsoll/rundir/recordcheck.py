"""The records of a run, held against what its summary says of them."""

import hashlib
from collections.abc import Callable

import numpy as np

from plimsoll.common.units import counted
from plimsoll.rundir.directory import RunDirectory
from plimsoll.rundir.requestfile import WARMUP

_SHOWN_DIGITS = 12


def check_records(run: RunDirectory, progress: Callable[[int], None] = lambda _: None) -> str | None:
    """Return how `requests.npy` contradicts `summary.json`; None where it does not, or no sum was written.

    Every record is read once, a block at a time; `progress` is called with the number of records that were
    read since its last call. Raises RunDirectoryError where they cannot be read.
    """
    if run.summary is None:
        return None
    said = run.summary.requests
    if said.sent is not None and said.sent != run.requests.count:
        holds = f"requests.npy holds {run.requests.count:,}"
        return f"summary.json counts {counted(said.sent, 'request')} that were sent, and {holds}"
    if run.summary.records_sha256 is None:
        return None
    sha256, warmup, errors = hashlib.sha256(), 0, 0
    for block in run.requests.blocks():
        sha256.update(block.view(np.uint8).data)
        warm = (block["flags"] & WARMUP) != 0
        warmup += int(np.count_nonzero(warm))
        errors += int(np.count_nonzero(block["error"][~warm]))
        progress(len(block))
    found, noted = sha256.hexdigest(), run.summary.records_sha256
    if found != noted:
        return (
            "the records in requests.npy are not those that summary.json was written of (SHA-256 "
            f"{found[:_SHOWN_DIGITS]}… where it says {noted[:_SHOWN_DIGITS]}…)"
        )
    ok = run.requests.count - warmup - errors
    for name, says, count in (
        ("of the warm-up", said.warmup, warmup),
        ("with an error", said.errors, errors),
        ("without an error", said.ok, ok),
    ):
        if says is not None and says != count:
            counts = f"summary.json counts {counted(says, 'request')} {name}"
            return f"{counts}, and requests.npy holds {count:,}"
    return None
