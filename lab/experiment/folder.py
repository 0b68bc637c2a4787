"""The folder of an experiment: its settings, its journal, its attempts, its finished runs.

lab.json          the settings, whole, as they were when it began
journal.jsonl     what happened
commands.jsonl    every command that changed something, as it was carried out
tuning/           what tuning has to put back, one file a backend
attempts/NAME/    a run that is being done, or was cut off
runs/NAME/        a finished run: it is put here by one rename, whole
report.html
"""

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from analysis.errors import OutputError, SettingsError
from analysis.recording.files import replace_json, unwritable
from lab.experiment.files import sync_folder
from lab.experiment.journal import Journal
from lab.experiment.settings import Lab

_SETTINGS = "lab.json"


class Folder:
    """An experiment's folder that exists."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = Journal(path / "journal.jsonl")
        self.commands = path / "commands.jsonl"

    @property
    def runs(self) -> list[Path]:
        """The finished runs, in the order of the experiment."""
        return sorted(path for path in (self.path / "runs").iterdir() if path.is_dir())

    def finished(self, name: str) -> bool:
        """Return whether the run of this name is finished."""
        return (self.path / "runs" / name / "run.json").is_file()

    def tuning(self, backend: str) -> Path:
        """Return where the tuning of `backend` keeps what it has to put back."""
        return self.path / "tuning" / f"{backend}.json"

    def attempt(self, name: str) -> Path:
        """Return a new, empty folder for the run of this name. Raises OutputError."""
        path = self.path / "attempts" / name
        number = 1
        while path.exists():
            number += 1
            path = path.with_name(f"{name}.{number}")
        try:
            path.mkdir(parents=True)
        except OSError as error:
            raise unwritable(path, error) from None
        return path

    def finish(self, attempt: Path, directory: Path, name: str) -> Path:
        """Put `directory` of `attempt` among the finished runs, down to the disk. Raises OutputError."""
        there = self.path / "runs" / name
        try:
            for path in directory.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    _sync(path)
            sync_folder(directory)
            directory.rename(there)
            sync_folder(there.parent)
            shutil.rmtree(attempt, ignore_errors=True)
        except OSError as error:
            raise unwritable(there, error) from None
        return there

    def settings(self) -> Lab:
        """Return the settings that it was begun with. Raises SettingsError."""
        path = self.path / _SETTINGS
        try:
            return Lab.model_validate_json(path.read_bytes())
        except OSError as error:
            raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
        except ValidationError as error:
            raise SettingsError(
                f"{path}: is not what this version wrote: {error.errors()[0]['msg']}"
            ) from None


def make_folder(lab: Lab) -> Folder:
    """Make the folder of a new experiment. Raises OutputError."""
    path = lab.out / f"{lab.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    try:
        for name in ("attempts", "runs", "tuning"):
            (path / name).mkdir(parents=True, exist_ok=name != "attempts")
    except FileExistsError:
        raise OutputError(f"{path}: is there already: begin again in a second") from None
    except OSError as error:
        raise unwritable(path, error) from None
    replace_json(path / _SETTINGS, lab.model_dump(mode="json"))
    _sync(path / _SETTINGS)
    sync_folder(path)
    return Folder(path)


def folders(out: Path, name: str | None = None) -> Iterator[Folder]:
    """Yield the experiments in `out`, the last one first; of one name, if given."""
    found = []
    for path in out.glob("*/lab.json"):
        try:
            called = json.loads(path.read_bytes()).get("name")
        except (OSError, ValueError, AttributeError):
            continue
        if path.parent.name.startswith(f"{called}-") and name in (None, called):
            found.append(path.parent)
    for path in sorted(found, key=lambda path: path.name.rpartition("-")[2], reverse=True):
        yield Folder(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
