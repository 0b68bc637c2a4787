"""A survey of data logs: one pass over all of them, before the first record can be written."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from plimsoll.analysis.exchange.grinder_log import DataLog
from plimsoll.analysis.exchange.lines import ImportingError
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted

_MOST_TESTS = 10_000


@dataclass
class Survey:
    """The logs of one run, all of them. Instants are milliseconds since the epoch."""

    logs: list[DataLog] = field(default_factory=list)
    first_ms: int = 1 << 62
    last_ms: int = 0
    threads: int = 0
    tests: int = 0
    hasty: int = 0  # whose first byte came within a millisecond
    silent: Counter[int] = field(default_factory=Counter)  # by test: no error, and no status, beside others'
    spans_ms: list[tuple[int, int, Path]] = field(default_factory=list)

    @property
    def broken(self) -> list[str]:
        """The first lines that could not be read."""
        return [one for log in self.logs for one in log.broken][:10]

    @property
    def broken_count(self) -> int:
        """The number of lines that could not be read."""
        return sum(log.broken_count for log in self.logs)

    @property
    def cut_off(self) -> list[str]:
        """The logs that end in the middle, and how."""
        return [f"{printable(log.path.name)}: {log.cut_off}" for log in self.logs if log.cut_off]

    def apart(self) -> str | None:
        """Return two logs one of which begins after the other has ended; None if there are no such two."""
        spans = sorted(self.spans_ms)
        for (_, end, path), (begin, _, later) in pairwise(spans):
            if begin > end:
                return f"{printable(later.name)} begins after {printable(path.name)} has ended"
        return None


def survey(paths: Sequence[Path], advance: Callable[[int], None]) -> Survey:
    """Read all of `paths` once. Raises ImportingError, a line for each that is no data log of The Grinder."""
    whole, wrong = Survey(), []
    for path in paths:
        log = DataLog(path, advance)
        try:
            _read(log, whole)
        except ImportingError as error:
            wrong.append(str(error))
    if not wrong and not whole.tests:
        first = next(iter(whole.broken), "")
        wrong.append(f"{paths[0]}: holds no test" + (f" ({first})" if first else ""))
    if wrong:
        raise ImportingError("\n".join(wrong))
    return whole


def _read(log: DataLog, whole: Survey) -> None:
    threads: set[int] = set()
    first_ms, last_ms = 1 << 62, 0
    for tests in log:
        if not len(tests):
            continue
        first_ms = min(first_ms, int(tests["start_ms"].min()))
        last_ms = max(last_ms, int((tests["start_ms"] + tests["time_ms"]).max()))
        threads.update(np.unique(tests["thread"]).tolist())
        if log.http:
            answered = tests["status"] > 0
            whole.hasty += int((answered & (tests["first_ms"] == 0)).sum())
            numbers, counts = np.unique(tests["test"][~answered & (tests["errors"] == 0)], return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                if number in whole.silent or len(whole.silent) < _MOST_TESTS:
                    whole.silent[number] += count
    whole.logs.append(log)
    whole.tests += log.tests
    whole.threads += len(threads)
    if log.tests:
        whole.first_ms, whole.last_ms = min(whole.first_ms, first_ms), max(whole.last_ms, last_ms)
        whole.spans_ms.append((first_ms, last_ms, log.path))


def describe_logs(whole: Survey, composite: set[int], name: Callable[[int], str]) -> list[str]:
    """Return what whoever imports should know of the logs."""
    notes = list(whole.broken)
    if apart := whole.apart():
        notes.append(f"{apart}: are they of one run, and did the clocks of their machines agree?")
    for number, count in whole.silent.most_common(5):
        if number not in composite:
            notes.append(
                f"{counted(count, 'test')} {number} ({printable(name(number))}) had no HTTP status: if it "
                f"encloses other tests, leave it out of the requests with --composite {number}"
            )
    if whole.hasty:
        notes.append(
            f"{counted(whole.hasty, 'first byte')} came within the first millisecond, which the data log "
            "writes as 0: the figures of first bytes are without them"
        )
    return notes
