"""Files: replaced whole, read only if they are regular, secret only if they are closed to others."""

import fcntl
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path
from typing import IO, Any, BinaryIO

from plimsoll.common.errors import DamagedFileError, OutputError, RunDirectoryError, SettingsError


@contextmanager
def open_replacement(
    path: Path,
    *,
    mode: int | None = None,
    sync: bool = False,
    only_new: bool = False,
    parents: bool = False,
) -> Iterator[IO[bytes]]:
    """Yield a hidden file beside `path` to write into; it becomes `path` at the end of the block.

    When the block fails, `path` stays as it was. `mode` are its permissions (default: as the umask says).
    With `sync` the file and its name are on the disk before this returns. With `only_new` a file that exists
    is not replaced: FileExistsError. With `parents` its folder is created if missing. Raises OSError.
    """
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        hidden.unlink(missing_ok=True)
        # O_EXCL follows no link that somebody else may have put there
        descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            yield file
            if sync:
                file.flush()
                os.fsync(descriptor)
        if only_new:
            os.link(hidden, path)
            hidden.unlink()
        else:
            hidden.replace(path)
        if sync:
            sync_to_disk(path.parent)
    except BaseException:
        with suppress(OSError):
            hidden.unlink()
        raise


def replace_text(
    path: Path, text: str, *, mode: int | None = None, sync: bool = False, parents: bool = False
) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all. Raises OSError."""
    with open_replacement(path, mode=mode, sync=sync, parents=parents) as file:
        file.write(text.encode())


def replace_json(path: Path, value: object, *, sync: bool = False) -> None:
    """Write `value` to `path` as JSON, whole or not at all. Raises OutputError."""
    text = json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    try:
        replace_text(path, text, sync=sync)
    except OSError as error:
        raise write_error(path, error) from None


def sync_to_disk(path: Path) -> None:
    """Flush a file's content, or a folder's names, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_error(path: Path, error: OSError) -> OutputError:
    """Return the error for a file of the run directory that cannot be written."""
    return OutputError(f"{path}: cannot be written: {error.strerror}; choose another folder with --out")


STDOUT = Path("-")


@contextmanager
def open_output(out: Path) -> Iterator[IO[bytes]]:
    """Open `out` to be written, by way of a hidden file beside it and a rename. Raises OutputError.

    Its folder is created if missing. `-` is standard output; a pipe or a device is written directly.
    """
    if out == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    whole = not out.exists() or out.is_file()
    try:
        with open_replacement(out, parents=True) if whole else out.open("wb") as file:
            yield file
    except OSError as error:
        raise OutputError(
            f"{out}: cannot be written: {error.strerror or error}; choose another place with --out"
        ) from None


# Files that come from strangers: a name may lead to a device without an end, or to a pipe that nobody fills.
_WITHOUT_WAITING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextmanager
def open_regular(path: Path, most_bytes: int | None = None) -> Iterator[BinaryIO]:
    """Open the regular file `path`, or the one that it links to, for reading.

    Raises FileNotFoundError if it is missing, DamagedFileError if it is anything else or larger than
    `most_bytes`, RunDirectoryError where it cannot be read, also inside the block.
    """
    try:
        check_regular(path, most_bytes)  # first: opening alone rewinds a tape, or wakes a watchdog
        with os.fdopen(os.open(path, _WITHOUT_WAITING), "rb") as file:
            _check(path, os.fstat(file.fileno()), most_bytes)
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Return all of the regular file `path`. Raises as `open_regular` does."""
    with open_regular(path, most_bytes) as file:
        return file.read(most_bytes)


def read_regular_lines(path: Path, most_bytes: int, longest_bytes: int) -> Iterator[bytes]:
    """Yield the lines of the regular file `path` with their line feeds; longer ones come in pieces.

    It ends where the file ended when it was opened, or at the end of that line: a run may still write it.
    Raises as `open_regular` does.
    """
    with open_regular(path, most_bytes) as file:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (line := file.readline(longest_bytes)):
            left -= len(line)
            yield line


def check_regular(path: Path, most_bytes: int | None = None) -> None:
    """Return if `path` is a regular file, or a link to one; it is not opened. Raises as `open_regular`."""
    try:
        _check(path, path.stat(), most_bytes)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None


def _check(path: Path, facts: os.stat_result, most_bytes: int | None) -> None:
    if not stat.S_ISREG(facts.st_mode):
        kind = next((name for is_it, name in _KINDS if is_it(facts.st_mode)), "something else")
        raise DamagedFileError(
            f"{path}: is {kind}, and only a regular file is read: put back the file that the run wrote, or "
            "leave the run out"
        )
    if most_bytes is not None and facts.st_size > most_bytes:
        raise DamagedFileError(
            f"{path}: is larger than {most_bytes >> 20} MiB, and no run writes so much there: put back the "
            "file that the run wrote, or leave the run out"
        )


def read_secret(option: str, path: Path) -> str:
    """Return the first line of `path`, which `option` named.

    Raises SettingsError if others may read it, or it cannot be read.
    """
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SettingsError(f"{option}: {path} is open to others; run: chmod 600 {path}")
        return path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except OSError as error:
        raise SettingsError(f"{option}: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{option}: {path} is not UTF-8 text") from None


def append_line(path: Path, value: dict[str, Any], sync: bool = True) -> None:
    """Append `value` to `path` as one line of JSON; with `sync` down to the disk. Raises OutputError."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        new = not path.exists()
        with path.open("a+b", buffering=0) as file:
            if not new and _ends_in_half_line(file):
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


def _ends_in_half_line(file: RawIOBase) -> bool:
    """Return whether a crash left half a line at the end."""
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"


def is_locked(path: Path) -> bool:
    """Return whether a process of this machine holds the lock of the file `path`; not where there is none."""
    try:
        with path.open("rb") as file:
            return not try_to_lock(file.fileno(), fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def try_to_lock(descriptor: int, kind: int) -> bool:
    """Lock an open file for as long as it is open, unless another process does; return whether it is now."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
