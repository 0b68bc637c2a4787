"""Brings a `host.csv` into the run directory of a run whose start was known only once it had begun."""

import re
from pathlib import Path

from plimsoll.common.files import replace_text, write_error
from plimsoll.rundir.names import HOST_FILE

_NUMBER = re.compile(r"-?[0-9]{1,20}")


def shifted(text: str, later_ns: int) -> str:
    """Return `text` of a host.csv with `t_ns` counted from an instant `later_ns` later. Pure.

    Rows of before the run have a negative `t_ns`. A last line that was cut off is left out.
    """
    header, *rows = text.rpartition("\n")[0].split("\n")
    moved = [header]
    for row in rows:
        t_ns, comma, rest = row.partition(",")
        if _NUMBER.fullmatch(t_ns):
            moved.append(f"{int(t_ns) - later_ns}{comma}{rest}")
    return "\n".join(moved) + "\n"


def place(source: Path, directory: Path, later_ns: int) -> Path:
    """Write `source`, shifted, as `host.csv` of the run directory `directory`, by rename; `source` stays.

    `later_ns` is how much later the run began than the instant that `source` counts from, such as the
    difference of the wall clock then and `started_at` of run.json. Raises OutputError.
    """
    path = directory / HOST_FILE
    try:
        replace_text(path, shifted(source.read_text(encoding="utf-8"), later_ns))
    except OSError as error:
        raise write_error(path, error) from None
    return path
