"""Shards of one run, written by several processes or machines, become one run directory."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.analysis.evidence.generator import SENT_LATE, is_late
from plimsoll.analysis.evidence.summary import summarise
from plimsoll.analysis.exchange.importing import done_ns, in_order, window_of
from plimsoll.analysis.exchange.limits import judge_limit, least_figure_ms, measure_lateness
from plimsoll.analysis.exchange.shards import (
    ClockAlignment,
    InstanceEnding,
    ShardRun,
    align_clocks,
    check,
    check_counts,
    find_endings,
    merged_status,
    open_shards,
    sum_skipped,
    sum_unsent,
)
from plimsoll.analysis.statistics.percentiles import Sample, Times
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.common.errors import OutputError, gravest_first
from plimsoll.common.files import replace_json
from plimsoll.common.hostile import printable, redact
from plimsoll.common.units import count, counted, plain_ms, significant
from plimsoll.rundir.events import Event, read_events
from plimsoll.rundir.facts import (
    Instance,
    InstanceTimes,
    MemberCounts,
    Merged,
    RunFacts,
    ServerSoftware,
)
from plimsoll.rundir.names import EVENTS_FILE, FACTS_FILE, REJECTS_FILE, SUMMARY_FILE
from plimsoll.rundir.read import RunDirectory, read_json
from plimsoll.rundir.records import (
    MEMBER,
    SENT_TO_LOGIN,
    WARMUP,
    Records,
    RequestFile,
    error_number,
    with_all_columns,
)
from plimsoll.rundir.write import RunWriter

MOST_SAID = 20_000  # characters of what is said of all instances together


def instance_lines(instances: Sequence[Instance]) -> list[str]:
    """Return a line for each, under a head; what is not known is a dash."""
    lines = [
        f"{'instance':<34} {'status':<11} {'sent':>11} {'unsent':>11} {'lag p99.9 ms':>12} {'p99.9 ms':>11}"
    ]
    for one in instances:
        counts = f"{count(one.sent):>11} {count(one.unsent):>11}"
        times = f"{plain_ms(one.lag_ms.p999):>12} {plain_ms(one.response_ms.p999):>11}"
        lines.append(f"{printable(one.name, 34):<34} {one.status:<11} {counts} {times}")
    return lines


def merge_shards(
    paths: Sequence[Path],
    directory: Path,
    progress: Callable[[int, int], None] = lambda *_: None,
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
        end_ns = max(end_ns, int(done_ns(block[-1:])[0]))
    return end_ns


class _ReadCounter:
    """Adds up what was read, for a progress bar."""

    def __init__(self, progress: Callable[[int, int], None], total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self, records: int) -> None:
        self._done += records
        self._progress(self._done, self._total)

    def finish(self) -> None:
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
            "server_software": _all_software(shards),
        }
    )


def _all_software(shards: Sequence[ShardRun]) -> ServerSoftware | None:
    """Return all that the servers called themselves to any instance."""
    said = [each for one in shards if (each := one.facts.server_software)]
    if not said:
        return None
    return ServerSoftware(
        server=sorted({name for each in said for name in each.server}),
        x_powered_by=sorted({name for each in said for name in each.x_powered_by}),
    )


def _records(one: ShardRun, run: RunWriter, offset_ns: int, most: int) -> Iterator[Records]:
    """Yield the shard's records by at most so many, with the numbers of `run`, moved by `offset_ns`."""
    if one.run is None:
        return
    errors = np.array([error_number(one.run.error_name(number)) for number in range(256)], dtype=np.uint8)
    routes, known = np.zeros(1 << 16, dtype=np.uint16), np.zeros(1 << 16, dtype=bool)
    for block in one.run.requests.blocks(most):
        records = with_all_columns(block)
        for number in np.unique(records["route"][~known[records["route"]]]):
            routes[number] = run.route_number(one.run.route_name(int(number)))
            known[number] = True
        records["route"] = routes[records["route"]]
        records["error"] = errors[records["error"]]
        records["due_ns"] += offset_ns
        yield records


def copy_events(shards: Sequence[ShardRun], offsets_ns: Sequence[int], run: RunWriter) -> None:
    """Append all events of `shards`, moved by `offsets_ns`; measures count again.

    An event of an instance gets its index as `instance`. Lines that cannot be read, such as one that a kill
    cut off, are left out.
    """
    once: set[tuple[str, object]] = set()
    for one, offset_ns in zip(shards, offsets_ns, strict=True):
        for event in read_events(one.path / EVENTS_FILE).events:
            with suppress(ValueError, KeyError, TypeError):
                _copy(event, one, offset_ns, run, once)


def _copy(event: Event, one: ShardRun, offset_ns: int, run: RunWriter, once: set[tuple[str, object]]) -> None:
    t_ns, further = event.t_ns + offset_ns, dict(event.further)
    if event.name == "measure":
        name, value, unit = (further[key] for key in ("name", "value", "unit"))
        try:
            run.measure(name, value, unit, iteration=further.get("iteration"), t_ns=t_ns)
        except ValueError:  # it stays damaged, and is named where the run is read
            run.event(event.name, t_ns=t_ns, **further | {"value": str(value)})
        return
    if event.name == "run" or (event.name, event.phase) in once:  # "run": the shard's own start and stop
        return
    if event.name == "warm-up":  # every instance says so; it is one instant of the run
        once.add((event.name, event.phase))
    elif one.facts.shard:
        further["instance"] = one.facts.shard.index
    run.event(event.name, phase=event.phase, t_ns=t_ns, **further)


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
    if other := _escape(not_as_logged(shards)):
        summary["not_as_logged"] = other
    summary["instances"] = [one.model_dump(mode="json", by_alias=True) for one in instances]
    open_loop = run.facts.loop == "open"
    lag_ms, response_ms = (
        least_figure_ms(summary[key], "p99.9") if open_loop else None for key in ("lag_ms", "response_ms")
    )
    if open_loop:
        summary |= measure_lateness(RunDirectory.open(run.directory))
    limited = describe_late_instances(instances, shards, lag_ms, response_ms)
    otherwise = any(
        one.facts.generator_limited and not (one.facts.generator_limited_reason or "").startswith(SENT_LATE)
        for one in shards
    )
    status, reason = merged_status(endings)
    limits = list(dict.fromkeys(limit for one in shards for limit in one.facts.limits or []))
    if verdicts := [judge_limit(limit, summary, status, otherwise) for limit in limits]:
        summary["limits"] = [verdict.model_dump() for verdict in verdicts]
    replace_json(path, summary)
    says = [
        one.model_copy(update={"text": _escape(one.text)}) for one in [*clocks.says, *check_counts(endings)]
    ]
    read.finish()
    run.update(
        limits=limits or None,
        status=status,
        reason=_escape(reason),
        generator_limited=limited is not None,
        generator_limited_reason=_escape(limited),
        ended_at=max((one.facts.ended_at for one in shards if one.facts.ended_at), default=None),
        merged=Merged(
            of=[str(one.path) for one in shards],
            placed_by=clocks.placed_by,
            clock_error_ms=clocks.error_ms,
            says=gravest_first(says),
        ),
    )


def _escape(text: str | None) -> str | None:
    return None if text is None else printable(redact(text), MOST_SAID)


@contextmanager
def new_run_directory(directory: Path, shards: Sequence[Path]) -> Iterator[Path]:
    """Yield a hidden folder to write into, which becomes `directory` at the end of the block.

    A folder that exists is taken only if it holds some of `shards` and is not a run itself, as what Locust's
    master makes; the files then move into it, `run.json` last. When the block fails, nothing is left. Raises
    OutputError.
    """
    inside = (
        directory.is_dir()
        and not (directory / FACTS_FILE).exists()
        and any(directory.resolve() in shard.resolve().parents for shard in shards)
    )
    if (directory.exists() or directory.is_symlink()) and not inside:
        raise OutputError(f"{directory}: exists already; give another place with --out")
    hidden = directory / ".merged.new" if inside else directory.with_name(f".{directory.name}.merged.new")
    hidden = hidden.with_name(f"{hidden.name}.{os.getpid()}")
    try:
        try:
            hidden.mkdir(parents=True)
            yield hidden
            if inside:
                for path in sorted(hidden.iterdir(), key=lambda one: (one.name == FACTS_FILE, one.name)):
                    path.replace(directory / path.name)
                hidden.rmdir()
            else:
                hidden.rename(directory)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
    except OSError as error:
        why = error.strerror or error
        raise OutputError(f"{directory}: cannot be written: {why}; choose another place with --out") from None


def count_members(shards: Sequence[ShardRun]) -> MemberCounts | None:
    """Return the members of all instances together; None where no instance says that it had any.

    A client belongs to one instance, so clients add up. Accounts do not: every instance uses them from the
    first on. Both are None where an instance was killed before it said how many it had.
    """
    told = [one.summary.members for one in shards if one.summary]
    said = [each for each in told if each]
    if not said:
        return None
    whole = len(told) == len(shards) and all(each.clients is not None for each in said)
    accounts = [each.accounts for each in said if each.accounts is not None]
    requests = sent_to_login = 0
    for one in shards:
        for block in one.requests.blocks() if one.requests else ():
            flags = block["flags"][(block["flags"] & WARMUP) == 0]
            requests += int(((flags & MEMBER) != 0).sum())
            sent_to_login += int(((flags & SENT_TO_LOGIN) != 0).sum())
    return MemberCounts(
        clients=sum(each.clients or 0 for each in said) if whole else None,
        accounts=max(accounts) if whole and accounts else None,
        requests=requests,
        sent_to_login=sent_to_login,
    )


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
            classes = [np.where(each == _NOT_MODIFIED, 2, each // 100) for each in (status, logged)]
            other = classes[0] != classes[1]
            pairs, numbers = np.unique(np.stack([status[other], logged[other]]), axis=1, return_counts=True)
            kinds.update(dict(zip(map(tuple, pairs.T.tolist()), numbers.tolist(), strict=True)))
    if kinds.total() < _LEAST or kinds.total() * _PART < compared:
        return ""
    most = sorted(kinds.items(), key=lambda each: (-each[1], each[0]))
    spelled = [
        f"{status} for {logged}" + (f" ({number:,})" if len(most) > 1 else "")
        for (status, logged), number in most[:_MOST_KINDS]
    ] + ["others"] * (len(most) > _MOST_KINDS)
    whole = (
        f"{kinds.total():,} of {counted(compared, 'answer')} are not those of the log: {', '.join(spelled)}."
    )
    return f"{whole} {said.partition('. ')[2]}".rstrip()


def measure_instance(ending: InstanceEnding, advance: Callable[[int], None]) -> Instance:
    """Read the records of one instance, 8 bytes of memory each, and return what `summary.json` says of it."""
    shard = ending.shard
    instance = Instance(
        name=ending.name,
        index=ending.index,
        segment=ending.segment,
        status=ending.status,
        sent=ending.sent,
        planned=ending.planned,
        unsent=ending.unsent,
    )
    if shard is None:
        return instance
    facts = shard.facts
    lag, response, errors = _times(shard.requests, facts.timeout_us, advance)
    late = facts.loop == "open" and is_late(lag.tail().least_ms("p99.9"), response.tail().least_ms("p99.9"))
    return instance.model_copy(
        update={
            "directory": str(shard.path),
            "host": facts.host.hostname,
            "errors": errors,
            "generator_limited": facts.generator_limited or late,
            "lag_ms": InstanceTimes.model_validate(lag.figures_ms()),
            "response_ms": InstanceTimes.model_validate(response.figures_ms()),
            "started_at": facts.started_at,
            "clock": facts.shard.clock if facts.shard else None,
        }
    )


def _times(
    requests: RequestFile | None, timeout_us: int | None, advance: Callable[[int], None]
) -> tuple[Sample, Sample, int]:
    """Return lag (of those not queued), response times and the number of errors, without the warm-up."""
    lag: list[Times] = []
    response: list[Times] = []
    errors = 0
    for block in requests.blocks() if requests else ():
        advance(len(block))
        measured = CountedRequests.of(block, timeout_us)
        lag.append(Times(measured.lag_us[~measured.queued]))
        response.append(Times.of(measured.response_us, measured.failures))
        errors += int(np.count_nonzero(measured.records["error"]))
    return Sample.of_times(Times.joined(lag)), Sample.of_times(Times.joined(response)), errors


def describe_late_instances(
    instances: Sequence[Instance],
    shards: Sequence[ShardRun],
    lag_ms: float | None,
    response_ms: float | None,
) -> str | None:
    """Return which instances were the limit, or that all together were, and what to do; None if none was.

    `lag_ms` and `response_ms` are the p99.9 of all of an open loop, None of a closed one. Texts are hostile.
    """
    told = {str(one.path): one.facts.generator_limited_reason for one in shards}
    said = [
        f"{one.name}: {told.get(one.directory or '') or _sent_late(one.lag_ms.p999, one.response_ms.p999)}"
        for one in instances
        if one.generator_limited
    ]
    if not said and is_late(lag_ms, response_ms):
        said = [f"all instances together: {_sent_late(lag_ms, response_ms)}"]
    return "; ".join(text.rstrip(".") for text in said) or None


def _sent_late(lag_ms: float | None, response_ms: float | None) -> str:
    remedy = "lower the speed or rate, or use more instances on machines of their own"
    if lag_ms is None or response_ms is None:
        return f"{SENT_LATE}; {remedy}"
    times = f"by {significant(lag_ms)} ms at p99.9, where responses take {significant(response_ms)} ms"
    return f"{SENT_LATE}: {times}; {remedy}"
