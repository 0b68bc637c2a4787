"""Files replaced whole, so that a reader never sees half of one."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from plimsoll.common.errors import OutputError


@contextmanager
def replacing(
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
    is not replaced: FileExistsError. With `parents` its folder is made where it is missing. Raises OSError.
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
    with replacing(path, mode=mode, sync=sync, parents=parents) as file:
        file.write(text.encode())


def replace_json(path: Path, value: object, *, sync: bool = False) -> None:
    """Write `value` to `path` as JSON, whole or not at all. Raises OutputError."""
    text = json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    try:
        replace_text(path, text, sync=sync)
    except OSError as error:
        raise unwritable(path, error) from None


def sync_to_disk(path: Path) -> None:
    """Bring what a file holds, or the names in a folder, down to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unwritable(path: Path, error: OSError) -> OutputError:
    """Return the error that tells the user that a file of the run directory cannot be written."""
    return OutputError(f"{path}: cannot be written: {error.strerror}; choose another folder with --out")
