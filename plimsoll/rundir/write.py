"""Writes one run directory, so that a kill at any instant loses next to nothing."""

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from plimsoll.common.errors import OutputError
from plimsoll.common.files import replace_json, write_error
from plimsoll.common.hostile import printable, redact
from plimsoll.rundir.check import Silence
from plimsoll.rundir.events import Measures
from plimsoll.rundir.facts import OPTIONAL_KEYS, RUN_FORMAT, GeneratorHost, RunFacts
from plimsoll.rundir.names import (
    ERRORS_FILE,
    EVENTS_FILE,
    FACTS_FILE,
    REQUESTS_FILE,
    ROUTES_FILE,
    SUMMARY_FILE,
)
from plimsoll.rundir.records import ERROR_KINDS, Records, Request, RequestWriter

Status = Literal["complete", "interrupted", "failed"]
_LONGEST_DETAIL = 300
_MOST_ROUTES = 64
_OTHER_ROUTE = "other"


@dataclass
class UnsentCounts:
    """Requests that were not sent and have no record: skipped ones by reason, and the rest."""

    skipped: dict[str, int] = field(default_factory=dict)
    unsent: int = 0


# Returns what `summary.json` of a run directory says; it is computed from the records above this package.
_Summarise = Callable[[Path, Measures, UnsentCounts], dict[str, object]]


class RunWriter:
    """Takes requests, events and measures of one run; `finish` ends it.

    As a context manager it ends a run that was not finished: `interrupted` on Ctrl-C, else `failed` with the
    exception as its reason. When the disk is full, the first method to find out raises OutputError, the
    others then do nothing, and the run ends as `failed`.
    """

    def __init__(
        self, directory: Path, facts: RunFacts, summarise: _Summarise, *, at_once: bool = True
    ) -> None:
        """Write the first `run.json` into `directory`, which is created if missing.

        The run starts now: `t_ns` and `due_ns` count from here, unless `facts.started_at` is given (an import
        of a run that was). `summarise` computes `summary.json` at the
        end. `at_once` hands each record to the system at once, else once a second.
        """
        self.directory = directory
        self._started_ns = time.monotonic_ns()
        self._summarise = summarise
        self.facts = facts.model_copy(
            update={
                "format": RUN_FORMAT,
                "status": "running",
                "started_at": facts.started_at or datetime.now(UTC),
                "host": this_host() if facts.host.hostname is None else facts.host,
            }
        )
        self.measures, self.unsent, self._routes = Measures(), UnsentCounts(), _RouteNames()
        self.failed_steps, self._silence = 0, Silence()
        self._finished = False
        self._broken: str | None = None  # why the run cannot be written to its end
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._events = (directory / EVENTS_FILE).open("ab", buffering=0)
        except OSError as error:
            raise write_error(directory, error) from None
        self._reserve = _Reserve(directory)
        self._write_facts()
        replace_json(directory / ROUTES_FILE, [])
        replace_json(directory / ERRORS_FILE, list(ERROR_KINDS))
        self._records = RequestWriter(directory / REQUESTS_FILE, at_once)
        self.event("run", phase="start", t_ns=0)

    def now_ns(self) -> int:
        """Return nanoseconds since the start of the run, by the monotonic clock."""
        return time.monotonic_ns() - self._started_ns

    def since_start_ns(self, monotonic_ns: int) -> int:
        """Return an instant of `time.monotonic_ns` as nanoseconds since the start of the run."""
        return monotonic_ns - self._started_ns

    def request(self, request: Request) -> None:
        """Append one record; `routes.json` grows when its route is new."""
        self._silence.take(request)
        with self._try_to_write() as able:
            if able:
                self._records.add(request, self.route_number(request.route))

    def records(self, records: Records) -> None:
        """Append many records of either format, shape (n,); routes and errors have this run's numbers."""
        self._silence.take_all(records)
        with self._try_to_write() as able:
            if able:
                self._records.extend(records)

    @property
    def target_died(self) -> str | None:
        """Why the target counts as dead if the run ends now; None if it is alive."""
        return self._silence.verdict()

    def route_number(self, name: str) -> int:
        """Return the number of route `name`; `routes.json` grows when it is new."""
        route, new = self._routes.number(name)
        if new:
            replace_json(self.directory / ROUTES_FILE, self._routes.names)
        return route

    def event(
        self, event: str, *, phase: str | None = None, t_ns: int | None = None, **further: object
    ) -> None:
        """Append one line to `events.jsonl`; `t_ns` since the start of the run, default now."""
        line: dict[str, object] = {"t_ns": self.now_ns() if t_ns is None else t_ns, "event": event}
        if phase is not None:
            line["phase"] = phase
        text = json.dumps(line | further, allow_nan=False, ensure_ascii=False)
        with self._try_to_write() as able:
            if able:
                self._write_event(text.encode("utf-8", errors="replace") + b"\n")

    def _write_event(self, line: bytes) -> None:
        whole_bytes = os.fstat(self._events.fileno()).st_size
        try:
            while line:
                line = line[self._events.write(line) :]
        except OSError as error:
            self._events.truncate(whole_bytes)  # half a line would be a broken one
            raise write_error(self.directory / EVENTS_FILE, error) from None

    @contextmanager
    def _try_to_write(self) -> Iterator[bool]:
        """Yield whether anything can still be written; the first failure ends that."""
        try:
            yield self._broken is None
        except OutputError as error:
            self._broken = str(error)
            raise

    def failed_step(self, step: str, kind: str, detail: str, *, iteration: int = 0, client: int = 0) -> None:
        """Append the event of a step that failed; secrets are taken out of `detail`, and it is cut."""
        self.failed_steps += 1
        shown = printable(redact(detail), _LONGEST_DETAIL)
        self.event("error", step=step, kind=kind, detail=shown, iteration=iteration, client=client)

    def measure(
        self, name: str, value: float, unit: str, *, iteration: int | None = None, t_ns: int | None = None
    ) -> None:
        """Append a figure that is not of a single request, as an event and for `summary.json`."""
        self.measures.add(name, value, unit)
        further: dict[str, Any] = {} if iteration is None else {"iteration": iteration}
        self.event("measure", t_ns=t_ns, name=name, value=value, unit=unit, **further)

    def skip(self, reason: str, count: int = 1) -> None:
        """Count requests that were not sent on purpose."""
        self.unsent.skipped[reason] = self.unsent.skipped.get(reason, 0) + count

    def update(self, **facts: object) -> None:
        """Change facts of `run.json`, e.g. `generator_limited`; written at once."""
        self.facts = self.facts.model_copy(update=facts)
        self._write_facts()

    def flush(self) -> None:
        """Flush everything to the operating system."""
        self._records.flush()

    def finish(self, status: Status, reason: str | None = None, *, stop_ns: int | None = None) -> None:
        """End the run: `summary.json`, then `run.json`. A second call changes nothing.

        `stop_ns` since the start of the run is when it stopped, default now.
        """
        if self._finished:
            return
        self._finished = True
        broken, self._broken = self._broken, None
        self._reserve.release()
        try:
            self.event("run", phase="stop", t_ns=stop_ns)
            self._records.close()
        except OutputError as error:
            broken = broken or str(error)
        self._events.close()
        if broken:
            status, reason = "failed", broken
        summary = self._summarise(self.directory, self.measures, self.unsent)
        records_sha256 = self._records.records_sha256
        replace_json(self.directory / SUMMARY_FILE, summary | {"records_sha256": records_sha256})
        why = None if reason is None else printable(redact(reason), _LONGEST_DETAIL)
        self.update(status=status, reason=why, ended_at=self.facts.ended_at or datetime.now(UTC))

    def abandon(self) -> None:
        """Close the files and leave the run as it is, unfinished: for whoever is about to remove it."""
        self._finished = True
        self._reserve.release()
        self._records.close()
        self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish("failed", "the program ended before the run did")
        elif issubclass(kind, KeyboardInterrupt):
            self.finish("interrupted", "interrupted from the keyboard")
        else:
            self.finish("failed", str(error) or kind.__name__)

    def _write_facts(self) -> None:
        facts = self.facts.model_dump(mode="json")
        kept = {key: value for key, value in facts.items() if value is not None or key not in OPTIONAL_KEYS}
        replace_json(self.directory / FACTS_FILE, kept)


class _RouteNames:
    """The names of `routes.json`, numbered as they appear; after 64, every further one is `other`."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> tuple[int, bool]:
        """Return the number of `name`, and whether it is new."""
        if name in self._numbers:
            return self._numbers[name], False
        if len(self.names) >= _MOST_ROUTES:
            name = _OTHER_ROUTE
            if name in self._numbers:
                return self._numbers[name], False
        self._numbers[name] = len(self.names)
        self.names.append(name)
        return self._numbers[name], True


_RESERVE = ".reserve"
_RESERVE_BYTES = 64 << 10  # of the last run.json and of summary.json


class _Reserve:
    """A file in the run directory that reserves disk space until `release`. See docs/run-format.md."""

    def __init__(self, directory: Path) -> None:
        """Reserve the space. Raises OutputError if the disk is full."""
        self._path = directory / _RESERVE
        try:
            self._path.write_bytes(
                os.urandom(_RESERVE_BYTES)
            )  # zeros take no room where the file system compresses
        except OSError as error:
            self.release()
            raise write_error(self._path, error) from None

    def release(self) -> None:
        """Release the space. May be called twice."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def this_host() -> GeneratorHost:
    """Read the facts of this machine; what cannot be read is None."""
    memory_kib = _field("/proc/meminfo", "MemTotal").partition(" ")[0]
    return GeneratorHost(
        hostname=platform.node() or None,
        kernel=platform.release() or None,
        cpu=_field("/proc/cpuinfo", "model name") or None,
        cpus=os.cpu_count(),
        memory_bytes=int(memory_kib) * 1024 if memory_kib.isdigit() else None,
    )


def _field(path: str, name: str) -> str:
    """Return the value of the first `name : value` line of `path`; empty if there is none."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
