"""One run directory, opened and checked: `analysis` and `lab` read runs through it."""

import json
import platform
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from plimsoll.common.errors import DamagedFileError, FormatVersionError, NoRequestsError, RunDirectoryError
from plimsoll.common.files import check_regular, read_regular
from plimsoll.common.hostile import LARGEST_FIGURE, printable
from plimsoll.common.units import counted
from plimsoll.rundir.events import Event, read_events
from plimsoll.rundir.facts import RUN_FORMATS, RunFacts, Summary
from plimsoll.rundir.names import (
    ERRORS_FILE,
    EVENTS_FILE,
    FACTS_FILE,
    READ,
    REQUESTS_FILE,
    ROUTES_FILE,
    SUMMARY_FILE,
)
from plimsoll.rundir.records import RequestFile

# The writer flushes once a second, so a file that has been still for this long has no writer any more. It
# counts where nobody can know whether the process lives.
KILLED_AFTER_S = 10.0

_UNKNOWN = (
    "the run was killed before its first records were written out, so nothing is known of what it sent and "
    "what came back: run it again"
)

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class RunDirectory:
    """One run. `summary` is None when the run was killed: it is written once, at the end.

    `unreadable_events` is how many whole lines of `events.jsonl` are not events.
    """

    path: Path
    facts: RunFacts
    requests: RequestFile
    routes: list[str]
    errors: list[str]
    events: list[Event]
    summary: Summary | None
    killed: bool
    unreadable_events: int = 0

    @classmethod
    def open(cls, path: Path, now_s: float | None = None) -> "RunDirectory":
        """Open the run directory `path`.

        `now_s` (seconds since the epoch; default: the clock) decides whether a run that says `running` still
        does, or was killed. Raises a RunDirectoryError whose message is one sentence if there is nothing to
        read, or if one of the run's files is not a regular file: whatever is read later is one.
        """
        facts = read_facts(path)
        for name in READ:
            with suppress(FileNotFoundError):
                check_regular(path / name)
        killed = is_killed(path, facts, now_s)
        summary = read_summary(path)
        requests = _requests(path / REQUESTS_FILE, facts, summary, killed)
        events = read_events(path / EVENTS_FILE)
        return cls(
            path=path,
            facts=facts,
            requests=requests,
            routes=_names(path / ROUTES_FILE),
            errors=_names(path / ERRORS_FILE),
            events=events.events,
            summary=summary,
            killed=killed,
            unreadable_events=events.unreadable,
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
        raise RunDirectoryError(f"{path}: does not exist")
    if not path.is_dir():
        raise RunDirectoryError(f"{path}: is a file; give the run directory, the one that holds run.json")
    facts = _model(path / FACTS_FILE, RunFacts)
    if facts is None:
        meant = f"; {path / 'latest'} is one" if (path / "latest" / FACTS_FILE).exists() else ""
        raise RunDirectoryError(f"{path}: run.json is missing, so this is not a run directory{meant}")
    return facts


def read_summary(path: Path) -> Summary | None:
    """Return `summary.json` of run directory `path`, None where it is absent. Raises RunDirectoryError."""
    return _model(path / SUMMARY_FILE, Summary)


def is_killed(path: Path, facts: RunFacts, now_s: float | None = None) -> bool:
    """Return whether the run at `path`, whose run.json has `facts`, says `running` but has ended."""
    try:
        written_s = (path / REQUESTS_FILE).stat().st_mtime
    except OSError:  # it was never begun to be written: who opens it says so
        return False
    if facts.status != "running":
        return False
    alive = _is_alive(facts)
    idle_s = (time.time() if now_s is None else now_s) - written_s
    return idle_s > KILLED_AFTER_S if alive is None else not alive


def _is_alive(run: RunFacts) -> bool | None:
    """Return whether the process that writes `run` is alive, even if paused.

    None if it cannot be known here: the process is on another machine, in another PID namespace, or not
    named.
    """
    process = run.process
    try:
        if process is None or run.host.hostname != platform.node():
            return None
        if process.namespace != Path("/proc/self/ns/pid").stat().st_ino:
            return None
        if process.boot != Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip():
            return False
    except OSError:
        return None
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:  # /proc hides the processes of others
        return None
    fields = stat.rpartition(")")[2].split()  # from the third on
    return fields[0] not in "ZX" and int(fields[19]) == process.start


def _requests(path: Path, facts: RunFacts, summary: Summary | None, killed: bool) -> RequestFile:
    try:
        return RequestFile.open(path)
    except NoRequestsError:
        raise NoRequestsError(f"{path}: holds no request: {_explain_none(facts, summary, killed)}") from None


def _explain_none(facts: RunFacts, summary: Summary | None, killed: bool) -> str:
    if killed:
        return _UNKNOWN if facts.started_at else "the run was killed before it began to send: run it again"
    if facts.status == "running":
        return "the run has not written its first records out yet: wait for it"
    if facts.reason:
        return printable(facts.reason)
    if summary and summary.requests.sent:
        return f"{counted(summary.requests.sent, 'record')} that summary.json counts are gone: put them back"
    return "the run ended before its first response"


def _model(path: Path, model: type[_Model]) -> _Model | None:
    """Return the file as a checked model, or None if there is no such file."""
    value = read_json(path)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise DamagedFileError(f"{path}: holds no JSON object")
    version = value.get("format")
    if version not in RUN_FORMATS or isinstance(version, bool):
        shown = printable(json.dumps(version), 40)
        raise FormatVersionError(
            f"{path}: is of format {shown}; this version of plimsoll reads formats "
            f"{' and '.join(map(str, RUN_FORMATS))}: use the version that wrote it, or run again"
        )
    try:
        return model.model_validate(value)
    except ValidationError as error:
        from plimsoll.common.validation import sentence_of  # loads YAML, too

        raise DamagedFileError(f"{path}: {printable(sentence_of(error))}") from None


def _names(path: Path) -> list[str]:
    """Return a list of names; empty if the file is absent: the records are readable without."""
    value = read_json(path)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise DamagedFileError(f"{path}: holds no list of names")
    return value


# The JSON files of a run directory: regular, bounded, and every number in them a figure.
_LARGEST_BYTES = 16 << 20  # of a file; in memory that may be twenty times as much
_LARGEST_SUM = LARGEST_FIGURE * 1e15  # of more measures than any run takes
_LONGEST_DIGITS = 20  # 64 bits: counts of bytes, identities of pools


def read_json(path: Path) -> Any:
    """Return what the JSON file `path` holds, or None if it is absent. Raises RunDirectoryError."""
    try:
        text = read_regular(path, _LARGEST_BYTES).decode("utf-8", errors="replace")
        value = json.loads(text, parse_int=_read_whole_number)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        raise DamagedFileError(f"{path}: is not JSON; it was cut off or written by something else") from None
    if key := _no_figure(value):
        raise DamagedFileError(
            f"{path}: {printable(key)}: is not a usable number (NaN, infinite or far too large): put back "
            "the file that the run wrote, or leave the run out"
        )
    return value


def _read_whole_number(text: str) -> float:
    return int(text) if len(text) <= _LONGEST_DIGITS else float(text)


def _no_figure(value: Any) -> str | None:
    """Return the key of a number that cannot be computed with, or None. Pure."""
    left = [("", value)]
    while left:
        key, one = left.pop()
        if isinstance(one, float) and not abs(one) <= _LARGEST_SUM:  # neither is NaN
            return key or "the number"
        if isinstance(one, dict):
            left += [(f"{key}.{name}" if key else name, inner) for name, inner in one.items()]
        elif isinstance(one, list):
            left += [(f"{key}.{place}" if key else str(place), inner) for place, inner in enumerate(one)]
    return None
