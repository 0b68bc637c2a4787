"""`host.csv`: what the observers counted, once a second."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plimsoll.common.errors import DamagedFileError

Column = NDArray[np.float64]


def read_host(path: Path, wanted: Callable[[str], bool] = lambda _: True) -> dict[str, Column]:
    """Return the columns of `path` by name, each of shape (samples,), NaN where a sample is missing.

    Of all but `t_ns` only those whose names are `wanted`. Empty if there is no such file. A last line that
    was cut off is left out. Raises DamagedFileError if the first column is not `t_ns`.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return {}
    whole, _, _ = text.rpartition("\n")
    rows = list(csv.reader(whole.splitlines()))
    if not rows:
        return {}
    names = rows[0]
    if names[0] != "t_ns":
        raise DamagedFileError(f"{path}: its first column is not t_ns")
    samples = [row for row in rows[1:] if len(row) == len(names)]
    return {
        name: np.array([_number(row[index]) for row in samples], dtype=np.float64)
        for index, name in enumerate(names)
        if index == 0 or wanted(name)
    }


def _number(field: str) -> float:
    try:
        return float(field)
    except ValueError:
        return float("nan")
