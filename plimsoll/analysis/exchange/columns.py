"""The records of a run as columns with names: what CSV and Parquet hold. Pure.

What a record has a number for has its name here; what is unknown (0 or −1 in the record) is absent.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.requests import failed
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import CLIENT_QUEUED, HTTP2, QUEUED, REUSED, TLS, WARMUP, Records

_LINE_BITS = 48


@dataclass(frozen=True)
class ColumnValues:
    """Values of one column, shape (n,). `absent` says where there is none; of texts, `values` are indices."""

    values: NDArray[Any]
    absent: NDArray[np.bool_] | None = None
    texts: list[str] | None = None


# Name, unit (empty: none) and meaning, in their order.
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
    "failed": (
        "",
        "a failure: no whole response, or a wrong answer; it counts at its time-out",
    ),
    "reused": ("", "on a connection that was open already"),
    "http2": ("", "by HTTP/2"),
    "tls": ("", "over TLS"),
    "warmup": ("", "part of the warm-up: in no figure of a report"),
    "queued": ("", "had to wait for a connection when it was due"),
    "client_queued": ("", "had to wait for one of its own client, which is not the server's doing"),
}


def columns(run: RunDirectory, block: Records) -> dict[str, ColumnValues]:
    """Return the columns of a block of records, as `COLUMNS` names them, in their order."""
    found: dict[str, ColumnValues] = {}
    for name in ("due_ns", "lag_us", "dns_us", "connect_us", "tls_us", "total_us", "bytes", "client"):
        found[name] = ColumnValues(_copy(block, name))
    for name, unknown in (("ttfb_us", 0), ("logged_bytes", -1), ("status", 0), ("logged_status", 0)):
        values = _copy(block, name)
        found[name] = ColumnValues(values, values == unknown)
    found["response_us"] = ColumnValues(found["lag_us"].values.astype(np.int64) + found["total_us"].values)
    found["log"], found["line"] = _origin(run, _copy(block, "line"))
    found["route"] = _named(_copy(block, "route"), run.route_name)
    found["error"] = _named(_copy(block, "error"), run.error_name)
    found["failed"] = ColumnValues(failed(block))
    flags = _copy(block, "flags")
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


def _copy(block: Records, name: str) -> NDArray[Any]:
    return np.ascontiguousarray(block[name])


def _named(numbers: NDArray[Any], name_of: Callable[[int], str]) -> ColumnValues:
    used, at = np.unique(numbers, return_inverse=True)
    return ColumnValues(at, texts=[well_formed(name_of(int(number))) for number in used])


def _origin(run: RunDirectory, line: NDArray[np.uint64]) -> tuple[ColumnValues, ColumnValues]:
    logs = run.facts.logs
    if not logs:
        return ColumnValues(np.zeros(len(line), np.int64), np.ones(len(line), bool), []), ColumnValues(
            line, line == 0
        )
    log = (line >> np.uint64(_LINE_BITS)).astype(np.int64)
    line = line & np.uint64((1 << _LINE_BITS) - 1)
    unknown = (line == 0) | (log >= len(logs))
    texts = [well_formed(one.path) for one in logs]
    return ColumnValues(np.where(unknown, 0, log), unknown, texts), ColumnValues(line, line == 0)


def well_formed(text: str) -> str:
    """Return `text` with whatever is no character of Unicode replaced."""
    return text.encode("utf-8", errors="replace").decode("utf-8")
