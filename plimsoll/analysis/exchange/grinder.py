"""The Grinder's data logs become a run directory: `plimsoll import grinder`, records and names of tests.

The data log has only numbers of tests. A worker writes their descriptions into the table at the end of its
own log, `load-0.log` beside `load-0-data.log` (before 3.7: `out_load-0.log` beside `data_load-0.log`), where
tests that enclose others stand in parentheses. Beside a data log that `bin/replay` wrote lies `routes.json`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import numpy as np

from plimsoll.analysis.exchange.grinder_log import DataLog, GrinderRows, describe_logs, done_ms, survey
from plimsoll.analysis.exchange.importing import (
    LARGEST_US,
    CutOffError,
    ImportingError,
    ImportResult,
    ImportWriter,
    MeasureValue,
    check_files,
    count_bytes,
    finish_import,
    in_order,
    instant,
    read_file_lines,
    short_name,
    start_import,
    window_of,
)
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.rundir.facts import Program
from plimsoll.rundir.names import FACTS_FILE, ROUTES_FILE
from plimsoll.rundir.read import read_json
from plimsoll.rundir.records import RECORD, REUSED, Records, error_number
from plimsoll.rundir.write import RunWriter

_MS_NS, _MS_US = 1_000_000, 1000
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
    the bytes read so far and all that will be. Raises ImportingError if one of `paths` is not a data log,
    OutputError if the run directory cannot be written.
    """
    check_files(paths)
    advance = count_bytes(paths, 2, progress)
    whole = survey(paths, advance)
    known = GrinderNames(dict(names or {}), set(composite))
    for path in paths:
        known.add(find_test_names(path))
    with start_import(
        results,
        Program(name="grinder", version=known.version),
        paths,
        scenario,
        target,
        instant(whole.first_ms * _MS_NS),
        settings={"resolution_ms": 1},
        speed=f"users {whole.threads}",
        ended_at=datetime.fromtimestamp(whole.last_ms / 1000, UTC),
    ) as run:
        records = _Records(run, known, whole.first_ms)
        workers = [_of_worker(DataLog(path, advance), at) for at, path in enumerate(paths)]
        for tests in in_order(workers, window_of(len(paths)), done_ms):
            records.add(tests)
        notes = describe_logs(whole, known.composite, known.of) + records.notes()
        return finish_import(run, "The Grinder", paths, whole.logs, records.requests, notes, more="more log")


def _of_worker(log: DataLog, number: int) -> Iterator[GrinderRows]:
    """Yield the tests of a log, the threads numbered apart from other workers'."""
    for tests in log:
        tests["thread"] += number << 16
        yield tests


class _Records:
    """Turns tests into records, and those that enclose others into measures."""

    def __init__(self, run: RunWriter, names: "GrinderNames", base_ms: int) -> None:
        self._run, self._names, self._base_ms = run, names, base_ms
        self._writer = ImportWriter(run)
        self._route = lru_cache(_MOST_REMEMBERED)(lambda test: run.route_number(names.of(test)))
        self.requests = self._composite_errors = 0

    def add(self, tests: GrinderRows) -> None:
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
        return said + self._writer.notes()

    def _measure(self, test: np.void) -> None:
        if test["errors"]:
            self._composite_errors += 1
            return
        done_ns = (int(test["start_ms"]) + int(test["time_ms"]) - self._base_ms) * _MS_NS
        name = self._names.of(int(test["test"]))
        self._writer.put(MeasureValue(name, float(test["time_ms"]), "ms", done_ns, int(test["run"]) + 1))

    def _records(self, tests: GrinderRows) -> Records:
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
        numbers, at = np.unique(tests["test"], return_inverse=True)
        records["route"] = np.array([self._route(number) for number in numbers.tolist()], np.uint16)[at]
        records["status"] = status
        wrong = np.where(status >= 400, error_number("http_error"), error_number("other"))
        records["error"] = np.where(failed, wrong, 0)
        records["flags"] = REUSED * ((status > 0) & (tests["connections"] == 0))
        return records


def _us(times_ms: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.minimum(times_ms * _MS_US, LARGEST_US)


_TAIL_BYTES, _HEAD_LINES = 1 << 20, 50
_DATA_LOGS = (
    (re.compile(r"(.+)-data\.log(\d*)(?:\.gz)?"), r"\1.log\2"),
    (re.compile(r"data_(.+)\.log(\d*)(?:\.gz)?"), r"out_\1.log\2"),
)
_ROW = re.compile(r'(\()?Test (-?\d{1,10})\b[^"]*(?:"(.*?)"?)?')
_VERSION = re.compile(r"The Grinder (?:version )?(\d[\w.-]{0,20})")
_GIVEN = re.compile(r"\s*(-?\d{1,10})(?:\s*[=:,]\s*|\s+)(\S.*?)\s*")


@dataclass
class GrinderNames:
    """Descriptions by number of test; numbers of tests that enclose others; the version of The Grinder."""

    descriptions: dict[int, str] = field(default_factory=dict)
    composite: set[int] = field(default_factory=set)
    version: str | None = None
    _used: dict[str, int] = field(default_factory=dict)

    def of(self, number: int) -> str:
        """Return what to call test `number`: its description, short, and no other test's."""
        name = self.descriptions.get(number, "").strip()
        if not name:
            return f"test {number}"
        name = short_name(name)
        if self._used.setdefault(name, number) != number:
            name = f"{name} (test {number})"
        return name

    def add(self, further: "GrinderNames") -> None:
        """Take what is new in `further`."""
        self.descriptions = further.descriptions | self.descriptions
        self.composite |= further.composite
        self.version = self.version or further.version


def read_test_names(path: Path) -> dict[int, str]:
    """Return what file `path` calls the tests: a number and a name on each line. Raises SettingsError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from None
    names, wrong = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if found := _GIVEN.fullmatch(line):
            names[int(found[1])] = found[2]
        else:
            what = f"{line.strip()[:60]!r} is not a number and a name, such as: 1 Front page"
            wrong.append(f"{path}: line {number}: {what}")
    if wrong:
        raise SettingsError("\n".join(printable(one) for one in wrong))
    return names


def find_test_names(data_log: Path) -> GrinderNames:
    """Return what is known beside `data_log`; nothing where nothing is there."""
    found = GrinderNames()
    for pattern, name in _DATA_LOGS:
        if match := pattern.fullmatch(data_log.name):
            plain = data_log.with_name(match.expand(name))
            for worker_log in (plain, plain.with_name(f"{plain.name}.gz")):
                if worker_log.is_file():
                    with suppress(OSError, ImportingError):  # names are a courtesy
                        return _from_worker_log(worker_log)
            break
    if (data_log.parent / FACTS_FILE).is_file():
        routes = read_json(data_log.parent / ROUTES_FILE)
        if isinstance(routes, list):
            found.descriptions = {number: str(route) for number, route in enumerate(routes, 1)}
    return found


def _from_worker_log(path: Path) -> GrinderNames:
    found, in_table = GrinderNames(), False
    for line in _head_and_tail(path):
        if found.version is None and (version := _VERSION.search(line)):
            found.version = version[1]
        if "Final statistics for this process" in line:
            in_table = True
        elif in_table and (row := _ROW.fullmatch(line.strip())):
            number = int(row[2])
            if row[3]:
                found.descriptions.setdefault(number, row[3])
            if row[1]:
                found.composite.add(number)
    return found


def _head_and_tail(path: Path) -> Iterator[str]:
    """Yield the first lines, and those of the last MiB: between stands each request. Of gzip, all lines."""
    whole = path.suffix == ".gz"
    rest = 0 if whole else max(path.stat().st_size - _TAIL_BYTES, 0)
    if whole or rest:
        try:
            for number, line in enumerate(read_file_lines(path)):
                if not whole and number == _HEAD_LINES:
                    break
                yield line.decode("utf-8", errors="replace")
        except CutOffError:
            return
    if not whole:
        with path.open("rb") as file:
            file.seek(rest)
            for line in file.read(_TAIL_BYTES).splitlines():
                yield line.decode("utf-8", errors="replace")
