"""One run directory, opened and checked: `analysis` and `lab` read runs through it."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from plimsoll.common.errors import (
    DamagedFileError,
    FormatVersionError,
    NoRequestsError,
    RunDirectoryError,
)
from plimsoll.common.hostile import printable
from plimsoll.common.problems import sentence_of
from plimsoll.rundir.events import Event, read_events
from plimsoll.rundir.models import FORMAT, RunFacts, Summary
from plimsoll.rundir.names import (
    ERRORS_FILE,
    EVENTS_FILE,
    FACTS_FILE,
    REQUESTS_FILE,
    ROUTES_FILE,
    SUMMARY_FILE,
)
from plimsoll.rundir.requestfile import RequestFile

# The writer flushes once a second, so a file that has been still for this long has no writer any more.
KILLED_AFTER_S = 10.0

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class RunDirectory:
    """One run. `summary` is None when the run was killed: it is written once, at the end."""

    path: Path
    facts: RunFacts
    requests: RequestFile
    routes: list[str]
    errors: list[str]
    events: list[Event]
    summary: Summary | None
    killed: bool

    @classmethod
    def open(cls, path: Path, now_s: float | None = None) -> "RunDirectory":
        """Open the run directory `path`.

        `now_s` (seconds since the epoch; default: the clock) decides whether a run that says `running` still
        does, or was killed. Raises a RunDirectoryError whose message is one sentence if there is nothing to
        read.
        """
        facts = read_facts(path)
        requests = _requests(path / REQUESTS_FILE, facts)
        idle_s = (time.time() if now_s is None else now_s) - requests.path.stat().st_mtime
        return cls(
            path=path,
            facts=facts,
            requests=requests,
            routes=_names(path / ROUTES_FILE),
            errors=_names(path / ERRORS_FILE),
            events=read_events(path / EVENTS_FILE),
            summary=_model(path / SUMMARY_FILE, Summary),
            killed=facts.status == "running" and idle_s > KILLED_AFTER_S,
        )

    @property
    def status(self) -> str:
        """`running`, `complete`, `interrupted` or `failed`; a killed run counts as interrupted."""
        return "interrupted" if self.killed else self.facts.status

    @property
    def name(self) -> str:
        """The name of the run: its backend where the lab set one, else its directory's name."""
        if not self.facts.backend:
            return self.path.resolve().name
        repeat = "" if self.facts.repeat is None else f" #{self.facts.repeat}"
        return f"{self.facts.backend}{repeat}"

    def route_name(self, index: int) -> str:
        """Return the name of number `index` of column `route`."""
        return self.routes[index] if index < len(self.routes) else f"route {index}"

    def error_name(self, index: int) -> str:
        """Return the name of number `index` of column `error`."""
        return self.errors[index] if index < len(self.errors) else f"error {index}"


def read_facts(path: Path) -> RunFacts:
    """Return `run.json` of run directory `path`. Raises RunDirectoryError, one sentence."""
    if not path.exists():
        raise RunDirectoryError(f"{path}: there is no such directory")
    if not path.is_dir():
        raise RunDirectoryError(f"{path}: is a file; give the run directory, the one that holds run.json")
    facts = _model(path / FACTS_FILE, RunFacts)
    if facts is None:
        meant = f"; {path / 'latest'} is one" if (path / "latest" / FACTS_FILE).exists() else ""
        raise RunDirectoryError(f"{path}: run.json is missing, so this is no run directory{meant}")
    return facts


def _requests(path: Path, facts: RunFacts) -> RequestFile:
    try:
        return RequestFile.open(path)
    except NoRequestsError as error:
        if facts.reason:
            raise NoRequestsError(f"{path}: holds no request: {printable(facts.reason)}") from None
        raise error from None


def _model(path: Path, model: type[_Model]) -> _Model | None:
    """Return the file as a checked model, or None if there is no such file."""
    value = read_json(path)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise DamagedFileError(f"{path}: holds no JSON object")
    version = value.get("format")
    if version != FORMAT or isinstance(version, bool):
        shown = printable(json.dumps(version), 40)
        raise FormatVersionError(
            f"{path}: is of format {shown}; this version of plimsoll reads format {FORMAT}: "
            "use the version that wrote it, or run again"
        )
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise DamagedFileError(f"{path}: {printable(sentence_of(error))}") from None


def _names(path: Path) -> list[str]:
    """Return a list of names; empty if the file is absent: the records are readable without."""
    value = read_json(path)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise DamagedFileError(f"{path}: holds no list of names")
    return value


def read_json(path: Path) -> Any:
    """Return what the JSON file `path` holds, or None if it is absent. Raises DamagedFileError."""
    try:
        return json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise DamagedFileError(f"{path}: is no JSON; it was cut off or written by something else") from None
