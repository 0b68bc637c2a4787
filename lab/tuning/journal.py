"""The journal of a tuning: what everything was, on disk before anything is changed."""

import json
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from lab.names.model import StrictModel
from lab.tuning.errors import TuningError
from lab.tuning.values import Value
from plimsoll.common.atomic import replacing, sync_to_disk
from plimsoll.common.problems import sentence_of


class TuningJournal(StrictModel):
    """The values to put back, in this order, and on which machine. Every name is checked when it is read."""

    format: Literal[1] = 1
    machine: str
    put_back: tuple[Value, ...]


def write_journal(path: Path, journal: TuningJournal) -> None:
    """Write `journal` to `path`, down to the disk. Raises TuningError, also where there is one already."""
    text = json.dumps(journal.model_dump(mode="json"), indent=1) + "\n"
    try:
        with replacing(path, mode=0o600, sync=True, only_new=True) as file:
            file.write(text.encode())
    except FileExistsError:
        raise TuningError(
            f"{path}: an earlier tuning was not put back; put it back before you apply another"
        ) from None
    except OSError as error:
        raise TuningError(f"{path}: cannot be written: {error.strerror}; nothing was tuned") from None


def read_journal(path: Path) -> TuningJournal | None:
    """Return the journal at `path`, None where there is none. Raises TuningError if it is no journal."""
    try:
        return TuningJournal.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TuningError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise TuningError(
            f"{path}: is not a tuning journal ({sentence_of(error)}); nothing was put back: compare the "
            "host by hand, then remove the file"
        ) from None


def remove_journal(path: Path) -> None:
    """Remove `path`: everything in it was put back. Raises TuningError."""
    try:
        path.unlink(missing_ok=True)
        sync_to_disk(path.parent)
    except OSError as error:
        raise TuningError(f"{path}: cannot be removed: {error.strerror}; remove it by hand") from None
