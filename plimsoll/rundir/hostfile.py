"""`host.csv`: what the observers counted, once a second."""

import csv
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plimsoll.common.errors import DamagedFileError
from plimsoll.common.files import read_regular_lines
from plimsoll.common.hostile import LARGEST_FIGURE

_LARGEST_BYTES, _LONGEST_BYTES = 1 << 30, 1 << 20  # of the file, and of a line
_MOST_SAMPLES = 1 << 25  # of all columns that are wanted: 256 MiB

Column = NDArray[np.float64]
_NAN = float("nan")
_NO_NUMBER = re.compile(  # NaN and inf too, and what is beyond all measure
    r"[^,\r\n]*[^0-9eE+\-.,\r\n][^,\r\n]*|[^,\r\n]*[eE]\+?0*(?:[3-9]\d|[1-9]\d{2,})(?=[,\r\n]|$)"
)


@dataclass(frozen=True)
class HostSamples:
    """What `host.csv` holds: the names of all columns, and those that were wanted, by name.

    Each column has shape (samples,), NaN where a sample is missing; `t_ns` is the first. `no_numbers`
    counts fields without a number, `damaged` lines with more or fewer fields than the first, which are left
    out.
    """

    names: list[str] = field(default_factory=list)
    columns: dict[str, Column] = field(default_factory=dict)
    no_numbers: int = 0
    damaged: int = 0


def host_lines(path: Path) -> Iterator[str]:
    """Yield the lines of `path` with their line feeds, the head first; none if there is no such file.

    A last line that was cut off is left out. Raises RunDirectoryError if the observers did not write it.
    """
    try:
        for number, data in enumerate(read_regular_lines(path, _LARGEST_BYTES, _LONGEST_BYTES)):
            if len(data) == _LONGEST_BYTES:
                raise DamagedFileError(f"{path}: has a line of more than {_LONGEST_BYTES >> 20} MiB")
            if not data.endswith(b"\n"):
                return
            line = data.decode("utf-8", errors="replace")
            if number == 0 and _fields(line)[:1] != ["t_ns"]:
                raise DamagedFileError(f"{path}: its first column is not t_ns")
            yield line
    except FileNotFoundError:
        return


def read_samples(path: Path, wanted: Callable[[str], bool] = lambda _: True) -> HostSamples:
    """Read `path` once.

    Of all columns but `t_ns` only those whose names are `wanted` are kept. Empty if there is no such file. A
    last line that was cut off is left out. Raises RunDirectoryError if the observers did not write it.
    """
    lines = host_lines(path)
    names = _fields(next(lines, ""))
    columns = {index: array("d") for index, name in enumerate(names) if index == 0 or wanted(name)}
    most = _MOST_SAMPLES // max(len(columns), 1)
    no_numbers = damaged = 0
    for line in lines:
        row = _fields(line)
        if len(row) != len(names):
            damaged += bool(line.strip())
            continue
        no_numbers += len(_NO_NUMBER.findall(line))
        for index, column in columns.items():
            column.append(_number(row[index]))
        if len(columns[0]) > most:
            raise DamagedFileError(
                f"{path}: holds more than {most:,} samples, and no run lasts so long: put back the file that "
                "the run wrote, or remove it"
            )
    found = {names[index]: _figures(column) for index, column in columns.items()}
    return HostSamples(names, found, no_numbers, damaged)


def _fields(line: str) -> list[str]:
    """Return the fields of a line, which is a row of its own, whatever quotes stand in it."""
    if '"' not in line:
        return line.rstrip("\r\n").split(",") if line.strip("\r\n") else []
    try:
        return next(csv.reader([line.rstrip("\r\n")]), [])
    except csv.Error:  # a field of more than 128 KiB
        return []


def _number(field: str) -> float:
    try:
        return float(field) if field else _NAN
    except ValueError:
        return _NAN


def _figures(column: "array[float]") -> Column:
    """Return the numbers, NaN for those that `is_figure` would refuse: asked one by one, it takes longest."""
    values = np.array(column, dtype=np.float64)
    size = np.abs(values)
    return np.where((size == 0) | ((size >= 1 / LARGEST_FIGURE) & (size <= LARGEST_FIGURE)), values, _NAN)
