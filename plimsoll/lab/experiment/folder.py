"""The folder of an experiment: its settings, its journal, its attempts, its finished runs.

lab.json          the settings, whole, as they were when it began
extended.json     the settings that it was extended with, and all of its runs
journal.jsonl     what happened
commands.jsonl    every command that changed something, as it was carried out
attempts/NAME/    a run that is being done, or was cut off
fileio.jsonl      what was measured of the volumes: finished cells of `plimsoll fileio`
precondition.jsonl  the rounds in which the volumes were overwritten until they were steady
runs/NAME/        a finished run, or several that ran together: it is put here by one rename, whole
report.html
"""

import contextlib
import fcntl
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from plimsoll.common.errors import OutputError, SettingsError
from plimsoll.common.files import (
    append_line,
    is_locked,
    read_lines,
    replace_json,
    sync_to_disk,
    try_to_lock,
    write_error,
)
from plimsoll.common.validation import sentence_of
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.lab.experiment.problems import read_lab
from plimsoll.lab.names import Label
from plimsoll.lab.tuning import JournalPlace
from plimsoll.rundir.names import (
    EXPERIMENT_FILE,
    FACTS_FILE,
    JOURNAL_FILE,
    ROUNDS_FILE,
    RUNS_FOLDER,
    TOGETHER_FILE,
)

OUTPUT_FILE = "output.txt"
EXTENSION_FILE = "extended.json"
DEFAULT_OUT = Path("results")
_TRIED_AGAIN = "tried again"
_LOOK_S = 2.0  # whoever looks whether it is held, holds it for an instant


class ExperimentFolder:
    """An experiment's folder that exists."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = Journal(path / JOURNAL_FILE)
        self.commands = path / "commands.jsonl"
        self.fileio = path / "fileio.jsonl"  # plimsoll report finds it by this name
        self.rounds = path / ROUNDS_FILE

    @property
    def runs(self) -> list[Path]:
        """The finished runs, in the order of the experiment."""
        return sorted(path for path in (self.path / RUNS_FOLDER).iterdir() if path.is_dir())

    def is_finished(self, name: str) -> bool:
        """Return whether the run of this name is finished."""
        return any((self.path / RUNS_FOLDER / name / file).is_file() for file in (FACTS_FILE, TOGETHER_FILE))

    def tuning(self, backend: str) -> JournalPlace:
        """Return the place of the tuning journal of `backend`, on its machine. Raises SettingsError."""
        name = self._name
        return JournalPlace(Label(name).of(backend), f"experiment {name} in {self.path.resolve()}")

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
            raise write_error(path, error) from None
        return path

    def output(self, run: str) -> Path:
        """Return where the output of the last try of `run` is; the commands, where it came to none."""
        attempt = self.journal.attempt(run)
        folder = self.path / "attempts" / (attempt or "")
        if attempt and any(folder.glob(f"*/{OUTPUT_FILE}")):  # one of each member
            return folder
        path = folder / OUTPUT_FILE
        return path if attempt and path.exists() else self.commands

    def finish(self, attempt: Path, directory: Path, name: str) -> Path:
        """Put `directory` of `attempt` among the finished runs, synced to the disk. Raises OutputError."""
        there = self.path / RUNS_FOLDER / name
        try:
            for path in directory.rglob("*"):
                if not path.is_symlink() and (path.is_file() or path.is_dir()):
                    sync_to_disk(path)
            sync_to_disk(directory)
            directory.rename(there)
            sync_to_disk(there.parent)
            shutil.rmtree(attempt, ignore_errors=True)
        except OSError as error:
            raise write_error(there, error) from None
        return there

    def extended_runs(self) -> list[PlannedRun] | None:
        """Return all runs of an experiment that was extended; None where the settings say it all.

        Raises SettingsError.
        """
        extension = self._extension()
        return extension.runs if extension else None

    def extend(self, settings: Lab, runs: Sequence[PlannedRun]) -> None:
        """Write what the experiment is extended to, atomically. Raises OutputError."""
        extension = _Extension(settings=settings, runs=list(runs))
        replace_json(self.path / EXTENSION_FILE, extension.model_dump(mode="json"), sync=True)

    def _extension(self) -> "_Extension | None":
        path = self.path / EXTENSION_FILE
        try:
            return _Extension.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
        except ValidationError as error:
            raise SettingsError(f"{path}: was not written by this version: {sentence_of(error)}") from None

    @cached_property
    def _name(self) -> str:
        return self.settings().name

    def settings(self) -> Lab:
        """Return the settings that it was begun with, or extended with last. Raises SettingsError."""
        path = self.path / EXPERIMENT_FILE
        if extension := self._extension():
            return extension.settings
        try:
            return Lab.model_validate_json(path.read_bytes())
        except OSError as error:
            raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
        except ValidationError as error:
            raise SettingsError(f"{path}: was not written by this version: {sentence_of(error)}") from None


class _Extension(BaseModel):
    """What an experiment was extended to."""

    settings: Lab
    runs: list[PlannedRun]


def make_folder(lab: Lab) -> ExperimentFolder:
    """Make the folder of a new experiment. Raises OutputError."""
    path = lab.out / f"{lab.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    try:
        for name in ("attempts", RUNS_FOLDER):
            (path / name).mkdir(parents=True, exist_ok=name != "attempts")
    except FileExistsError:
        raise OutputError(f"{path}: already exists: try again in a second") from None
    except OSError as error:
        raise write_error(path, error) from None
    replace_json(path / EXPERIMENT_FILE, lab.model_dump(mode="json"), sync=True)
    return ExperimentFolder(path)


class NoExperimentError(SettingsError):
    """The experiment does not exist yet."""


def find_experiment(file: Path | None) -> ExperimentFolder:
    """Return the experiment that `file` means: its folder, the last one of its name, or the last of all.

    Raises NoExperimentError, or SettingsError where lab.yml is wrong.
    """
    if file is not None and file.is_dir():
        return ExperimentFolder(file)
    if file is not None:
        lab = read_lab(file)
        found, where = list(folders(lab.out, lab.name)), f"called {lab.name} in {lab.out}"
    else:
        found, where = list(folders(DEFAULT_OUT)), f"in {DEFAULT_OUT}"
    if not found:
        raise NoExperimentError(f"no experiment {where}; start one: plimsoll run LAB.yml")
    return found[0]


def folders(out: Path, name: str | None = None) -> Iterator[ExperimentFolder]:
    """Yield the experiments in `out`, the last one first; of one name, if given."""
    found = []
    for path in out.glob(f"*/{EXPERIMENT_FILE}"):
        try:
            called = json.loads(path.read_bytes()).get("name")
        except (OSError, ValueError, AttributeError):
            continue
        if path.parent.name.startswith(f"{called}-") and name in (None, called):
            found.append(path.parent)
    for path in sorted(found, key=lambda path: path.name.rpartition("-")[2], reverse=True):
        yield ExperimentFolder(path)


class Journal:
    """`journal.jsonl` of an experiment's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str, *, sync: bool = True, **further: Any) -> None:
        """Append what happened, and with `sync` flush it to the disk. Raises OutputError."""
        line = {"at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}", "what": what, **further}
        append_line(self.path, line, sync)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold it while the experiment is carried out. Raises LabError where another process does."""
        new = not self.path.exists()
        with self.path.open("ab") as file:
            if new:
                sync_to_disk(self.path.parent)
            until_s = time.monotonic() + _LOOK_S
            while not try_to_lock(file.fileno(), fcntl.LOCK_EX):
                if time.monotonic() > until_s:
                    raise LabError(f"{self.path.parent}: another process is running this experiment")
                time.sleep(0.05)
            yield

    @property
    def is_locked(self) -> bool:
        """True while a process of this machine carries the experiment out."""
        return is_locked(self.path)

    def attempt(self, run: str) -> str | None:
        """Return the name of the folder of the last try of `run`, None where it came to none."""
        found = None
        for line in read_lines(self.path):
            if line.get("run") == run and line.get("what") in ("run begun", "attempt"):
                found = line.get("attempt")
        return found

    def tries(self, run: str) -> int:
        """Return how often `run` was begun."""
        return sum(
            line.get("what") == "run begun" and line.get("run") == run for line in read_lines(self.path)
        )

    @property
    def has_ended(self) -> bool:
        """True if the experiment came to its end and was not begun again since."""
        last = [line["what"] for line in read_lines(self.path) if line.get("what") in ("begun", "ended")]
        return bool(last) and last[-1] == "ended"

    def failures(self, backend: str, scenario: str | None = None) -> int:
        """Return how often in a row `scenario` failed on `backend`, up to now.

        Without `scenario`: how often the backend did by itself, so that no scenario came to begin.
        """
        count = 0
        for line in read_lines(self.path):
            what, of = line.get("what", ""), line.get("scenario")
            if what == _TRIED_AGAIN:
                count = 0
            if line.get("backend") != backend or what not in ("run failed", "run finished"):
                continue
            if what == "run failed" and of == scenario:
                count += 1
            elif scenario is None or (what == "run finished" and of == scenario):
                count = 0
        return count

    @property
    def set_aside(self) -> dict[str, str]:
        """What was set aside, and why: a backend, or a scenario on a backend, by `set_aside_label`."""
        found: dict[str, str] = {}
        for line in read_lines(self.path):
            if line.get("what") == _TRIED_AGAIN:
                found.clear()
            if line.get("what") == "set aside" and isinstance(line.get("backend"), str):
                found[set_aside_label(line["backend"], line.get("scenario"))] = str(line.get("why", ""))
        return found

    def try_again(self) -> None:
        """Note that nothing is set aside any more; failures count from here on. Raises OutputError."""
        self.note(_TRIED_AGAIN)


def set_aside_label(backend: str, scenario: str | None) -> str:
    """Return what is set aside, as people read it; without `scenario` it is the backend. Pure."""
    return f"{scenario} on {backend}" if scenario else backend
