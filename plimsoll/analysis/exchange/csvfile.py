"""Records as CSV, the first export format, with what all formats share: a contract, and named columns."""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.requests import failure_mask
from plimsoll.common.hostile import printable
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import (
    CLIENT_QUEUED,
    HTTP2,
    QUEUED,
    RECORD,
    REUSED,
    SERVED,
    TLS,
    UNKNOWN_LATE_US,
    WARMUP,
    Records,
    with_all_columns,
)

Advance = Callable[[int], None]
Writer = Callable[[IO[bytes]], object]
# Takes a run and what to call with records read. Before any file is opened it does what may fail, and returns
# how many requests the file stands for and what writes it. Raises PlimsollError.
Prepare = Callable[[RunDirectory, Advance], tuple[int, Writer]]


def by_blocks(blocks: Callable[[RunDirectory], Iterator[tuple[int, bytes]]]) -> Prepare:
    """Return how to prepare a format that is written a block of records at a time."""

    def prepare(run: RunDirectory, advance: Advance) -> tuple[int, Writer]:
        def write(file: IO[bytes]) -> None:
            for records, piece in blocks(run):
                file.write(piece)
                advance(records)

        return run.requests.count, write

    return prepare


def _csv_blocks(run: RunDirectory) -> Iterator[tuple[int, bytes]]:
    """Yield how many records a piece of the file holds, and the piece."""
    yield 0, (",".join(COLUMNS) + "\n").encode()
    for block in run.requests.blocks(1 << 14):
        rows = [_cells(column) for column in columns(run, block).values()]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(zip(*rows, strict=True))
        yield len(block), text.getvalue().encode("utf-8")


# What a spreadsheet takes for the beginning of a formula, also in full width.
_FORMULA = tuple("=+-@＝＋－＠")


def cell(text: str) -> str:
    """Return `text` as a cell that no spreadsheet takes for a formula: then an apostrophe stands before it.

    Control characters, line ends among them, are spelled out.
    """
    shown = printable(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown


def _cells(column: "ColumnValues") -> list[Any]:
    values = column.values.astype(int) if column.values.dtype == bool else column.values
    cells: list[Any] = values.tolist()
    if column.texts is not None:
        shown = [cell(text) for text in column.texts] or [""]
        cells = [shown[at] for at in cells]
    if column.absent is not None and column.absent.any():
        absent = column.absent.tolist()
        cells = [None if missing else value for value, missing in zip(cells, absent, strict=True)]
    return cells


CSV = by_blocks(_csv_blocks)


@dataclass(frozen=True)
class ColumnValues:
    """Values of one column, shape (n,). `absent` says where there is none; of texts, `values` are indices."""

    values: NDArray[Any]
    absent: NDArray[np.bool_] | None = None
    texts: list[str] | None = None


# Name, unit (empty: none) and meaning, in their order: all that a record has a number for. What is unknown (0
# or −1 in the record) is absent.
COLUMNS = {
    "due_ns": ("ns", "when it was due, since the start of the run"),
    "lag_us": ("us", "start − due"),
    "dns_us": ("us", "time to resolve the name"),
    "connect_us": ("us", "time to open the TCP connection; 0 on a reused one"),
    "tls_us": ("us", "time of the TLS handshake; 0 on a reused connection"),
    "ttfb_us": ("us", "start → first byte; absent when no byte came"),
    "total_us": ("us", "start → last byte, or the failure: service time"),
    "response_us": ("us", "due → last byte, or the failure: response time"),
    "bytes": ("bytes", "body bytes received"),
    "logged_bytes": ("bytes", "body bytes according to the log; absent if unknown"),
    "log": ("", "the log file that it is from; absent where no log was replayed"),
    "line": ("", "line of the log, or iteration of a scripted scenario; absent if unknown"),
    "client": ("", "who: hash of a client of the log, or number of a simulated user"),
    "route": ("", "kind of request, or step"),
    "status": ("", "HTTP status; absent when no response came"),
    "logged_status": ("", "status in the log; absent if unknown"),
    "error": ("", "why there was no whole response, or none"),
    "failed": ("", "a failure: no whole response, or a wrong answer; it counts at its time-out"),
    "reused": ("", "on a connection that was open already"),
    "http2": ("", "by HTTP/2"),
    "tls": ("", "over TLS"),
    "warmup": ("", "part of the warm-up: in no figure of a report"),
    "queued": ("", "had to wait for a connection when it was due"),
    "client_queued": ("", "had to wait for one of its own client, which is not the server's doing"),
    "late_us": ("us", "what of lag_us is the generator's own lateness; absent if unknown"),
    "served": ("", "what answered: hit, miss, pass or expired; absent if unknown"),
    "page": ("", "the page that it belongs to; absent if unknown"),
    "paused_us": ("us", "pauses of the program's own while it read the body; 0 also where it did not look"),
}


_UNKNOWN = {
    "late_us": UNKNOWN_LATE_US,
    "ttfb_us": 0,
    "logged_bytes": -1,
    "status": 0,
    "logged_status": 0,
    "page": 0,
}


def columns(run: RunDirectory, block: Records) -> dict[str, ColumnValues]:
    """Return the columns of a block of records, as `COLUMNS` names them, in their order."""
    found: dict[str, ColumnValues] = {}
    block = with_all_columns(block)

    def copy(name: str) -> NDArray[Any]:
        return np.ascontiguousarray(block[name])

    for name in COLUMNS.keys() & set(RECORD.names or ()):
        values = copy(name)
        found[name] = ColumnValues(values, values == _UNKNOWN[name] if name in _UNKNOWN else None)
    found["response_us"] = ColumnValues(found["lag_us"].values.astype(np.int64) + found["total_us"].values)
    found["log"], found["line"] = _origin(run, copy("line"))
    found["route"] = _name_values(copy("route"), run.route_name)
    found["error"] = _name_values(copy("error"), run.error_name)
    served = copy("served")
    found["served"] = replace(_name_values(served, _served_name), absent=served == 0)
    found["failed"] = ColumnValues(failure_mask(block))
    flags = copy("flags")
    for name, flag in (
        ("reused", REUSED),
        ("http2", HTTP2),
        ("tls", TLS),
        ("warmup", WARMUP),
        ("queued", QUEUED),
        ("client_queued", CLIENT_QUEUED),
    ):
        found[name] = ColumnValues((flags & flag) != 0)
    return {name: found[name] for name in COLUMNS}


def _served_name(number: int) -> str:
    return SERVED[number] if number < len(SERVED) else f"served {number}"


def _name_values(numbers: NDArray[Any], name_of: Callable[[int], str]) -> ColumnValues:
    used, at = np.unique(numbers, return_inverse=True)
    return ColumnValues(at, texts=[_replace_malformed(name_of(int(number))) for number in used])


def _origin(run: RunDirectory, line: NDArray[np.uint64]) -> tuple[ColumnValues, ColumnValues]:
    logs = run.facts.logs
    if not logs:
        return ColumnValues(np.zeros(len(line), np.int64), np.ones(len(line), bool), []), ColumnValues(
            line, line == 0
        )
    log = (line >> np.uint64(48)).astype(np.int64)
    line = line & np.uint64((1 << 48) - 1)
    unknown = (line == 0) | (log >= len(logs))
    texts = [_replace_malformed(one.path) for one in logs]
    return ColumnValues(np.where(unknown, 0, log), unknown, texts), ColumnValues(line, line == 0)


def _replace_malformed(text: str) -> str:
    """Return `text` with everything that is not a Unicode character replaced."""
    return text.encode("utf-8", errors="replace").decode("utf-8")
