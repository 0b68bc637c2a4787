"""Data logs of The Grinder become a run directory: all workers' logs of one run, merged by time."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from plimsoll.analysis.exchange.deposit import ImportWriter
from plimsoll.analysis.exchange.grinder_layout import TestRows, done_ms
from plimsoll.analysis.exchange.grinder_log import DataLog
from plimsoll.analysis.exchange.grinder_names import TestNames, find_test_names
from plimsoll.analysis.exchange.grinder_survey import Survey, describe_logs, survey
from plimsoll.analysis.exchange.interleaving import merged
from plimsoll.analysis.exchange.lines import check_files, count_two_passes, decide_status
from plimsoll.analysis.exchange.product import MeasureValue
from plimsoll.analysis.exchange.result import ImportResult
from plimsoll.analysis.statistics.summary import summarise
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted
from plimsoll.rundir.facts import GeneratorHost, Program, RunFacts, RunTarget
from plimsoll.rundir.find import directory_name, new_directory, point_latest
from plimsoll.rundir.records import RECORD, REUSED, Records, error_number
from plimsoll.rundir.write import RunWriter, Status

_MS_NS, _MS_US, _LARGEST_US = 1_000_000, 1000, 0xFFFF_FFFF
_MOST_REMEMBERED = 10_000
_MOST_NAMED = 20


def import_grinder(
    paths: Sequence[Path],
    results: Path,
    *,
    scenario: str = "grinder",
    target: str | None = None,
    names: dict[int, str] | None = None,
    composite: Sequence[int] = (),
    progress: Callable[[int, int], None] = lambda *_: None,
) -> ImportResult:
    """Write one run directory into `results` from the data logs `paths`, each of one worker.

    `names` are names of tests, and come before those that stand beside the logs. `composite` are tests that
    enclose others: they become measures, as those do that a worker's own log marks. `progress` is called with
    the bytes read so far and all that will be. Raises ImportingError if one of `paths` is no data log,
    OutputError if the run directory cannot be written.
    """
    check_files(paths)
    advance = count_two_passes(paths, progress)
    whole = survey(paths, advance)
    known = TestNames(dict(names or {}), set(composite))
    for path in paths:
        known.add(find_test_names(path))
    started_at = datetime.fromtimestamp(whole.first_ms // 1000, UTC).replace(
        microsecond=whole.first_ms % 1000 * _MS_US
    )
    directory = new_directory(results, directory_name(started_at, scenario))
    facts = _facts(paths, whole, known, scenario, target, started_at)
    with RunWriter(directory, facts, summarise, at_once=False) as run:
        records = _Records(run, known, whole.first_ms)
        workers = [_of_worker(DataLog(path, advance), at) for at, path in enumerate(paths)]
        for tests in merged(workers, done_ms):
            records.add(tests)
        status, reason = _ending(whole, run.target_died)
        run.finish(status, reason)
    point_latest(directory)
    notes = describe_logs(whole, known.composite, known.of) + records.notes()
    source = str(paths[0]) + (f" and {counted(len(paths) - 1, 'more log')}" if len(paths) > 1 else "")
    return ImportResult(source, directory, status, reason, records.requests, whole.broken_count, notes)


class _Records:
    """Turns tests into records, and those that enclose others into measures."""

    def __init__(self, run: RunWriter, names: TestNames, base_ms: int) -> None:
        self._run, self._names, self._base_ms = run, names, base_ms
        self._deposit = ImportWriter(run)
        self._routes: dict[int, int] = {}
        self.requests = self._composite_errors = 0

    def add(self, tests: TestRows) -> None:
        enclosing = np.isin(tests["test"], list(self._names.composite))
        for test in tests[enclosing]:
            self._measure(test)
        tests = tests[~enclosing]
        self._run.records(self._records(tests))
        self.requests += len(tests)

    def notes(self) -> list[str]:
        said = []
        if self._names.composite:
            listed = ", ".join(map(str, sorted(self._names.composite)[:_MOST_NAMED]))
            said.append(f"tests that enclose others became measures, not requests: {listed}")
        if self._composite_errors:
            said.append(f"{self._composite_errors} of those ended in an error, and are left out")
        if self._deposit.uncounted:
            said.append(
                f"{self._deposit.uncounted} values of measures beyond a million each were not counted"
            )
        return said

    def _measure(self, test: np.void) -> None:
        if test["errors"]:
            self._composite_errors += 1
            return
        done_ns = (int(test["start_ms"]) + int(test["time_ms"]) - self._base_ms) * _MS_NS
        name = self._names.of(int(test["test"]))
        self._deposit.measure(MeasureValue(name, float(test["time_ms"]), "ms", done_ns, int(test["run"]) + 1))

    def _records(self, tests: TestRows) -> Records:
        records = np.zeros(len(tests), dtype=RECORD)
        status, failed = tests["status"], tests["errors"] > 0
        records["due_ns"] = (tests["start_ms"] - self._base_ms) * _MS_NS
        records["dns_us"] = _us(tests["resolve_ms"])
        records["connect_us"] = _us(np.maximum(tests["connect_ms"] - tests["resolve_ms"], 0))
        records["ttfb_us"] = _us(tests["first_ms"])
        records["total_us"] = _us(tests["time_ms"])
        records["bytes"] = tests["length"]
        records["logged_bytes"] = -1
        records["line"] = tests["run"] + 1
        records["client"] = tests["thread"]
        records["route"] = self._route_numbers(tests)
        records["status"] = status
        wrong = np.where(status >= 400, error_number("http_error"), error_number("other"))
        records["error"] = np.where(failed, wrong, 0)
        records["flags"] = REUSED * ((status > 0) & (tests["connections"] == 0))
        return records

    def _route_numbers(self, tests: TestRows) -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
        numbers, at = np.unique(tests["test"], return_inverse=True)
        return np.array([self._route(number) for number in numbers.tolist()], dtype=np.uint16)[at]

    def _route(self, test: int) -> int:
        route = self._routes.get(test)
        if route is None:
            route = self._run.route_number(self._names.of(test))
            if len(self._routes) < _MOST_REMEMBERED:
                self._routes[test] = route
        return route


def _of_worker(log: DataLog, number: int) -> Iterator[TestRows]:
    """Yield the tests of a log, the threads numbered apart from other workers'."""
    for tests in log:
        tests["thread"] += number << 16
        yield tests


def _us(times_ms: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.minimum(times_ms * _MS_US, _LARGEST_US)


def _ending(whole: Survey, died: str | None) -> tuple[Status, str | None]:
    if whole.cut_off:
        return "interrupted", f"The Grinder was ended while it wrote: {'; '.join(whole.cut_off[:3])}"
    if died:
        return "failed", died
    return decide_status(whole.broken_count, sum(log.line for log in whole.logs))


def _facts(
    paths: Sequence[Path],
    whole: Survey,
    names: TestNames,
    scenario: str,
    target: str | None,
    started_at: datetime,
) -> RunFacts:
    logs = [printable(path.name) for path in paths]
    shown = logs[:_MOST_NAMED] + ([f"and {len(logs) - _MOST_NAMED} more"] if len(logs) > _MOST_NAMED else [])
    return RunFacts(
        scenario=scenario,
        target=None if target is None else RunTarget(url=target),
        command=["plimsoll", "import", "grinder", *shown],
        loop="closed",
        speed=f"users {whole.threads}",
        started_at=started_at,
        ended_at=datetime.fromtimestamp(whole.last_ms / 1000, UTC),
        program=Program(name="grinder", version=names.version),
        host=GeneratorHost(hostname="unknown"),  # it ran where it ran; this machine only reads what it wrote
        scenario_settings={"imported_from": shown, "resolution_ms": 1},
    )
