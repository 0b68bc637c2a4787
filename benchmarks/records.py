"""The records of a run of bin/replay: requests.npy, as docs/run-format.md has it."""

import struct
from pathlib import Path

from benchmarks.ratios import nearest_rank

_HEADER_BYTES = 512
# 81 bytes, of which lag_us and total_us are read.
_RECORD = struct.Struct("<8xI16xI49x")


def response_p999_ms(run: Path) -> float:
    """The p99.9 of the response time of all requests, those of the warm-up too."""
    data = (run / "requests.npy").read_bytes()[_HEADER_BYTES:]
    whole = len(data) // _RECORD.size * _RECORD.size
    return nearest_rank([lag + total for lag, total in _RECORD.iter_unpack(data[:whole])], 0.999) / 1000
