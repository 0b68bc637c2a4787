"""A folder in the temporary directory for as long as k6 runs, and those that killed runs left there."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "plimsoll-k6-"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder of one's own, and remove it at the end; one whose process was killed goes with the next.

    Each process holds a lock on its folder, which ends with it.
    """
    base = Path(tempfile.gettempdir())
    _remove_abandoned(base)
    # It gets its name once it is locked, so that nobody takes it for abandoned.
    nameless = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=base))
    folder = nameless.with_name(nameless.name[1:])
    lock = os.open(nameless, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        nameless.rename(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_abandoned(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another's, or locked
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.getuid():
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
