"""`requests.npy`: one record a request, read in blocks so that a run of any length fits in memory."""

import ast
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from plimsoll.common.errors import DamagedFileError, NoRequestsError, RunDirectoryError
from plimsoll.common.files import open_regular

HEADER_BYTES = 512
RECORD = np.dtype(
    [
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
)
REUSED, HTTP2, TLS, WARMUP, QUEUED, MEMBER, SENT_TO_LOGIN, CLIENT_QUEUED = 1, 2, 4, 8, 16, 32, 64, 128
TIMEOUT = 4  # of `error`: no whole response within the time-out
BLOCK_RECORDS = 1 << 18  # 17 MiB: small beside the figures' arrays, large beside the cost of a call
_LATEST_NS = 1 << 61  # 73 years
_LARGEST_BODY_BYTES = 1 << 40  # the sum of eight million is a number of 64 bits
_FIGURES_BYTES = 20  # of memory that a run's figures take for each request

Records = NDArray[np.void]


@dataclass(frozen=True)
class RequestFile:
    """The records of one run. `count` comes from the file's length; a cut-off last record is not counted."""

    path: Path
    count: int

    @classmethod
    def open(cls, path: Path) -> "RequestFile":
        """Check the header of `path` against docs/run-format.md and count its records.

        Raises RunDirectoryError if it is absent or has more records than this machine has memory for,
        DamagedFileError if the header is another's, NoRequestsError if it holds not one whole record.
        """
        with _opened(path) as file:
            header, size = file.read(HEADER_BYTES), os.fstat(file.fileno()).st_size
        if size < HEADER_BYTES + RECORD.itemsize:
            raise NoRequestsError(f"{path}: holds no request")
        _check_header(path, header)
        count = (size - HEADER_BYTES) // RECORD.itemsize
        needed_bytes, memory_bytes = count * _FIGURES_BYTES, _memory_bytes()
        if needed_bytes > memory_bytes:
            raise RunDirectoryError(
                f"{path}: holds {count:,} requests, whose figures take {needed_bytes >> 30:,} GiB of memory, "
                f"and this machine has {memory_bytes >> 30:,} GiB: use a larger one, or leave the run out"
            )
        return cls(path, count)

    def mapped(self) -> Records:
        """Return all records, memory-mapped and read-only, shape (count,)."""
        with _opened(self.path) as file:
            return np.memmap(file, dtype=RECORD, mode="r", offset=HEADER_BYTES, shape=(self.count,))

    def blocks(self, block_records: int = BLOCK_RECORDS) -> Iterator[Records]:
        """Yield the records in the order in which they were written, in arrays of at most `block_records`.

        Every array is a view of one buffer: copy what must outlive the iteration. Read rather than mapped,
        because pages of a map count as resident memory, and because a map of a file that shrinks kills the
        process. Raises DamagedFileError, also where a record holds what no program of ours writes.
        """
        buffer = np.empty(min(block_records, self.count), dtype=RECORD)
        remaining = self.count
        with _opened(self.path) as file:
            file.seek(HEADER_BYTES)
            while remaining:
                block = buffer[: min(len(buffer), remaining)]
                _fill(self.path, file, block.view(np.uint8).data)
                remaining -= len(block)
                _check_records(self.path, block)
                yield block


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with open_regular(path) as file:
            yield file
    except FileNotFoundError:
        raise RunDirectoryError(
            f"{path.parent}: requests.npy is missing, so this is no run directory"
        ) from None


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


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


def _check_header(path: Path, header: bytes) -> None:
    if header[:6] != b"\x93NUMPY":
        raise DamagedFileError(f"{path}: is no NumPy file")
    length = HEADER_BYTES - 10
    if header[6:8] != b"\x01\x00" or int.from_bytes(header[8:10], "little") != length:
        raise DamagedFileError(f"{path}: its header is not the 512 bytes of version 1.0 that Plimsoll writes")
    try:
        facts = ast.literal_eval(header[10:].decode("latin-1").strip())
        dtype = np.dtype([tuple(field) for field in facts["descr"]])
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise DamagedFileError(f"{path}: its header cannot be understood") from None
    if dtype != RECORD:
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
