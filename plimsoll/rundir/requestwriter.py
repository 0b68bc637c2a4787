"""`requests.npy`, appended to."""

import os
import time
from hashlib import sha256
from pathlib import Path

import numpy as np

from plimsoll.common.files import write_error
from plimsoll.rundir.errorkinds import error_number
from plimsoll.rundir.request import Request
from plimsoll.rundir.requestfile import (
    BLOCK_RECORDS,
    HEADER_BYTES,
    HTTP2,
    RECORD,
    REUSED,
    TLS,
    WARMUP,
    Records,
)

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
        """Append many records, shape (n,), a block at a time."""
        for start in range(0, len(records), BLOCK_RECORDS):
            block = records[start : start + BLOCK_RECORDS]
            self._waiting += block.tobytes()
            self.count += len(block)
            self.flush()

    def flush(self) -> None:
        """Hand over what waits, then put the count into the header."""
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
    """Return the 68 bytes of one record."""
    flags = REUSED * request.reused + HTTP2 * request.http2 + TLS * request.tls + WARMUP * request.warmup
    times_us = (
        request.lag_us,
        request.dns_us,
        request.connect_us,
        request.tls_us,
        request.ttfb_us,
        request.total_us,
    )
    record = (
        request.due_ns,
        *(min(max(time_us, 0), _LARGEST_US) for time_us in times_us),
        request.bytes,
        request.logged_bytes,
        request.iteration,
        request.client & 0xFFFF_FFFF,
        route,
        request.status if 0 <= request.status <= 0xFFFF else 0,
        request.logged_status,
        error_number(request.error),
        flags,
    )
    return np.array(record, dtype=RECORD).tobytes()
