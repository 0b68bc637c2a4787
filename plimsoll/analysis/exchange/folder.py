"""A run directory that appears whole or not at all."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from plimsoll.common.errors import OutputError
from plimsoll.rundir.names import FACTS_FILE


@contextmanager
def new_run_directory(directory: Path, shards: Sequence[Path]) -> Iterator[Path]:
    """Yield a hidden folder to write into, which becomes `directory` at the end of the block.

    A folder that exists is taken only if it holds some of `shards` and is no run itself, as what Locust's
    master makes; the files then move into it, `run.json` last. When the block fails, nothing is left. Raises
    OutputError.
    """
    inside = _holds(directory, shards)
    if (directory.exists() or directory.is_symlink()) and not inside:
        raise OutputError(f"{directory}: exists already; give another place with --out")
    hidden = directory / ".merged.new" if inside else directory.with_name(f".{directory.name}.merged.new")
    hidden = hidden.with_name(f"{hidden.name}.{os.getpid()}")
    try:
        try:
            hidden.mkdir(parents=True)
            yield hidden
            if inside:
                for path in sorted(hidden.iterdir(), key=lambda one: (one.name == FACTS_FILE, one.name)):
                    path.replace(directory / path.name)
                hidden.rmdir()
            else:
                hidden.rename(directory)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
    except OSError as error:
        why = error.strerror or error
        raise OutputError(f"{directory}: cannot be written: {why}; choose another place with --out") from None


def _holds(directory: Path, shards: Sequence[Path]) -> bool:
    if not directory.is_dir() or (directory / FACTS_FILE).exists():
        return False
    inside = directory.resolve()
    return any(inside in shard.resolve().parents for shard in shards)
