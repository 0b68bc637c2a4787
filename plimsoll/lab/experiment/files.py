"""Lines that survive a crash: each is on the disk before the next thing is done."""

import json
import os
from collections.abc import Iterable, Iterator
from io import RawIOBase
from pathlib import Path
from typing import Any

from plimsoll.common.files import sync_to_disk, write_error


def append_line(path: Path, value: dict[str, Any], sync: bool = True) -> None:
    """Append `value` to `path` as one line of JSON; with `sync` down to the disk. Raises OutputError."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        new = not path.exists()
        with path.open("a+b", buffering=0) as file:
            if not new and _cut_off(file):
                line = "\n" + line
            file.write(line.encode("utf-8", errors="replace"))
            if sync:
                os.fsync(file.fileno())
        if new and sync:
            sync_to_disk(path.parent)
    except OSError as error:
        raise write_error(path, error) from None


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of `path`; one that was cut off by a crash is left out. None there: no lines."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    return list(objects(lines))


def objects(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield what `lines` hold; one that was cut off is left out. Pure."""
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _cut_off(file: RawIOBase) -> bool:
    """Return whether a crash left half a line at the end."""
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"
