"""Locust's tests: files of the listener become a run directory, Locust's own CSV files a summary."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import numpy as np

from plimsoll.analysis.exchange.importing import (
    LARGEST_US,
    ImportingError,
    ImportResult,
    LogFile,
    check_files,
    count_bytes,
    done_ns,
    finish_import,
    in_order,
    instant,
    is_address,
    route_of_url,
    short_name,
    start_import,
    status_error,
    window_of,
)
from plimsoll.analysis.statistics.percentiles import MILLION, rank
from plimsoll.common.files import replace_json
from plimsoll.common.hostile import is_figure, printable, redact
from plimsoll.common.units import ABSENT, count, plain_ms
from plimsoll.rundir.facts import Program
from plimsoll.rundir.find import directory_name, new_directory
from plimsoll.rundir.records import RECORD, Records, error_number

LISTENER = Path(__file__).with_name("locust_listener.py")


def import_locust(
    paths: Sequence[Path],
    results: Path,
    *,
    scenario: str = "locust",
    target: str | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> ImportResult:
    """Write one run directory into `results` from the listener's files `paths`, one of each process.

    Raises ImportingError if one of them is not one, OutputError if the run directory cannot be written.
    """
    check_files(paths)
    advance = count_bytes(paths, 2, progress)
    logs = [LocustLog(path, advance) for path in paths]
    base_ns, end_ns = _span_ns(logs)
    program = Program(name="locust", version=next((log.version for log in logs if log.version), None))
    ended_at = datetime.fromtimestamp(end_ns / 1e9, UTC)
    started_at = instant(base_ns)
    with start_import(results, program, paths, scenario, target, started_at, ended_at=ended_at) as run:
        streams = [
            _of_file(LocustLog(path, advance, run.route_number), at, base_ns) for at, path in enumerate(paths)
        ]
        for records in in_order(streams, window_of(len(paths))):
            run.records(records)
        requests = sum(log.requests for log in logs)
        return finish_import(run, "Locust", paths, logs, requests, [])


def _span_ns(logs: "Sequence[LocustLog]") -> tuple[int, int]:
    """Return when the first request of all began and the last one ended, since the epoch."""
    begins, ends, wrong = [], [], []
    for log in logs:
        try:
            for records in log:
                begins.append(int(records["due_ns"].min()))
                ends.append(int(done_ns(records).max()))
        except ImportingError as error:
            wrong.append(str(error))
    if not wrong and not begins:
        first = next((one for log in logs for one in log.broken), "")
        wrong.append(f"{logs[0].path}: holds no request" + (f" ({first})" if first else ""))
    if wrong:
        raise ImportingError("\n".join(wrong))
    return min(begins), max(ends)


def _of_file(log: "LocustLog", number: int, base_ns: int) -> Iterator[Records]:
    """Yield the records of a file: since the start of the run, users numbered apart from other files'."""
    for records in log:
        records["due_ns"] -= base_ns
        records["client"] += np.uint32(number << 16)
        yield records


_BLOCK_RECORDS = 1 << 14
_LAST_US = (1 << 62) // 1000
# Of Python's and requests' exceptions, by a part of their name and text; the first that fits.
_KINDS = (
    ("Timeout", "timeout"),
    ("timed out", "timeout"),
    ("refused", "connect_refused"),
    ("SSL", "tls_failed"),
    ("reset by peer", "reset"),
    ("RemoteDisconnected", "closed_early"),
    ("IncompleteRead", "closed_early"),
    ("BadStatusLine", "bad_response"),
    ("NameResolution", "connect_failed"),
    ("gaierror", "connect_failed"),
    ("ConnectionError", "connect_failed"),
    ("CatchResponseError", "check_failed"),
    ("ResponseError", "check_failed"),
)


class LocustLog(LogFile):
    """A file of the listener that `--listener` prints: every request of one process.

    Iterate over it, once, for blocks of records, shape (n,); `due_ns` counts from the epoch.
    """

    def __init__(
        self,
        path: Path,
        advance: Callable[[int], None] = lambda _: None,
        route_number: Callable[[str], int] = lambda _: 0,
    ) -> None:
        super().__init__(path, advance)
        self._route_number = route_number
        self.version: str | None = None

    def __iter__(self) -> Iterator[Records]:
        """Yield the records. Raises ImportingError if the listener never wrote this."""
        self.line = 0
        rows = []
        for line in self.whole_lines():
            self.line += 1
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, dict) and value.get("plimsoll_locust") == 1:
                self.version = str(value.get("locust"))[:20]
            elif self.line == 1:
                raise ImportingError(
                    f"{self.path}: is not a file of the listener (plimsoll import locust --listener), "
                    "nor one of Locust's CSV files"
                )
            elif row := self._row(value):
                rows.append(row)
                self.requests += 1
            else:
                self.note_broken(self.line, " is not a request")
            if len(rows) >= _BLOCK_RECORDS:
                yield np.array(rows, dtype=RECORD)
                rows = []
        if rows:
            yield np.array(rows, dtype=RECORD)

    def _row(self, value: Any) -> tuple[int, ...] | None:
        if not isinstance(value, list) or len(value) != 8:
            return None
        start_us, total_us, method, name, status, size, error, user = value
        numbers = (start_us, total_us, status, size, user)
        if (
            not all(isinstance(number, int) and 0 <= number <= _LAST_US for number in numbers)
            or start_us == 0
        ):
            return None
        if not all(isinstance(text, str) for text in (method, name, error)) or status > 0xFFFF:
            return None
        number = error_number(_kind(error, status))
        route = self._route_number(locust_route(name))
        due_ns, user, total_us = start_us * 1000, user & 0xFFFF, min(total_us, LARGEST_US)
        return (due_ns, 0, 0, 0, 0, 0, total_us, size, -1, 0, user, route, status, 0, number, 0, 0, 0, 0, 0)


def locust_route(name: str) -> str:
    """Return the route of what Locust calls a request: an address only by its kind, as in other imports."""
    return route_of_url(name) if not name or is_address(name) else short_name(name)


def _kind(error: str, status: int) -> str:
    if not error:
        return "none"
    if status >= 400:
        return status_error(status)
    return next((kind for part, kind in _KINDS if part in error), "other")


Row = dict[str, str]


_MOST_ROWS = 200_000
_PERCENTILE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)%")
_Row = dict[str, str]


@dataclass(frozen=True)
class Tables:
    """The content of Locust's CSV files of one prefix, as `imported_summary.json` has it.

    `PREFIX_stats.csv` has a row for each name of requests, `PREFIX_failures.csv` one for each error, and
    `PREFIX_stats_history.csv` one a second (with `--csv-full-history` for each name), whose percentiles are
    over the last ten seconds. Locust rounds each response time before it counts it: to 1 ms below 100 ms, to
    10 ms below a second, to 100 ms below ten, to a second above. So no request can be made of them.
    """

    prefix: str
    names: list[dict[str, object]]
    errors: list[dict[str, object]]
    history: list[dict[str, object]]
    started_at: datetime | None
    ended_at: datetime | None

    def as_json(self) -> dict[str, object]:
        """Return the whole of `imported_summary.json`."""
        return {
            "format": 1,
            "program": "locust",
            "source": printable(Path(self.prefix).name),
            "kind": "aggregates",
            "started_at": _text(self.started_at),
            "ended_at": _text(self.ended_at),
            "names": self.names,
            "errors": self.errors,
            "history": self.history,
        }


def prefix_of(path: Path) -> str | None:
    """Return the prefix of Locust's files that `path` means: it itself, or one of the files; else None."""
    for ending in ("_stats.csv", "_stats_history.csv", "_failures.csv", "_exceptions.csv"):
        if path.name.endswith(ending) and path.is_file():
            return str(path)[: -len(ending)]
    return str(path) if Path(f"{path}_stats.csv").is_file() else None


def read_tables(prefix: str) -> Tables:
    """Read what there is of the files. Raises ImportingError."""
    names = [_name(row) for row in _rows(Path(f"{prefix}_stats.csv"), "Request Count")]
    if not names:
        raise ImportingError(f"{prefix}_stats.csv: holds no row; did Locust end before its first request?")
    failures = Path(f"{prefix}_failures.csv")
    errors = [_error(row) for row in _rows(failures, "Occurrences")] if failures.is_file() else []
    past = Path(f"{prefix}_stats_history.csv")
    rows = list(_rows(past, "Timestamp")) if past.is_file() else []
    seconds = [second for row in rows if (second := _figure(row.get("Timestamp"))) and 0 < second < 1 << 32]
    first, last = (datetime.fromtimestamp(which(seconds), UTC) if seconds else None for which in (min, max))
    history = [_second(row) for row in rows if row.get("Name") == "Aggregated"]
    return Tables(prefix, names, errors, history, first, last)


def _rows(path: Path, needed: str) -> Iterator[_Row]:
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            reader = csv.DictReader(file)
            if needed not in (reader.fieldnames or ()):
                raise ImportingError(
                    f"{path}: is not one of Locust's files: its first line has no column {needed!r}"
                )
            for number, row in enumerate(reader):
                if number == _MOST_ROWS:
                    return
                if None not in row.values():  # the last row of a Locust that was killed
                    yield {str(key): str(value) for key, value in row.items()}
    except (csv.Error, OSError) as error:
        raise ImportingError(f"{path}: cannot be read: {error}") from None


def _name(row: _Row) -> dict[str, object]:
    requests = _count(row.get("Request Count"))
    return {
        "method": _words(row.get("Type")),
        "name": _words(row.get("Name")),
        "requests": requests,
        "errors": _count(row.get("Failure Count")),
        "requests_per_s": _figure(row.get("Requests/s")),
        "errors_per_s": _figure(row.get("Failures/s")),
        "mean_ms": _figure(row.get("Average Response Time")) if requests else None,
        "min_ms": _figure(row.get("Min Response Time")) if requests else None,
        "max_ms": _figure(row.get("Max Response Time")) if requests else None,
        "mean_bytes": _figure(row.get("Average Content Size")) if requests else None,
        "rounded_ms": _percentiles(row, requests or 0),
    }


def _error(row: _Row) -> dict[str, object]:
    return {
        "method": _words(row.get("Method")),
        "name": _words(row.get("Name")),
        "error": _words(row.get("Error")),
        "occurrences": _count(row.get("Occurrences")),
    }


def _second(row: _Row) -> dict[str, object]:
    return {
        "at_s": _count(row.get("Timestamp")),
        "users": _count(row.get("User Count")),
        "requests_per_s": _figure(row.get("Requests/s")),
        "errors_per_s": _figure(row.get("Failures/s")),
        "requests": _count(row.get("Total Request Count")),
        "errors": _count(row.get("Total Failure Count")),
    }


def _percentiles(row: _Row, requests: int) -> dict[str, float | None]:
    """Return the percentiles that so many requests can have; the largest is `max_ms`."""
    found: dict[str, float | None] = {}
    for column, text in row.items():
        if (share := _PERCENTILE.fullmatch(column)) and 0 < float(share[1]) < 100:
            given = rank(round(float(share[1]) * MILLION / 100), requests) is not None
            found[f"p{share[1]}"] = _figure(text) if given else None
    return found


def _figure(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:  # N/A
        return None
    return number if is_figure(number) else None


def _count(text: str | None) -> int | None:
    number = _figure(text)
    return None if number is None or number < 0 else int(number)


def _words(text: str | None) -> str:
    return printable(redact(text or ""))


def _text(at: datetime | None) -> str | None:
    return None if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"


def summarise_tables(tables: "Tables", out: Path, scenario: str, as_json: bool) -> None:
    """Write imported_summary.json, and print what is in it."""
    """Write imported_summary.json into its own folder, which is not a run: `latest` stays where it is."""
    directory = new_directory(out, directory_name(tables.started_at or datetime.now(UTC), scenario))
    path = directory / "imported_summary.json"
    replace_json(path, tables.as_json())
    if as_json:
        summaries = [{"source": tables.prefix, "summary": str(path)}]
        click.echo(json.dumps({"format": 1, "runs": [], "summaries": summaries}, indent=2))
        return
    click.echo(f"{'requests':>10} {'errors':>8} {'mean ms':>10} {'max ms':>10}  name")
    for row in tables.names:
        counts = f"{_count_text(row['requests']):>10} {_count_text(row['errors']):>8}"
        times = f"{_ms(row['mean_ms']):>10} {_ms(row['max_ms']):>10}"
        name = printable(f"{row['method']} {row['name']}".strip(), 80)
        click.echo(f"{counts} {times}  {name}")
    click.echo(
        f"{printable(str(path), 4096)}\n"
        "No run directory: Locust's CSV files hold averages and rounded percentiles, no requests. "
        "To have every request next time: plimsoll import locust --listener > plimsoll_listener.py"
    )


def _ms(value: object) -> str:
    return plain_ms(value) if isinstance(value, float) else ABSENT


def _count_text(value: object) -> str:
    return count(value if isinstance(value, int) else None)
