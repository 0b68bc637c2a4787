"""SHA-256 sums of files, and the list of them as sha256sum writes and reads it."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from plimsoll.common.errors import SettingsError

_BLOCK_BYTES = 1 << 20
_LINE = re.compile(rb"(\\?)([0-9a-f]{64}) [ *](.+)", re.DOTALL)
_ESCAPES = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}


@dataclass(frozen=True)
class Sum:
    """One file's sum; the name (hostile) is relative to the folder of the list."""

    name: str
    sha256: str


def sha256_of(path: Path, advance: Callable[[int], None] = lambda _: None) -> str:
    """Return the sum of a file, as hexadecimal digits. `advance` is called with bytes. Raises OSError."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            found.update(block)
            advance(len(block))
    return found.hexdigest()


def sums_text(sums: Iterable[Sum]) -> bytes:
    """Return the list. A name with a line break or backslash is escaped as sha256sum does it. Pure."""
    lines = []
    for each in sums:
        name = os.fsencode(each.name)
        escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
        lines.append((b"\\" if escaped != name else b"") + each.sha256.encode() + b"  " + escaped + b"\n")
    return b"".join(lines)


def parse_sums(data: bytes, name: str) -> list[Sum]:
    """Return what the list holds; `name` is the file's, for messages. Raises SettingsError. Pure."""
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1] if data.endswith(b"\n") else [b""], 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise SettingsError(f"{name}:{number}: is no line of sha256sum: the file was cut off or changed")
        escaped, digits, path = match.groups()
        if escaped:
            path = re.sub(rb"\\[\\nr]", lambda pair: _ESCAPES[pair[0]], path)
        if b"\0" in path:
            raise SettingsError(f"{name}:{number}: names no file: the file was changed")
        found.append(Sum(os.fsdecode(path), digits.decode()))
    return found
