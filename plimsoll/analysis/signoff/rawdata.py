"""The raw data among the files of run directories, and a check that it stays as it is."""

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.analysis.signoff.sums import Sum, sha256_of
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.names import DERIVED


@dataclass(frozen=True)
class RawFile:
    """One file, and by what a change while it is read is known."""

    path: Path
    bytes: int
    changed_ns: int
    inode: int


def raw_files(directories: Iterable[Path]) -> list[RawFile]:
    """Return all files of run directories, by name; hidden files and reports are left out.

    Raises RunDirectoryError, also where one is no plain file, such as a link: it leads to what has no sum.
    """
    found: dict[Path, RawFile] = {}
    for directory in directories:
        for path in files_in(directory.resolve()):
            found[path] = _raw_file(path)
    return [found[path] for path in sorted(found)]


def files_in(directory: Path) -> list[Path]:
    """Return all raw data of a run directory, links among them. Raises RunDirectoryError."""
    found = []
    try:
        for folder, folders, names in os.walk(directory, onerror=_raise):
            folders[:] = [name for name in folders if not name.startswith(".")]
            links = [name for name in folders if (Path(folder) / name).is_symlink()]
            shown = [name for name in [*names, *links] if not name.startswith(".") and name not in DERIVED]
            found += [Path(folder) / name for name in shown]
    except OSError as error:
        raise RunDirectoryError(f"{directory}: cannot be read: {error.strerror}") from None
    return found


def total_bytes(files: Iterable[RawFile]) -> int:
    """Return how many bytes there are to be read."""
    return sum(file.bytes for file in files)


def name_beside(file: RawFile, beside: Path) -> str:
    """Return the name of a file (hostile) relative to the folder `beside`, which need not be there."""
    return os.path.relpath(file.path, beside)


def sums_of(files: Sequence[RawFile], beside: Path, progress: Callable[[int, int], None]) -> list[Sum]:
    """Return the sum of every file, its name relative to the folder `beside`.

    `progress` is called with the bytes that are read and all that there are.

    Raises RunDirectoryError where one cannot be read, or is not what it was when `files` was made.
    """
    found = []
    total, done = total_bytes(files), 0

    def advance(read: int) -> None:
        nonlocal done
        done += read
        progress(done, total)

    for file in files:
        try:
            digits = sha256_of(file.path, advance)
        except OSError as error:
            raise RunDirectoryError(f"{file.path}: cannot be read: {error.strerror}") from None
        if _raw_file(file.path) != file:
            raise RunDirectoryError(
                f"{file.path}: changed while it was read: wait until the run has ended, and sign off then"
            )
        found.append(Sum(name_beside(file, beside), digits))
    return found


def _raise(error: OSError) -> None:
    raise error


def _raw_file(path: Path) -> RawFile:
    try:
        facts = path.lstat()
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(facts.st_mode):
        raise RunDirectoryError(
            f"{path}: is no plain file, so it has no sum: take it out of the run directory"
        )
    return RawFile(path, facts.st_size, facts.st_mtime_ns, facts.st_ino)
