"""A merge holds every record once, in the order in which they were done as far as it looks ahead."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from plimsoll.analysis.exchange.importing import done_ns, in_order, window_of
from plimsoll.rundir.records import RECORD, Records


def stream(done: list[int], number: int, blocks_of: int) -> Iterator[Records]:
    """Records done at these instants (µs), whose `line` tells them apart."""
    table = np.zeros(len(done), dtype=RECORD)
    table["total_us"] = done
    table["line"] = np.arange(len(done)) + 1000 * number
    for start in range(0, len(done), blocks_of):
        yield table[start : start + blocks_of]


def merged(shards: list[list[int]], window: int) -> Records:
    streams = [stream(done, number, window) for number, done in enumerate(shards)]
    blocks = list(in_order(streams, window))
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=RECORD)


instants = some.lists(some.integers(0, 60), max_size=60)


@given(shards=some.lists(instants, min_size=1, max_size=5), window=some.integers(1, 16))
def test_every_record_comes_once_whatever_the_order_of_the_shards(
    shards: list[list[int]], window: int
) -> None:
    lines = merged(shards, window)["line"].tolist()
    wanted = [1000 * number + at for number, done in enumerate(shards) for at in range(len(done))]
    assert sorted(lines) == wanted


@given(shards=some.lists(instants, min_size=1, max_size=5), window=some.integers(1, 16))
def test_records_no_further_out_of_place_than_the_window_come_in_order(
    shards: list[list[int]], window: int
) -> None:
    near = [disordered(sorted(done), window) for done in shards]
    done = done_ns(merged(near, window))
    assert (np.diff(done) >= 0).all()


def disordered(done: list[int], window: int) -> list[int]:
    """Swap what stands `window` apart, in pairs of such halves: nobody has more than `window` before it."""
    for start in range(0, len(done), 2 * window):
        half = done[start : start + 2 * window]
        done[start : start + 2 * window] = half[window:] + half[:window]
    return done


def test_a_record_that_comes_later_than_the_window_is_late_and_not_lost() -> None:
    done = done_ns(merged([[5, 6, 7, 8, 9, 10, 11, 0]], 2)).tolist()
    assert sorted(done) == [1000 * each for each in (0, 5, 6, 7, 8, 9, 10, 11)]
    assert done.index(0) > 0


def test_an_instant_far_in_the_future_holds_nobody_up() -> None:
    """A clock that jumped in one shard leaves the others in order among themselves."""
    done = done_ns(merged([[99, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]], 2)).tolist()
    assert done == sorted(done)


@pytest.mark.parametrize(
    ("shards", "window", "why"),
    [
        (1, 1 << 16, "one shard takes no more than it needs"),
        (4, 1 << 16, "so do a few"),
        (64, 1 << 12, "many share what there is"),
        (100_000, 256, "however many there are, each has a few, or every block would be a call of its own"),
    ],
)
def test_what_all_shards_together_hold_is_bounded(shards: int, window: int, why: str) -> None:
    assert window_of(shards) == window, why
