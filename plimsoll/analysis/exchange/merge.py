"""Shards of one run, written by several processes or machines, become one run directory."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.analysis.exchange.answers import not_as_logged
from plimsoll.analysis.exchange.checks import check
from plimsoll.analysis.exchange.clocks import ClockAlignment, align_clocks
from plimsoll.analysis.exchange.ending import (
    InstanceEnding,
    check_counts,
    find_endings,
    merged_status,
    sum_skipped,
    sum_unsent,
)
from plimsoll.analysis.exchange.events import copy_events
from plimsoll.analysis.exchange.folder import new_run_directory
from plimsoll.analysis.exchange.instances import describe_late_instances, measure_instance
from plimsoll.analysis.exchange.limits import collect_limits, judge_limit
from plimsoll.analysis.exchange.members import count_members
from plimsoll.analysis.exchange.order import done_ns, in_order, window_of
from plimsoll.analysis.exchange.shard import ShardRun, open_shards
from plimsoll.analysis.statistics.summary import summarise
from plimsoll.common.errors import gravest_first
from plimsoll.common.files import replace_json
from plimsoll.common.hostile import printable, redact
from plimsoll.rundir.facts import Merged, MergeFinding, RunFacts
from plimsoll.rundir.names import REJECTS_FILE, SUMMARY_FILE
from plimsoll.rundir.read import read_json
from plimsoll.rundir.records import Records, error_number
from plimsoll.rundir.write import RunWriter

Progress = Callable[[int, int], None]

_LONGEST = 20_000  # characters of what is said of all instances together


def merge_shards(
    paths: Sequence[Path],
    directory: Path,
    progress: Progress = lambda *_: None,
    now_s: float | None = None,
) -> RunWriter:
    """Write one run directory of all shards `paths`, or of those in folders, and return its writer, finished.

    The run is complete only if every shard is, and none is missing. Records are merged in bounded memory, by
    the instant they were done; the percentiles then take 20 bytes a request. `progress` is called with the
    records read and to be read; `now_s` (default: the clock) decides whether a shard that says `running` was
    killed. Raises RunDirectoryError for shards that cannot be read or are not of one run, OutputError where
    `directory` cannot be written.
    """
    shards = open_shards(paths, now_s)
    check(shards)
    clocks, endings = align_clocks(shards), find_endings(shards)
    read = _ReadCounter(progress, 3 * sum(one.records for one in shards))
    with new_run_directory(directory, [one.path for one in shards]) as hidden:
        run = RunWriter(hidden, _facts(shards, clocks), summarise, at_once=False)
        try:
            end_ns = _merge_records(shards, clocks, run, read)
            copy_events(shards, clocks.offsets_ns, run)
            _copy_rejects(shards, hidden)
            run.unsent.skipped = sum_skipped(shards)
            run.finish("complete", stop_ns=end_ns)  # _complete() says below what it was
            _complete(run, shards, endings, clocks, read)
        except BaseException:
            run.abandon()
            raise
    run.directory = directory
    return run


def _merge_records(
    shards: Sequence[ShardRun], clocks: ClockAlignment, run: RunWriter, read: "_ReadCounter"
) -> int:
    """Append all records, and return when the last was done."""
    window, end_ns = window_of(len(shards)), 0
    streams = [
        _records(one, run, offset_ns, window)
        for one, offset_ns in zip(shards, clocks.offsets_ns, strict=True)
    ]
    for block in in_order(streams, window):
        run.records(block)
        read(len(block))
        if len(block):
            end_ns = max(end_ns, int(done_ns(block[-1:])[0]))
    return end_ns


class _ReadCounter:
    """Adds up what was read, for a progress bar."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self, records: int) -> None:
        self._done += records
        self._progress(self._done, self._total)

    def all_of_it(self) -> None:
        """Say that the rest was read too."""
        self(self._total - self._done)


def _facts(shards: Sequence[ShardRun], clocks: ClockAlignment) -> RunFacts:
    """Return what is true of all. Every instance reads the whole log, so one that did says what is in it."""
    first = min(shards, key=lambda one: (one.facts.started_at is None, str(one.facts.started_at)))
    through = next((one for one in shards if one.facts.shard and one.facts.shard.planned), first)
    return through.facts.model_copy(
        update={
            "started_at": clocks.started_at,
            "ended_at": None,
            "reason": None,
            "generator_limited": False,
            "generator_limited_reason": None,
            "log_start": next((one.facts.log_start for one in shards if one.facts.log_start), None),
            "shard": None,
            "merged": None,
        }
    )


def _records(one: ShardRun, run: RunWriter, offset_ns: int, most: int) -> Iterator[Records]:
    """Yield the shard's records by at most so many, with the numbers of `run`, moved by `offset_ns`."""
    if one.requests is None:
        return
    errors = np.array([error_number(one.error_name(number)) for number in range(256)], dtype=np.uint8)
    routes, known = np.zeros(1 << 16, dtype=np.uint16), np.zeros(1 << 16, dtype=bool)
    for block in one.requests.blocks(most):
        records = block.copy()
        for number in np.unique(records["route"][~known[records["route"]]]):
            routes[number] = run.route_number(one.route_name(int(number)))
            known[number] = True
        records["route"] = routes[records["route"]]
        records["error"] = errors[records["error"]]
        records["due_ns"] += offset_ns
        yield records


def _copy_rejects(shards: Sequence[ShardRun], directory: Path) -> None:
    """Copy the log lines that did not parse: the same in every instance that read the whole log."""
    logs = [one.path / REJECTS_FILE for one in shards if one.facts.shard]
    if longest := max(
        (log for log in logs if log.is_file()), key=lambda log: log.stat().st_size, default=None
    ):
        shutil.copyfile(longest, directory / longest.name)


def _complete(
    run: RunWriter,
    shards: Sequence[ShardRun],
    endings: Sequence[InstanceEnding],
    clocks: ClockAlignment,
    read: _ReadCounter,
) -> None:
    """Add to `summary.json` and `run.json` what the records alone do not show."""
    path = run.directory / SUMMARY_FILE
    summary: dict[str, Any] = read_json(path)
    instances = [measure_instance(each, read) for each in endings]
    requests, left = summary["requests"], sum_unsent(endings)
    requests["unsent"] = left
    requests["total"] = None if left is None else requests["total"] + left
    requests["retried"] = sum(one.counts.retried for one in shards if one.counts)
    if members := count_members(shards):
        summary["members"] = members.model_dump()
    if other := _harmless(not_as_logged(shards)):
        summary["not_as_logged"] = other
    summary["instances"] = [one.model_dump(mode="json", by_alias=True) for one in instances]
    open_loop = run.facts.loop == "open"
    lag_ms, response_ms = (_least(summary[key]) if open_loop else None for key in ("lag_ms", "response_ms"))
    limited = describe_late_instances(instances, shards, lag_ms, response_ms)
    status, reason = merged_status(endings)
    limits = collect_limits([one.facts.limits or [] for one in shards])
    if verdicts := [judge_limit(limit, summary, status, limited is not None) for limit in limits]:
        summary["limits"] = [verdict.model_dump() for verdict in verdicts]
    replace_json(path, summary)
    read.all_of_it()
    run.update(
        limits=limits or None,
        status=status,
        reason=_harmless(reason),
        generator_limited=limited is not None,
        generator_limited_reason=_harmless(limited),
        ended_at=max((one.facts.ended_at for one in shards if one.facts.ended_at), default=None),
        merged=Merged(
            of=[str(one.path) for one in shards],
            placed_by=clocks.placed_by,
            clock_error_ms=clocks.error_ms,
            says=_says(clocks, endings),
        ),
    )


def _says(clocks: ClockAlignment, endings: Sequence[InstanceEnding]) -> list[MergeFinding]:
    said = [*clocks.says, *check_counts(endings)]
    harmless = [one.model_copy(update={"text": _harmless(one.text)}) for one in said]
    return gravest_first(harmless)


def _harmless(text: str | None) -> str | None:
    return None if text is None else printable(redact(text), _LONGEST)


def _least(figures: dict[str, Any]) -> float | None:
    """Return p99.9 as `summary.json` has it; its lower bound where it is a failure's."""
    found: float | None = figures["p99.9"]
    return figures.get("censored", {}).get("p99.9") if found is None else found
