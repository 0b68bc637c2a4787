"""What records show by themselves: their sum, whether summary.json is of them, whether the target died."""

import hashlib
from collections import Counter
from collections.abc import Callable

import numpy as np

from plimsoll.common.units import counted
from plimsoll.rundir.facts import Summary
from plimsoll.rundir.records import ERROR_KINDS, WARMUP, Records, Request, RequestFile


class RecordSum:
    """Sums the records of a run, block by block, in the order in which they stand."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()

    def add(self, block: Records) -> None:
        """Add the next block of whole records."""
        self._sum.update(block.view(np.uint8).data)

    def hexdigest(self) -> str:
        """Return the SHA-256 of all that was taken, in hexadecimal."""
        return self._sum.hexdigest()


def records_sha256(requests: RequestFile) -> str:
    """Return the SHA-256 (hexadecimal) of all whole records without the header. Raises RunDirectoryError."""
    found = RecordSum()
    for block in requests.blocks():
        found.add(block)
    return found.hexdigest()


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
            f"{found[:12]}… where it says {noted[:12]}…)"
        )
    for name, says, holds in (
        ("of the warm-up", summary.requests.warmup, warmup),
        ("with an error", summary.requests.errors, errors),
        ("without an error", summary.requests.ok, requests.count - warmup - errors),
    ):
        if says is not None and says != holds:
            return f"summary.json counts {counted(says, 'request')} {name}, and requests.npy holds {holds:,}"
    return None


# A silence says something when so many requests were sent in it, and it lasted so long.
_FEWEST = 10
_SHORTEST_NS = 2_000_000_000
_SHARE = 100  # a hundredth of the run
_TIMES = ("due_ns", "lag_us", "total_us")


class Silence:
    """Watches for a target that stops answering: a run whose target died is not complete.

    From its last answer to the end of the run nothing came, though requests were sent. Takes all requests of
    a run in the order in which they were done, or nearly so. `bin/replay` judges the same way
    (replay/record/answers.go).
    """

    def __init__(self) -> None:
        self._answered, self._since_ns, self._end_ns = False, 0, 0
        self._failures: Counter[str] = Counter()

    def take(self, request: Request) -> None:
        """Take one request."""
        start_ns = request.due_ns + request.lag_us * 1000
        done_ns = start_ns + request.total_us * 1000
        self._end_ns = max(self._end_ns, done_ns)
        if request.error == "none" or request.status > 0 or request.ttfb_us > 0:
            self._take_answer(done_ns)
        elif start_ns >= self._since_ns:  # sent after the last answer, so that nobody had answered since
            self._take_failures(request.error, 1)

    def take_all(self, records: Records) -> None:
        """Take a block of records, shape (n,): up to its last answer they only say when that was."""
        if not len(records):
            return
        due_ns, lag_us, total_us = (np.ascontiguousarray(records[name]) for name in _TIMES)
        start_ns = due_ns + lag_us.astype(np.int64) * 1000
        done_ns = start_ns + total_us.astype(np.int64) * 1000
        self._end_ns = max(self._end_ns, int(done_ns.max()))
        answered = records["error"] == 0
        if answered.all():  # as most blocks are
            self._take_answer(int(done_ns.max()))
            return
        answered |= (records["status"] > 0) | (records["ttfb_us"] > 0)
        after = 0
        if answered.any():
            after = int(np.flatnonzero(answered)[-1]) + 1
            self._take_answer(int(done_ns[answered].max()))
        sent_since = start_ns[after:] >= self._since_ns
        for number, count in enumerate(np.bincount(records["error"][after:][sent_since]).tolist()):
            self._take_failures(ERROR_KINDS[number] if number < len(ERROR_KINDS) else "other", count)

    def _take_answer(self, done_ns: int) -> None:
        if not self._answered or done_ns > self._since_ns:
            self._answered, self._since_ns = True, done_ns
            self._failures.clear()

    def _take_failures(self, error: str, count: int) -> None:
        if count and error != "aborted":  # those were given up by us
            self._failures[error] += count

    def verdict(self) -> str | None:
        """Return why the target counts as dead, and the remedy; None if it lives."""
        found = self.finding()
        return found and f"{found}; see why it ended, and run this again"

    def finding(self) -> str | None:
        """Return why the target counts as dead when the run ends with what was taken; None if it lives."""
        requests, lasted_ns = self._failures.total(), self._end_ns - self._since_ns
        if requests < _FEWEST or lasted_ns < max(_SHORTEST_NS, self._end_ns // _SHARE):
            return None
        since = f"after {self._since_ns / 1e9:.1f} s" if self._answered else "at all"
        kind, count = self._failures.most_common(1)[0]
        return (
            f"the target gave no answer {since}: the last {requests} requests failed within "
            f"{lasted_ns / 1e9:.1f} s, {count} of them with {kind}"
        )
