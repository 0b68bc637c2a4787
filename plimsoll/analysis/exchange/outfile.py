"""The place where an export is written: no directory, and no file of the run itself."""

from pathlib import Path

from plimsoll.common.errors import OutputError
from plimsoll.rundir.names import RECORDS


def check(out: Path, run: Path) -> None:
    """Return if `out` may be written. Raises OutputError for a directory and for files of the run itself."""
    if out.is_dir():
        raise OutputError(f"{out}: is a directory; give the name of a file with --out")
    if _is_record(out, run):
        raise OutputError(f"{out}: is part of the run; give another name with --out")


def _is_record(path: Path, run: Path) -> bool:
    """Return whether `path` is one of the run's own files, or lies in one of its folders."""
    try:
        inside = (path.parent.resolve() / path.name).relative_to(run.resolve())
    except ValueError:
        return False
    return inside.parts[0] in RECORDS
