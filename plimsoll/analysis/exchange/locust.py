"""The listener's files of a Locust test become a run directory: those of all processes, merged by time."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.exchange.interleaving import merged
from plimsoll.analysis.exchange.lines import ImportingError, check_files, count_two_passes, decide_status
from plimsoll.analysis.exchange.locust_log import LocustLog
from plimsoll.analysis.exchange.result import ImportResult
from plimsoll.analysis.statistics.summary import summarise
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted
from plimsoll.rundir.facts import GeneratorHost, Program, RunFacts, RunTarget
from plimsoll.rundir.find import directory_name, new_directory, point_latest
from plimsoll.rundir.records import Records
from plimsoll.rundir.write import RunWriter, Status

_MOST_NAMED = 20


def import_locust(
    paths: Sequence[Path],
    results: Path,
    *,
    scenario: str = "locust",
    target: str | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> ImportResult:
    """Write one run directory into `results` from the listener's files `paths`, one of each process.

    Raises ImportingError if one of them is none, OutputError if the run directory cannot be written.
    """
    check_files(paths)
    advance = count_two_passes(paths, progress)
    logs = [LocustLog(path, advance) for path in paths]
    base_ns, end_ns = _span_ns(logs)
    started_at = datetime.fromtimestamp(base_ns // 10**9, UTC).replace(microsecond=base_ns % 10**9 // 1000)
    directory = new_directory(results, directory_name(started_at, scenario))
    named = [printable(path.name) for path in paths[:_MOST_NAMED]]
    facts = RunFacts(
        scenario=scenario,
        target=None if target is None else RunTarget(url=target),
        command=["plimsoll", "import", "locust", *named],
        loop="closed",
        started_at=started_at,
        ended_at=datetime.fromtimestamp(end_ns / 1e9, UTC),
        program=Program(name="locust", version=next((log.version for log in logs if log.version), None)),
        host=GeneratorHost(hostname="unknown"),  # it ran where it ran; this machine only reads what it wrote
        scenario_settings={"imported_from": named},
    )
    with RunWriter(directory, facts, summarise, at_once=False) as run:
        files = [
            _of_file(LocustLog(path, advance, run.route_number), at, base_ns) for at, path in enumerate(paths)
        ]
        for records in merged(files, _done_ns):
            run.records(records)
        status, reason = _ending(logs, run.target_died)
        run.finish(status, reason)
    point_latest(directory)
    source = str(paths[0]) + (f" and {counted(len(paths) - 1, 'more file')}" if len(paths) > 1 else "")
    broken = [one for log in logs for one in log.broken][:10]
    requests = sum(log.requests for log in logs)
    return ImportResult(
        source, directory, status, reason, requests, sum(log.broken_count for log in logs), broken
    )


def _span_ns(logs: Sequence[LocustLog]) -> tuple[int, int]:
    """Return when the first request of all began and the last one ended, since the epoch."""
    begins, ends, wrong = [], [], []
    for log in logs:
        try:
            for records in log:
                begins.append(int(records["due_ns"].min()))
                ends.append(int(_done_ns(records).max()))
        except ImportingError as error:
            wrong.append(str(error))
    if not wrong and not begins:
        first = next((one for log in logs for one in log.broken), "")
        wrong.append(f"{logs[0].path}: holds no request" + (f" ({first})" if first else ""))
    if wrong:
        raise ImportingError("\n".join(wrong))
    return min(begins), max(ends)


def _of_file(log: LocustLog, number: int, base_ns: int) -> Iterator[Records]:
    """Yield the records of a file: since the start of the run, users numbered apart from other files'."""
    for records in log:
        records["due_ns"] -= base_ns
        records["client"] += np.uint32(number << 16)
        yield records


def _done_ns(records: Records) -> NDArray[np.int64]:
    done: NDArray[np.int64] = records["due_ns"] + records["total_us"].astype(np.int64) * 1000
    return done


def _ending(logs: Sequence[LocustLog], died: str | None) -> tuple[Status, str | None]:
    if cut_off := [f"{printable(log.path.name)}: {log.cut_off}" for log in logs if log.cut_off]:
        return "interrupted", f"Locust was ended while it wrote: {'; '.join(cut_off[:3])}"
    if died:
        return "failed", died
    return decide_status(sum(log.broken_count for log in logs), sum(log.line for log in logs))
