"""The records of a run, held against what its summary says of them."""

from collections.abc import Callable

import numpy as np

from plimsoll.common.units import counted
from plimsoll.rundir.recordsum import RecordSum
from plimsoll.rundir.requestfile import WARMUP, RequestFile
from plimsoll.rundir.summary import Summary

_SHOWN_DIGITS = 12


def check_records(
    requests: RequestFile, summary: Summary | None, progress: Callable[[int], None] = lambda _: None
) -> str | None:
    """Return how `requests.npy` contradicts `summary.json`; None where it does not, or no sum was written.

    Where records are missing it is None, too: then it is another's to say what is known. Every record is read
    once; `progress` is called with the number of those that were read since its last call. Raises
    RunDirectoryError where they cannot be.
    """
    if summary is None or summary.records_sha256 is None:
        return None
    if summary.requests.sent not in (None, requests.count):
        return None
    records, warmup, errors = RecordSum(), 0, 0
    for block in requests.blocks():
        records.add(block)
        warm = (block["flags"] & WARMUP) != 0
        warmup += int(np.count_nonzero(warm))
        errors += int(np.count_nonzero(block["error"][~warm]))
        progress(len(block))
    found, noted = records.hexdigest(), summary.records_sha256
    if found != noted:
        return (
            "the records in requests.npy are not those that summary.json was written of (SHA-256 "
            f"{found[:_SHOWN_DIGITS]}… where it says {noted[:_SHOWN_DIGITS]}…)"
        )
    for name, says, holds in (
        ("of the warm-up", summary.requests.warmup, warmup),
        ("with an error", summary.requests.errors, errors),
        ("without an error", summary.requests.ok, requests.count - warmup - errors),
    ):
        if says is not None and says != holds:
            return f"summary.json counts {counted(says, 'request')} {name}, and requests.npy holds {holds:,}"
    return None
