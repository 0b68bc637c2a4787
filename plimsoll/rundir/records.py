"""`requests.npy`: one record a request, read in blocks so that any run fits in memory, and appended to."""

import ast
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from plimsoll.common.errors import DamagedFileError, NoRequestsError, RunDirectoryError
from plimsoll.common.files import open_regular, write_error

HEADER_BYTES = 512
_COLUMNS_V1 = [
    ("due_ns", "<i8"),
    ("lag_us", "<u4"),
    ("dns_us", "<u4"),
    ("connect_us", "<u4"),
    ("tls_us", "<u4"),
    ("ttfb_us", "<u4"),
    ("total_us", "<u4"),
    ("bytes", "<i8"),
    ("logged_bytes", "<i8"),
    ("line", "<u8"),
    ("client", "<u4"),
    ("route", "<u2"),
    ("status", "<u2"),
    ("logged_status", "<u2"),
    ("error", "u1"),
    ("flags", "u1"),
]
RECORD_V1 = np.dtype(_COLUMNS_V1)  # of format 1: 68 bytes
# 81 bytes, packed: the first 68 are as in format 1.
RECORD = np.dtype([*_COLUMNS_V1, ("late_us", "<u4"), ("served", "u1"), ("page", "<u4"), ("paused_us", "<u4")])
UNKNOWN_LATE_US = 0xFFFF_FFFF
SERVED = ("unknown", "hit", "miss", "pass", "expired")  # names of the numbers in column `served`
REUSED, HTTP2, TLS, WARMUP, QUEUED, MEMBER, SENT_TO_LOGIN, CLIENT_QUEUED = 1, 2, 4, 8, 16, 32, 64, 128
TIMEOUT = 4  # of `error`: no whole response within the time-out
BLOCK_RECORDS = 1 << 18  # 20 MiB: small beside the figures' arrays, large beside the cost of a call
_LATEST_NS = 1 << 61  # 73 years
_LARGEST_BODY_BYTES = 1 << 40  # the sum of eight million is a number of 64 bits
_FIGURES_BYTES = 20  # of memory that a run's figures take for each request

Records = NDArray[np.void]


# The error kinds of `errors.json`: those of a replay first, in its order, then those of scripted steps.
_TRANSPORT = (
    "none",
    "connect_refused",
    "connect_failed",
    "tls_failed",
    "timeout",
    "reset",
    "closed_early",
    "bad_response",
    "write_failed",
    "h2_refused",
    "aborted",
    "other",
)
_SCRIPTED = (
    "http_error",
    "check_failed",
    "login_failed",
    "no_permission",
    "nonce_expired",
    "upload_refused",
    "upgrade_locked",
    "upgrade_failed",
    "wrong_version",
    "php_fatal",
    "backend_dead",
    "out_of_disk",
)
ERROR_KINDS = _TRANSPORT + _SCRIPTED
_NUMBERS = {name: number for number, name in enumerate(ERROR_KINDS)}


def error_number(name: str) -> int:
    """Return the number of error kind `name` in column `error`; that of `other` for one that is unknown."""
    return _NUMBERS.get(name, _NUMBERS["other"])


@dataclass(frozen=True)
class Request:
    """One record of `requests.npy` with names in place of numbers; docs/run-format.md has the columns.

    `due_ns` counts from the start of the run; `total_us` and `ttfb_us` (0: no byte came) from the request's
    own start. `iteration` (from 1; 0: not part of one) goes into column `line`. `warmup` marks what is
    left out of all figures, including a scenario's set-up and clean-up.
    """

    due_ns: int
    total_us: int
    route: str
    status: int = 0
    bytes: int = 0
    ttfb_us: int = 0
    error: str = "none"
    iteration: int = 0
    client: int = 0
    lag_us: int = 0
    dns_us: int = 0
    connect_us: int = 0
    tls_us: int = 0
    reused: bool = False
    http2: bool = False
    tls: bool = False
    warmup: bool = False
    logged_bytes: int = -1
    logged_status: int = 0


def late_us(records: Records) -> NDArray[np.uint32]:
    """Return how much of the response time of each record is the generator's own lateness, shape (n,).

    Format 1 does not have it: there the whole lag of a request that did not wait for a connection is the
    generator's, and of one that did (`QUEUED`) it is unknown, `UNKNOWN_LATE_US`. The lesser of that and the
    lag is the whole lag: all that may be the generator's.
    """
    if "late_us" in (records.dtype.names or ()):
        return np.ascontiguousarray(records["late_us"])
    queued = (records["flags"] & QUEUED) != 0
    return np.where(queued, np.uint32(UNKNOWN_LATE_US), records["lag_us"])


def count_served(records: Records) -> NDArray[np.int64]:
    """Return how many whole answers came from where, by the numbers of `SERVED`; format 1 knows of none."""
    served = (
        records["served"] if "served" in (records.dtype.names or ()) else np.zeros(len(records), np.uint8)
    )[records["error"] == 0]
    return np.bincount(np.where(served < len(SERVED), served, 0), minlength=len(SERVED))


def with_all_columns(records: Records) -> Records:
    """Return a copy of `records`, shape (n,), of either format with the columns of `RECORD`."""
    if records.dtype == RECORD:
        return records.copy()
    copy = np.zeros(len(records), dtype=RECORD)
    copy[list(RECORD_V1.names or ())] = records
    copy["late_us"] = late_us(records)
    return copy


@dataclass(frozen=True)
class RequestFile:
    """The records of one run. `count` comes from the file's length; a cut-off last record is not counted.

    `layout` is how they stand in the file: `RECORD`, or `RECORD_V1`.
    """

    path: Path
    count: int
    layout: np.dtype[Any] = RECORD

    @classmethod
    def open(cls, path: Path) -> "RequestFile":
        """Check the header of `path` against docs/run-format.md and count its records.

        Raises RunDirectoryError if it is absent or has more records than this machine has memory for,
        DamagedFileError if the header is another's, NoRequestsError if it holds not one whole record.
        """
        with _open(path) as file:
            header, size = file.read(HEADER_BYTES), os.fstat(file.fileno()).st_size
        if size < HEADER_BYTES:
            raise NoRequestsError(f"{path}: holds no request")
        layout = _read_layout(path, header)
        count = (size - HEADER_BYTES) // layout.itemsize
        if not count:
            raise NoRequestsError(f"{path}: holds no request")
        needed_bytes = count * _FIGURES_BYTES
        memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if needed_bytes > memory_bytes:
            raise RunDirectoryError(
                f"{path}: holds {count:,} requests, whose figures take {needed_bytes >> 30:,} GiB of memory, "
                f"and this machine has {memory_bytes >> 30:,} GiB: use a larger one, or leave the run out"
            )
        return cls(path, count, layout)

    def blocks(self, block_records: int = BLOCK_RECORDS) -> Iterator[Records]:
        """Yield the records in the order in which they were written, in arrays of at most `block_records`.

        They are as they stand in the file: `late_us` and `with_all_columns` take either format. Every array
        is a view of one buffer: copy what must outlive the iteration. Read rather than mapped, because pages
        of a map count as resident memory, and because a map of a file that shrinks kills the process. Raises
        DamagedFileError, also if a record holds what no program of ours writes.
        """
        buffer = np.empty(min(block_records, self.count), dtype=self.layout)
        remaining = self.count
        with _open(self.path) as file:
            file.seek(HEADER_BYTES)
            while remaining:
                block = buffer[: min(len(buffer), remaining)]
                _fill(self.path, file, block.view(np.uint8).data)
                remaining -= len(block)
                _check_records(self.path, block)
                yield block


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    try:
        with open_regular(path) as file:
            yield file
    except FileNotFoundError:
        raise RunDirectoryError(
            f"{path.parent}: requests.npy is missing, so this is not a run directory"
        ) from None


def _fill(path: Path, file: Any, view: memoryview) -> None:
    while len(view):
        read = file.readinto(view)
        if not read:
            raise DamagedFileError(f"{path}: became shorter while it was read")
        view = view[read:]


def _check_records(path: Path, block: Records) -> None:
    due_ns, body_bytes = block["due_ns"], block["bytes"]
    if int(due_ns.min()) < 0 or int(due_ns.max()) > _LATEST_NS:
        raise DamagedFileError(f"{path}: a request is due at an impossible instant; the file is damaged")
    if int(body_bytes.max()) > _LARGEST_BODY_BYTES:
        raise DamagedFileError(f"{path}: a body is of an impossible size; the file is damaged")


def _read_layout(path: Path, header: bytes) -> np.dtype[Any]:
    """Return how the records behind a whole `header` are laid out. Raises DamagedFileError."""
    if header[:6] != b"\x93NUMPY":
        raise DamagedFileError(f"{path}: is not a NumPy file")
    length = HEADER_BYTES - 10
    if header[6:8] != b"\x01\x00" or int.from_bytes(header[8:10], "little") != length:
        raise DamagedFileError(f"{path}: its header is not the 512 bytes of version 1.0 that Plimsoll writes")
    try:
        facts = ast.literal_eval(header[10:].decode("latin-1").strip())
        dtype = np.dtype([tuple(field) for field in facts["descr"]])
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise DamagedFileError(f"{path}: its header cannot be understood") from None
    for layout in (RECORD, RECORD_V1):
        if dtype == layout:
            return layout
    raise DamagedFileError(f"{path}: {_difference(dtype)}; docs/run-format.md lists the columns")


def _difference(dtype: np.dtype[Any]) -> str:
    have, want = dtype.names or (), RECORD.names or ()
    if missing := [name for name in want if name not in have]:
        return f"column {missing[0]} is missing"
    if strange := [name for name in have if name not in want]:
        return f"column {strange[0]!a} is unknown"
    for name in want:
        if dtype[name] != RECORD[name]:
            return f"column {name} has type {dtype[name].str} instead of {RECORD[name].str}"
    return "its columns stand in another order"


_LARGEST_US = 0xFFFF_FFFF
_FLUSH_S = 1.0


def header(count: int) -> bytes:
    """Return the 512 bytes before the records: NumPy format 1.0, padded with spaces (docs/run-format.md)."""
    fields = ", ".join(f"('{name}', '{RECORD[name].str}')" for name in RECORD.names or ())
    text = f"{{'descr': [{fields}], 'fortran_order': False, 'shape': ({count:20d},), }}"
    length = HEADER_BYTES - 10
    start = b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little")
    return start + text.encode("ascii").ljust(length - 1) + b"\n"


class RequestWriter:
    """Takes records and hands them to the operating system, at once or once a second.

    `at_once` suits scripted scenarios, whose rates are low and whose pauses are long.
    """

    def __init__(self, path: Path, at_once: bool) -> None:
        self._path = path
        self._every_s = 0.0 if at_once else _FLUSH_S
        self._waiting = bytearray()
        self._sum = sha256()
        self._flushed_s = time.monotonic()
        self.count = 0
        try:
            self._file = path.open("xb", buffering=0)
            self._file.write(header(0))
        except OSError as error:
            raise write_error(path, error) from None

    def add(self, request: Request, route: int) -> None:
        """Append one record; `route` is its number in `routes.json`. Raises OutputError."""
        self._waiting += packed(request, route)
        self.count += 1
        if time.monotonic() - self._flushed_s >= self._every_s:
            self.flush()

    def extend(self, records: Records) -> None:
        """Append many records of either format, shape (n,), a block at a time."""
        for start in range(0, len(records), BLOCK_RECORDS):
            block = records[start : start + BLOCK_RECORDS]
            block = block if block.dtype == RECORD else with_all_columns(block)
            self._waiting += block.tobytes()
            self.count += len(block)
            self.flush()

    def flush(self) -> None:
        """Write what is pending, then put the count into the header."""
        try:
            while self._waiting:
                written = self._file.write(self._waiting)
                self._sum.update(self._waiting[:written])
                del self._waiting[:written]
            os.pwrite(self._file.fileno(), header(self.count), 0)
        except OSError as error:
            raise write_error(self._path, error) from None
        self._flushed_s = time.monotonic()

    @property
    def records_sha256(self) -> str:
        """The SHA-256 of all records that were written, in hexadecimal: `summary.json` keeps it."""
        return self._sum.hexdigest()

    def close(self) -> None:
        """Flush and close."""
        if not self._file.closed:
            try:
                self.flush()
            finally:
                self._file.close()


def packed(request: Request, route: int) -> bytes:
    """Return the 81 bytes of one record. It waited for no connection: its lag is the generator's lateness."""
    flags = REUSED * request.reused + HTTP2 * request.http2 + TLS * request.tls + WARMUP * request.warmup
    times_us = (
        request.lag_us,
        request.dns_us,
        request.connect_us,
        request.tls_us,
        request.ttfb_us,
        request.total_us,
    )
    lag_us, *further_us = (min(max(time_us, 0), _LARGEST_US) for time_us in times_us)
    record = (
        request.due_ns,
        lag_us,
        *further_us,
        request.bytes,
        request.logged_bytes,
        request.iteration,
        request.client & 0xFFFF_FFFF,
        route,
        request.status if 0 <= request.status <= 0xFFFF else 0,
        request.logged_status,
        error_number(request.error),
        flags,
        lag_us,
        0,
        0,
        0,
    )
    return np.array(record, dtype=RECORD).tobytes()


_BLOCK_RECORDS = 1 << 14
_MOST_LINES_BYTES = 8 << 20  # at a look


class Tail:
    """Yields the lines appended to `path` since the last call; nothing while the file is not there."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def lines(self) -> list[bytes]:
        """Return the whole lines that were appended; one that is only begun comes with a later call."""
        data = _read_at(self._path, self._offset, _MOST_LINES_BYTES)
        end = data.rfind(b"\n") + 1
        self._offset += end
        return data[:end].splitlines()


class RecordTail:
    """Yields the records appended to `path` since the last call; nothing while it has no header of ours.

    Of more than `most` records that are there at the beginning, those before the last `most` are `skipped`.
    """

    def __init__(self, path: Path, most: int | None = None) -> None:
        self.skipped = 0
        self._path, self._most = path, most
        self._layout: np.dtype[Any] | None = None
        self._offset = HEADER_BYTES

    def records(self) -> Iterator[Records]:
        """Yield the whole records that were appended, as they stand in the file, in arrays of shape (n,)."""
        layout = self._layout = self._layout or self._begin()
        if layout is None:
            return
        most_bytes = layout.itemsize * _BLOCK_RECORDS
        while count := len(data := _read_at(self._path, self._offset, most_bytes)) // layout.itemsize:
            self._offset += count * layout.itemsize
            yield np.frombuffer(data, dtype=layout, count=count)

    def _begin(self) -> np.dtype[Any] | None:
        try:
            found = RequestFile.open(self._path)
        except RunDirectoryError:  # not yet, or nothing that can be read: who opens the run says so
            return None
        if self._most is not None:
            self.skipped = max(found.count - self._most, 0)
            self._offset += self.skipped * found.layout.itemsize
        return found.layout


def _read_at(path: Path, offset: int, most_bytes: int) -> bytes:
    try:
        with open_regular(path) as file:
            return os.pread(file.fileno(), most_bytes, offset)
    except (FileNotFoundError, RunDirectoryError):  # not yet, or moved among the finished runs
        return b""
