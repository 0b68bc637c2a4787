"""Locust's CSV files: averages and rounded percentiles, of which no request can be made.

`PREFIX_stats.csv` has a row for each name of requests, `PREFIX_failures.csv` one for each error, and
`PREFIX_stats_history.csv` one a second (with `--csv-full-history` for each name), whose percentiles are over
the last ten seconds. Locust rounds each response time before it counts it: to 1 ms below 100 ms, to 10 ms
below a second, to 100 ms below ten, to a second above.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from plimsoll.analysis.exchange.lines import ImportingError
from plimsoll.analysis.statistics.percentiles import MILLION, rank
from plimsoll.common.hostile import is_figure, printable, redact

ENDINGS = ("_stats.csv", "_stats_history.csv", "_failures.csv", "_exceptions.csv")
TOTAL = "Aggregated"
_MOST_ROWS = 200_000
_PERCENTILE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)%")
Row = dict[str, str]


@dataclass(frozen=True)
class Tables:
    """The content of the files of one prefix, as `imported_summary.json` has it."""

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
    for ending in ENDINGS:
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
    instants = [
        instant for row in rows if (instant := _figure(row.get("Timestamp"))) and 0 < instant < 1 << 32
    ]
    first, last = (
        (datetime.fromtimestamp(instant, UTC) for instant in (min(instants), max(instants)))
        if instants
        else (None, None)
    )
    history = [_second(row) for row in rows if row.get("Name") == TOTAL]
    return Tables(prefix, names, errors, history, first, last)


def _rows(path: Path, needed: str) -> Iterator[Row]:
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            reader = csv.DictReader(file)
            if needed not in (reader.fieldnames or ()):
                raise ImportingError(
                    f"{path}: is none of Locust's files: its first line has no column {needed!r}"
                )
            for number, row in enumerate(reader):
                if number == _MOST_ROWS:
                    return
                if None not in row.values():  # the last row of a Locust that was killed
                    yield {str(key): str(value) for key, value in row.items()}
    except (csv.Error, OSError) as error:
        raise ImportingError(f"{path}: cannot be read: {error}") from None


def _name(row: Row) -> dict[str, object]:
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


def _error(row: Row) -> dict[str, object]:
    return {
        "method": _words(row.get("Method")),
        "name": _words(row.get("Name")),
        "error": _words(row.get("Error")),
        "occurrences": _count(row.get("Occurrences")),
    }


def _second(row: Row) -> dict[str, object]:
    return {
        "at_s": _count(row.get("Timestamp")),
        "users": _count(row.get("User Count")),
        "requests_per_s": _figure(row.get("Requests/s")),
        "errors_per_s": _figure(row.get("Failures/s")),
        "requests": _count(row.get("Total Request Count")),
        "errors": _count(row.get("Total Failure Count")),
    }


def _percentiles(row: Row, requests: int) -> dict[str, float | None]:
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


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else f"{instant:%Y-%m-%dT%H:%M:%SZ}"
