"""Files replaced whole, so that a reader never sees half of one."""

import json
from pathlib import Path

from analysis.errors import OutputError


def replace_json(path: Path, value: object) -> None:
    """Write `value` to `path` by way of a hidden file and a rename. Raises OutputError."""
    hidden = path.with_name(f".{path.name}.new")
    try:
        hidden.write_text(
            json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        hidden.replace(path)
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> OutputError:
    """Return what to tell the user about a file of the run directory that cannot be written."""
    return OutputError(f"{path}: cannot be written: {error.strerror}; choose another folder with --out")
