"""Values gathered under small whole numbers, block by block, without a copy of what came before."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.times import NONE_FAILED, FailedTimes, Microseconds, Times

_AT_ONCE = 64  # keys whose values are copied to be counted


class Groups:
    """Times by key. Holds four bytes a value (eight for times over 71 minutes)."""

    def __init__(self) -> None:
        self._failed: dict[int, FailedTimes] = {}
        self._parts: dict[int, list[Microseconds]] = defaultdict(list)

    def add(
        self,
        keys: NDArray[Any],
        values: Microseconds,
        failures: NDArray[np.bool_] | None = None,
        wrong: NDArray[np.bool_] | None = None,
    ) -> None:
        """Put each of `values` under its key; keys are below 65,536.

        `failures` says which are those of failures, as they count, and `wrong` which of these are wrong
        answers that came in time. All have shape (n,).
        """
        if not len(keys):
            return
        if failures is not None and failures.any():
            came = np.zeros(len(keys), dtype=bool) if wrong is None else wrong
            self._add_failures(keys[failures], values[failures], came[failures])
        order = np.argsort(keys.astype(np.uint16), kind="stable")  # 16 bits: a radix sort
        keys, values = keys[order], values[order]
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        stops = [*starts[1:].tolist(), len(keys)]
        for key, start, stop in zip(keys[starts].tolist(), starts.tolist(), stops, strict=True):
            self._parts[key].append(values[start:stop])

    def _add_failures(self, keys: NDArray[Any], values: Microseconds, wrong: NDArray[np.bool_]) -> None:
        order = np.argsort(keys.astype(np.uint16), kind="stable")
        keys, values, wrong = keys[order], values[order], wrong[order]
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        for key, *parts in zip(
            keys[starts].tolist(),
            np.minimum.reduceat(values, starts).tolist(),
            np.diff(starts, append=len(keys)).tolist(),
            np.add.reduceat(wrong, starts, dtype=np.int64).tolist(),
            strict=True,
        ):
            self._failed[key] = FailedTimes.joined([FailedTimes(*parts), self._failed.get(key, NONE_FAILED)])

    def fold(self, factor: int) -> None:
        """Divide every key by `factor`: groups whose quotient is the same become one."""
        folded: dict[int, list[Microseconds]] = defaultdict(list)
        for key, parts in self._parts.items():
            folded[key // factor] += parts
        self._parts = folded
        failed: dict[int, list[FailedTimes]] = defaultdict(list)
        for key, part in self._failed.items():
            failed[key // factor].append(part)
        self._failed = {key: FailedTimes.joined(each) for key, each in failed.items()}

    def keys(self) -> list[int]:
        """Return the keys that have values, ascending."""
        return sorted(self._parts)

    def sizes(self) -> dict[int, int]:
        """Return how many values each key has."""
        return {key: sum(map(len, parts)) for key, parts in self._parts.items()}

    def sizes_from(self, limits_us: Sequence[int]) -> NDArray[np.int64]:
        """Return how many values of each key are at least so long: a row a limit, a column a key."""
        keys, found = self.keys(), []
        for first in range(0, len(keys), _AT_ONCE):
            some = keys[first : first + _AT_ONCE]
            sizes = [sum(map(len, self._parts[key])) for key in some]
            values = self._of(some).values_us
            starts = np.cumsum([0, *sizes[:-1]])
            found.append(
                [np.add.reduceat(values >= limit_us, starts, dtype=np.int64) for limit_us in limits_us]
            )
        return np.concatenate(found, axis=1)

    def of(self, start: int, stop: int | None = None) -> Times:
        """Return the values under the keys `start` … `stop`−1 (default: `start` alone) as a new array."""
        return self._of(range(start, start + 1 if stop is None else stop))

    def everything(self) -> Times:
        """Return all values as a new array."""
        return self._of(self._parts)

    def _of(self, keys: Iterable[int]) -> Times:
        there = [key for key in keys if key in self._parts]
        parts = [part for key in there for part in self._parts[key]]
        failed = FailedTimes.joined(self._failed.get(key, NONE_FAILED) for key in there)
        return Times(np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32), failed)
