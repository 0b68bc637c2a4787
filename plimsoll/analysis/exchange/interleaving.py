"""Blocks of several processes' requests become one stream in the order in which they ended. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Block = NDArray[np.void]
Ends = NDArray[np.int64]


def merged(streams: Sequence[Iterable[Block]], ends: Callable[[Block], Ends]) -> Iterator[Block]:
    """Yield the items of all `streams` by what `ends` says of them, holding one block a stream.

    As exact as the streams are in order: an item that ended before the block that it stands in is late.
    """
    reading = {number: iter(blocks) for number, blocks in enumerate(streams)}
    waiting: dict[int, Block] = {}
    while reading or waiting:
        for number in [number for number in reading if number not in waiting]:
            block = next((block for block in reading[number] if len(block)), None)
            if block is None:
                del reading[number]
            else:
                waiting[number] = _ordered(block, ends)
        if not waiting:
            return
        # What ended up to this instant is there from every stream.
        lasts = [int(ends(waiting[number][-1:])[0]) for number in reading]
        until = min(lasts, default=np.iinfo(np.int64).max)
        parts = []
        for number, block in list(waiting.items()):
            cut = int(np.searchsorted(ends(block), until, side="right"))
            parts.append(block[:cut])
            waiting[number] = block[cut:]
            if cut == len(block):
                del waiting[number]
        yield _ordered(np.concatenate(parts), ends)


def _ordered(block: Block, ends: Callable[[Block], Ends]) -> Block:
    ordered: Block = block[np.argsort(ends(block), kind="stable")]
    return ordered
