"""One process's share of a run: its iterations, what is recorded of them, and how it ends."""

import itertools
import os
import platform
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from plimsoll import __version__
from plimsoll.analysis.evidence.summary import summarise
from plimsoll.common.errors import OutputError
from plimsoll.common.hostile import redact_command
from plimsoll.rundir.events import ITERATION_FAILED, RUN_NAME
from plimsoll.rundir.facts import Load, Program, RunFacts, RunTarget, sha256_hex
from plimsoll.rundir.find import directory_name, new_directory
from plimsoll.rundir.records import Request
from plimsoll.rundir.write import RunWriter, Status
from plimsoll.scenarios.running.client import SentRequest, StepFailedError
from plimsoll.scenarios.running.settings import (
    BEGIN_VARIABLE,
    IteratedSettings,
    ScenarioSettings,
    shapes_no_load,
)

# After this many failed iterations in a row the run ends.
HOPELESS_IN_A_ROW = 10
# The step that takes away what a run made. It is not what is measured, and in no figure.
CLEAN_UP = "clean up"
_USERS_A_SHARE = 100_000
_LOOK_S = 0.02

# All names begin so: whoever looks for what runs left looks for this.
PREFIX = "plimsoll-run-"
# Lower case, digits and hyphens alone: a site keeps that in titles, addresses and file names alike.
NAME = re.compile(PREFIX + r"\d{8}t\d{6}z-[0-9a-f]{8}")

_SECRET = ("ssh_command",)  # it may hold a password


class Iterations:
    """The iterations 1 … total, each handed out once; this process has share `index` of `shares`.

    Shares are dealt like cards, so that together they are all iterations, each exactly once. Without a total
    there is no limit but the time. `share` is the number of this process's iterations, None without a total.
    """

    def __init__(self, total: int | None, index: int = 0, shares: int = 1) -> None:
        if not 0 <= index < shares:
            raise ValueError(f"share {index} of {shares}")
        numbers = None if total is None else range(index + 1, total + 1, shares)
        self._numbers = itertools.count(index + 1, shares) if numbers is None else iter(numbers)
        self.index = index
        self.share = None if numbers is None else len(numbers)
        self.begun = self.done = self.failed = self.failed_in_a_row = 0
        self.ended = self.time_is_up = False

    def next(self, *, may_begin: bool = True) -> int | None:
        """Return the number of the next iteration; None if no further one may begin."""
        if self.ended:
            return None
        if not may_begin:
            self.time_is_up = True
            return None
        number = next(self._numbers, None)
        if number is not None:
            self.begun += 1
        return number

    def count(self, well: bool) -> None:
        """Count one iteration that ended."""
        self.done += 1
        self.failed += not well
        self.failed_in_a_row = 0 if well else self.failed_in_a_row + 1

    def end(self) -> None:
        """Stop handing out tasks."""
        self.ended = True

    @property
    def is_all_done(self) -> bool:
        """True if all iterations were done; once the time is up, all that were begun."""
        return self.done == (self.begun if self.time_is_up else self.share)


class Session:
    """One run of a scenario in one process: records what its users do."""

    def __init__(
        self,
        scenario: str,
        settings: IteratedSettings,
        directory: Path,
        work: Iterations,
        fire: Callable[..., Any],
    ) -> None:
        """Start the run directory. `fire` is Locust's request event: its listeners see every request."""
        self.settings, self.directory, self.work = settings, directory, work
        self._fire = fire
        self._users = 0
        self.hopeless: str | None = None
        self._awaits_begin, self._first_begins = (
            threading.Lock(),
            threading.Lock(),
        )  # Locust's are of greenlets
        self._one_has_begun = False
        self.writer = RunWriter(
            directory, build_facts(scenario, settings, locust=version("locust")), summarise
        )

    @cached_property
    def run_name(self) -> str:
        """The name that all bears which this process makes on the site; its events say it from now on."""
        name = run_name(datetime.now(UTC), secrets.randbits(32))
        self.writer.event(RUN_NAME, name=name)
        return name

    @property
    def may_begin(self) -> bool:
        """True while an iteration may begin."""
        longest_s = self.settings.duration_s
        return longest_s is None or self.writer.now_ns() <= longest_s * 1e9

    @contextmanager
    def admit_first(self) -> Iterator[bool]:
        """Let one user through alone, then all others together; return False if it ended the work."""
        with self._first_begins:
            if not self._one_has_begun:
                yield not self.work.ended
                self._one_has_begun = True
                return
        yield not self.work.ended

    def wait_to_begin(self) -> None:
        """Wait until the first iteration may begin: until the file is there that `BEGIN_VARIABLE` names.

        The time being up, or the work at its end, ends the wait too.
        """
        path = os.environ.get(BEGIN_VARIABLE)
        with self._awaits_begin:  # one user looks, the others wait for it
            while path and self.may_begin and not self.work.ended and not Path(path).exists():
                time.sleep(_LOOK_S)

    def expected(self) -> int:
        """Return an estimate of the number of iterations; 0 if there is none."""
        work, longest_s = self.work, self.settings.duration_s
        if longest_s is None:
            return work.share or 0
        foreseen = round(work.done * max(longest_s * 1e9 / max(self.writer.now_ns(), 1), 1.0))
        return foreseen if work.share is None else min(foreseen, work.share)

    def new_client_number(self) -> int:
        """Return the number of a new user, from 1; each share has its own range."""
        self._users += 1
        return self.work.index * _USERS_A_SHARE + self._users

    def report_request(self, sent: SentRequest, iteration: int, client: int) -> None:
        """Take one request: fire Locust's event for it, whose listener `write_request` writes it down."""
        self._fire(
            request_type=sent.method,
            name=sent.step,
            response_time=sent.total_us / 1000,
            response_length=sent.bytes,
            exception=StepFailedError(sent.step, sent.error, sent.detail) if sent.error != "none" else None,
            context={"sent": sent, "iteration": iteration, "client": client},
            url=sent.url,
        )

    def write_request(self, response_time: float, context: dict[str, Any], **further: Any) -> None:
        """Write down one request from Locust's event, whose milliseconds are not rounded."""
        sent = context.get("sent")
        if not isinstance(sent, SentRequest):
            return
        try:
            self._write_down(sent, response_time, context["iteration"], context["client"])
        except OutputError as error:  # the disk is full: Locust would go on, and log it for each request
            self.give_up(str(error))

    def _write_down(self, sent: SentRequest, response_time: float, iteration: int, client: int) -> None:
        self.writer.request(
            Request(
                due_ns=max(self.writer.since_start_ns(sent.due_ns or sent.start_ns), 0),
                lag_us=(sent.start_ns - sent.due_ns) // 1000 if sent.due_ns else 0,
                total_us=round(response_time * 1000),
                route=sent.step,
                status=sent.status,
                bytes=sent.bytes,
                ttfb_us=sent.ttfb_us,
                connect_us=sent.connect_us,
                error=sent.error,
                iteration=iteration,
                client=client,
                reused=sent.connect_us == 0 and sent.status > 0,
                tls=sent.url.startswith("https:"),
                warmup=sent.step == CLEAN_UP,
            )
        )
        if sent.error != "none":
            self.writer.failed_step(sent.step, sent.error, sent.detail, iteration=iteration, client=client)
        if sent.server_cpu_ms is not None:
            self.writer.measure(f"server cpu: {sent.step}", sent.server_cpu_ms, "ms", iteration=iteration)

    def note_failed_iteration(self, number: int, since_ns: int) -> None:
        """Note that an iteration failed, `since_ns` after which there is no measure of it."""
        now_ns = self.writer.now_ns()
        took_ms = round((now_ns - since_ns) / 1e6, 3)
        try:
            self.writer.event(ITERATION_FAILED, iteration=number, took_ms=took_ms, t_ns=now_ns)
        except OutputError as error:
            self.give_up(str(error))

    def give_up(self, reason: str) -> None:
        """End the work: no later step can succeed."""
        self.hopeless = self.hopeless or reason
        self.work.end()

    def finish(self) -> bool:
        """Finish the run directory; return True if all was done without a failed step."""
        status, reason = session_status(
            self.work, self.hopeless, self.settings.duration_s, self.writer.target_died
        )
        self.writer.finish(status, reason)
        return self.went_well

    @property
    def went_well(self) -> bool:
        """True if the run is complete and has no failed step."""
        return self.writer.facts.status == "complete" and not self.writer.failed_steps


def session_status(
    work: Iterations, hopeless: str | None, duration_s: float | None, died: str | None
) -> tuple[Status, str | None]:
    """Return how a run ended, and why; `died` says that its target did. Pure."""
    if hopeless:
        return "failed", hopeless
    if not work.is_all_done:
        of = "" if work.share is None else f" of {work.share}"
        return "interrupted", f"{work.done}{of} iterations were done"
    if work.share != 0 and not work.begun:
        return "failed", f"no iteration began within {duration_s:g} s"
    if work.done and work.failed == work.done:
        return "failed", "no iteration succeeded; see events.jsonl"
    return ("failed", died) if died else ("complete", None)


def run_directory(results: Path, scenario: str) -> Path:
    """Make the run directory of a run that starts now."""
    return new_directory(results, directory_name(datetime.now(UTC), scenario))


def run_name(now: datetime, chance: int) -> str:
    """Return the name of a run that starts `now` (UTC), such as `plimsoll-run-20261123t201500z-0badcafe`.

    `chance` of 32 bits tells apart what several machines, or workers, start in one second.
    """
    return f"{PREFIX}{now:%Y%m%dt%H%M%Sz}-{chance & 0xFFFFFFFF:08x}"


def is_run_name(text: str) -> bool:
    """Return True if `text` is the name of a run."""
    return NAME.fullmatch(text) is not None


def build_facts(scenario: str, settings: Any, *, loop: str = "closed", **program: str) -> RunFacts:
    """Return the facts for `run.json` of a scenario that starts now; `settings` are ScenarioSettings."""
    users = getattr(settings, "users", 1)
    return RunFacts.model_validate(
        {
            "scenario": scenario,
            "backend": settings.backend,
            "repeat": settings.repeat,
            "target": RunTarget(url=settings.target, connect_to=settings.connect_to),
            "command": redact_command(["plimsoll", *sys.argv[1:]]),
            "seed": settings.seed,
            "loop": loop,
            "speed": f"users {users}",
            "program": Program.model_validate(
                {"name": "scenario", "version": __version__, "python": platform.python_version(), **program}
            ),
            "scenario_settings": settings.recorded_settings(),
            "load": load_of_scenario(scenario, settings, program),
        }
    )


def load_of_scenario(scenario: str, settings: ScenarioSettings, versions: dict[str, str]) -> Load:
    """Return the load of `scenario` with `settings`; `versions` are those of the programs that it runs on.

    Files count by what is in them: they are read.
    """
    left_out = shapes_no_load(type(settings))
    shaping = {name: getattr(settings, name) for name in type(settings).model_fields if name not in left_out}
    for name, value in shaping.items():
        if isinstance(value, Path):
            shaping[name] = _digest_files(value)
        elif name in _SECRET and value is not None:
            shaping[name] = sha256_hex(str(value).encode())
    if isinstance(settings, IteratedSettings):
        shaping["iterations"] = settings.planned
    programs = {f"{name}_version": version for name, version in versions.items()}
    return Load.of(
        {"program": "scenario", "program_version": __version__, "scenario": scenario} | programs | shaping
    )


def _digest_files(path: Path) -> str | None:
    """Return the digest of a file, or of the files in a folder; None where they cannot be read."""
    whole = sha256()
    try:
        files = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
        for file in files:
            with file.open("rb") as opened:
                while block := opened.read(1 << 20):
                    whole.update(block)
    except OSError:
        return None  # whoever uses the file says what is wrong with it
    return whole.hexdigest()
