"""How many answers of all instances are not those of the log. Pure but for reading."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.exchange.shard import ShardRun
from plimsoll.common.units import counted
from plimsoll.rundir.records import WARMUP

# As the replay counts for one run (docs/run-format.md, not_as_logged).
_LEAST, _PART, _MOST_KINDS = 20, 10, 3
_NOT_MODIFIED, _CLOSED_BY_CLIENT = 304, 499


def not_as_logged(shards: Sequence[ShardRun]) -> str:
    """Return the sentence on them, with the likely cause as an instance has it (hostile), or ""."""
    said = next(
        (one.summary.not_as_logged for one in shards if one.summary and one.summary.not_as_logged), ""
    )
    if not said:
        return ""
    compared, kinds = 0, Counter[tuple[int, int]]()
    for one in shards:
        for block in one.requests.blocks() if one.requests else ():
            judged = ((block["flags"] & WARMUP) == 0) & (block["error"] == 0)
            judged &= (block["logged_status"] != 0) & (block["logged_status"] != _CLOSED_BY_CLIENT)
            status, logged = (block[name][judged] for name in ("status", "logged_status"))
            compared += len(status)
            other = _class(status) != _class(logged)
            pairs, numbers = np.unique(np.stack([status[other], logged[other]]), axis=1, return_counts=True)
            kinds.update(dict(zip(map(tuple, pairs.T.tolist()), numbers.tolist(), strict=True)))
    if kinds.total() < _LEAST or kinds.total() * _PART < compared:
        return ""
    whole = f"{kinds.total():,} of {counted(compared, 'answer')} are not those of the log: {_spelled(kinds)}."
    return f"{whole} {said.partition('. ')[2]}".rstrip()


def _class(status: NDArray[np.uint16]) -> NDArray[np.uint16]:
    return np.where(status == _NOT_MODIFIED, 2, status // 100).astype(np.uint16)


def _spelled(kinds: Counter[tuple[int, int]]) -> str:
    most = sorted(kinds.items(), key=lambda each: (-each[1], each[0]))
    said = [
        f"{status} for {logged}" + (f" ({number:,})" if len(most) > 1 else "")
        for (status, logged), number in most[:_MOST_KINDS]
    ]
    return ", ".join([*said, *["others"] * (len(most) > _MOST_KINDS)])
