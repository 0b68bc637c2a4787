"""Waiting for what a test wants: with one limit, which is no measure of anything and only ends what hangs."""

import asyncio
import time
from collections.abc import Callable

LONGEST_S = 1200


def eventually(holds: Callable[[], object], most_s: float = LONGEST_S) -> bool:
    """Whether something comes true within a bounded time."""
    until_s = time.monotonic() + most_s
    while not (held := holds()) and time.monotonic() < until_s:
        time.sleep(0.05)
    return bool(held)


def wait_for(what: str, holds: Callable[[], object], most_s: float = LONGEST_S) -> None:
    """Returns as soon as `holds`."""
    assert eventually(holds, most_s), f"{what}: not within {most_s} s"


async def awaited(what: str, holds: Callable[[], object], most_s: float = LONGEST_S) -> None:
    """Returns as soon as `holds`; other tasks go on."""
    until_s = time.monotonic() + most_s
    while not holds():
        assert time.monotonic() < until_s, f"{what}: not within {most_s} s"
        await asyncio.sleep(0.05)
