"""Blocks of tests of several workers become one stream in the order in which the tests ended. Pure."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.importing.grinderlayout import TEST, Tests


def done_ms(tests: Tests) -> NDArray[np.int64]:
    """Return when each of the tests ended, milliseconds since the epoch."""
    ended: NDArray[np.int64] = tests["start_ms"] + tests["time_ms"]
    return ended


def merged(workers: Sequence[Iterable[Tests]]) -> Iterator[Tests]:
    """Yield the tests of all `workers` by their ends, holding one block a worker.

    As exact as the logs are in order: within one, a test that ended before the block that it stands in is
    late.
    """
    streams = {number: iter(blocks) for number, blocks in enumerate(workers)}
    waiting = {number: np.empty(0, dtype=TEST) for number in streams}
    while streams:
        for number in [number for number in streams if not len(waiting[number])]:
            block = next((_by_end(block) for block in streams[number] if len(block)), None)
            if block is None:
                del streams[number]
            else:
                waiting[number] = block
        # What ended up to this instant is there from every worker.
        if streams:
            until_ms = min(int(done_ms(waiting[number][-1:])[0]) for number in streams)
        else:
            until_ms = np.iinfo(np.int64).max
        parts = []
        for number, tests in waiting.items():
            cut = int(np.searchsorted(done_ms(tests), until_ms, side="right"))
            parts.append(tests[:cut])
            waiting[number] = tests[cut:]
        whole = np.concatenate(parts)
        if len(whole):
            yield _by_end(whole)


def _by_end(tests: Tests) -> Tests:
    ordered: Tests = tests[np.argsort(done_ms(tests), kind="stable")]
    return ordered
