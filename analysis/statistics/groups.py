"""Values gathered under small whole numbers, block by block, without a copy of what came before."""

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.sample import Microseconds, narrow


class Groups:
    """Times by key. Holds four bytes a value (eight for times over 71 minutes)."""

    def __init__(self) -> None:
        self._parts: dict[int, list[Microseconds]] = defaultdict(list)

    def add(self, keys: NDArray[Any], values: Microseconds) -> None:
        """Put each of `values` under its key. Both have shape (n,); keys are below 65,536."""
        if not len(keys):
            return
        order = np.argsort(keys.astype(np.uint16), kind="stable")  # 16 bits: a radix sort
        keys, values = keys[order], values[order]
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        for start, stop in zip(starts, [*starts[1:], len(keys)], strict=True):
            # a copy, so that a short part does not keep a whole block alive
            self._parts[int(keys[start])].append(values[start:stop].copy())

    def fold(self, factor: int) -> None:
        """Divide every key by `factor`: groups whose quotient is the same become one."""
        folded: dict[int, list[Microseconds]] = defaultdict(list)
        for key, parts in self._parts.items():
            folded[key // factor] += parts
        self._parts = folded

    def keys(self) -> list[int]:
        """Return the keys that have values, ascending."""
        return sorted(self._parts)

    def sizes(self) -> dict[int, int]:
        """Return how many values each key has."""
        return {key: sum(map(len, parts)) for key, parts in self._parts.items()}

    def of(self, start: int, stop: int | None = None) -> Microseconds:
        """Return the values under the keys `start` … `stop`−1 (default: `start` alone) as a new array."""
        keys = range(start, start + 1 if stop is None else stop)
        return _joined([part for key in keys if key in self._parts for part in self._parts[key]])

    def everything(self) -> Microseconds:
        """Return all values as a new array."""
        return _joined([part for parts in self._parts.values() for part in parts])


def _joined(parts: list[Microseconds]) -> Microseconds:
    return np.concatenate(parts) if parts else narrow(np.empty(0, dtype=np.uint32))
