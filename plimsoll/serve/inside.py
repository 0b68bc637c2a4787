"""Files of one folder and of no other: no link is followed on the way to them, and `..` leads nowhere."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class OutsideError(OSError):
    """It is not in the folder, or no regular file."""


@contextmanager
def opened_inside(root: Path, place: PurePosixPath) -> Iterator[BinaryIO]:
    """Open the regular file at `place` in the folder `root`, step by step. Raises OSError."""
    if place.is_absolute() or not place.parts or ".." in place.parts:
        raise OutsideError(f"{place}: is not in the folder")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in place.parts[:-1]:
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        descriptor = os.open(place.parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OutsideError(f"{place}: is no regular file")
        yield file


def lies_inside(root: Path, path: Path) -> bool:
    """Return whether `path`, which need not exist, leads into `root` once all links are followed."""
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False
