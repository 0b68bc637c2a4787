"""The journal of a tuning: what everything was, on disk before anything is changed."""

import json
import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from lab.tuning.errors import TuningError
from lab.tuning.values import Value


class Journal(BaseModel):
    """What to put back, in this order, on which machine. Every name in it is checked when it is read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    machine: str
    put_back: tuple[Value, ...]


def write_journal(path: Path, journal: Journal) -> None:
    """Write `journal` to `path`, down to the disk. Raises TuningError, also where there is one already."""
    hidden = path.with_name(f".{path.name}.new")
    try:
        descriptor = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(journal.model_dump(mode="json"), file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(hidden, path)  # unlike a rename, it replaces nothing
        hidden.unlink()
        _sync_folder(path.parent)
    except FileExistsError:
        hidden.unlink(missing_ok=True)
        raise TuningError(
            f"{path}: an earlier tuning was not put back; put it back before another is applied"
        ) from None
    except OSError as error:
        raise TuningError(f"{path}: cannot be written: {error.strerror}; nothing was tuned") from None


def read_journal(path: Path) -> Journal | None:
    """Return the journal at `path`, None where there is none. Raises TuningError if it is no journal."""
    try:
        return Journal.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TuningError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise TuningError(
            f"{path}: is no journal of a tuning ({where}: {first['msg']}); nothing was put back: compare the "
            "host by hand, then remove the file"
        ) from None


def remove_journal(path: Path) -> None:
    """Remove `path`: everything in it was put back. Raises TuningError."""
    try:
        path.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise TuningError(f"{path}: cannot be removed: {error.strerror}; remove it by hand") from None


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
