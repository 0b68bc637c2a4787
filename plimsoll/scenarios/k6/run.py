"""k6 as a child: what its script is given, its samples taken into a run directory, and how it ends.

The samples come through a named pipe, so that no giant file is left, and the run directory is whole up to the
last second also when k6 is killed.
"""

import contextlib
import ctypes
import fcntl
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from pydantic import BaseModel

from plimsoll.analysis.evidence.summary import summarise
from plimsoll.analysis.exchange.importing import ImportWriter
from plimsoll.analysis.exchange.k6 import K6Assembler, find_k6_limit, write_samples
from plimsoll.analysis.exchange.k6_samples import K6Reader
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import redact
from plimsoll.rundir.events import RUN_NAME
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.find import point_latest
from plimsoll.rundir.names import K6_LOG_FILE, K6_SUMMARY_FILE
from plimsoll.rundir.write import RunWriter, Status
from plimsoll.scenarios.running.access import hide_secrets
from plimsoll.scenarios.running.settings import origin

Progress = Callable[[int, int], None]
Say = Callable[[str], None]

# https://github.com/grafana/k6/blob/master/errext/exitcodes/codes.go
THRESHOLDS_CROSSED, INTERRUPTED = 99, 105
SETTINGS = "PLIMSOLL_SETTINGS"  # k6/settings.js reads it
_MOST_MISSING = 0.01  # share of the requests
_LONGEST_LINE_BYTES = 1 << 20
_PREFIX = "plimsoll-k6-"

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Job:
    """One run of k6.

    `settings` go to the script as one JSON document. `iterations` estimates the total from the seconds passed
    and the iterations done. `secrets` must not appear in any file.
    """

    k6: Path
    script: Path
    settings: BaseModel
    timeout_s: float
    remedy: str
    ramping: bool
    iterations: Callable[[float, int], int]
    k6_variables: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    one_failure_a_day: bool = False  # an iteration ends with the first check that fails
    run_name: str | None = None  # that all bears which the script makes on the site


def run_k6(job: Job, directory: Path, facts: RunFacts, progress: Progress, say: Say) -> bool:
    """Run k6 to its end, with its samples in the run directory; return whether all went well.

    The first Ctrl-C lets k6 end in good order, the second ends it at once. Both keep what was recorded.
    """
    with scratch_folder() as scratch, RunWriter(directory, facts, summarise, at_once=False) as run:
        point_latest(directory)
        if job.run_name:
            run.event(RUN_NAME, name=job.run_name)
        pipe = scratch / "samples.json"
        os.mkfifo(pipe, 0o600)
        descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        process = subprocess.Popen(  # noqa: S603 built by `arguments`
            arguments(job, pipe, directory.resolve()),
            cwd=directory,
            env=environment(os.environ, job) | {"TMPDIR": str(scratch)},  # for the browser's profile
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that Ctrl-C reaches k6 once, through this process
            preexec_fn=_die_with_parent,  # so that the load ends if this process is killed
        )
        try:
            with _Interrupts(process, say) as interrupts:
                samples = _take_samples(job, run, process, descriptor, progress)
                code = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(descriptor)
            log = _censor(directory / K6_LOG_FILE, job.secrets)
        status, reason = run_status(
            k6_status(code, interrupts.count > 0, log), samples, run.target_died, job.one_failure_a_day
        )
        limited = find_k6_limit(run, samples.assembler, job.remedy)
        run.update(generator_limited=limited is not None, generator_limited_reason=limited)
        run.finish(status, reason)
    broken = samples.reader.broken_count or samples.deposit.failed_checks or too_many_missing(samples)
    return status == "complete" and code == 0 and not broken


def arguments(job: Job, pipe: Path, directory: Path) -> list[str]:
    """Return k6's command line; settings go by the environment, where no process list shows them. Pure."""
    return [
        str(job.k6),
        "run",
        "--quiet",
        "--no-color",
        "--address=",
        f"--log-output=file={K6_LOG_FILE},level=error",
        "--log-format=raw",
        f"--summary-export={directory / K6_SUMMARY_FILE}",
        f"--out=json={pipe}",
        str(job.script),
    ]


def environment(base: Mapping[str, str], job: Job) -> dict[str, str]:
    """Return k6's environment: `base` without variables of k6 and Plimsoll, and those of `job`. Pure."""
    kept = {name: value for name, value in base.items() if not name.startswith(("K6_", "PLIMSOLL_"))}
    settings = {SETTINGS: job.settings.model_dump_json()}
    return kept | {"K6_NO_USAGE_REPORT": "true"} | settings | dict(job.k6_variables)


def k6_hosts(target: str, connect_to: str) -> dict[str, str]:
    """Return k6's option `hosts`: the target's name and port lead to `connect_to`. Raises SettingsError."""
    _, name, port = origin(target)
    return {f"{name}:{port}": resolve_address(connect_to)}


def resolve_address(connect_to: str) -> str:
    """Return HOST:PORT with an address in place of the name. Raises SettingsError."""
    host, _, port = connect_to.rpartition(":")
    try:
        address = str(socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise SettingsError(f"--connect-to: {host} cannot be resolved: {error.strerror}") from None
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a private folder and remove it at the end; that of a killed process is removed by the next one.

    Each process holds a lock on its folder, which ends with it.
    """
    base = Path(tempfile.gettempdir())
    _remove_abandoned(base)
    # It gets its name once it is locked, so that nobody takes it for abandoned.
    nameless = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=base))
    folder = nameless.with_name(nameless.name[1:])
    lock = os.open(nameless, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        nameless.rename(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_abandoned(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another's, or locked
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.getuid():
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _take_samples(
    job: Job, run: RunWriter, process: "subprocess.Popen[bytes]", descriptor: int, progress: Progress
) -> "Samples":
    """Take all samples until k6 has ended."""
    started_s, started_at = time.monotonic(), run.facts.started_at
    if started_at is None:
        raise ValueError("a run that is recorded has started")
    epoch_ns = int(started_at.timestamp()) * 1_000_000_000 + started_at.microsecond * 1000
    assembler = K6Assembler(epoch_ns, job.timeout_s, job.ramping, strict=True)

    def ended() -> bool:
        done = assembler.iterations
        progress(done, max(job.iterations(time.monotonic() - started_s, done), done))
        return process.poll() is not None

    reader = K6Reader(_lines_from_pipe(descriptor, ended))
    deposit = ImportWriter(run)
    write_samples(reader, assembler, deposit)
    progress(assembler.iterations, assembler.iterations)
    return Samples(reader, assembler, deposit)


def _lines_from_pipe(descriptor: int, ended: Callable[[], bool]) -> Iterator[bytes]:
    """Yield the lines that come through a named pipe until nobody has it open and `ended()` is true."""
    rest = b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], 0.1)
        over = ended()
        chunk = b""
        if ready or over:
            with contextlib.suppress(BlockingIOError):
                chunk = os.read(descriptor, 1 << 16)
        if chunk:
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line + b"\n"
            if len(rest) > _LONGEST_LINE_BYTES:
                yield rest
                rest = b""
        elif over:
            break
        elif ready:  # no writer yet, or none any more: such a pipe is always ready
            select.select([], [], [], 0.02)
    if rest:
        yield rest


@dataclass(frozen=True)
class Samples:
    """k6's samples, read and written to the run directory."""

    reader: K6Reader
    assembler: K6Assembler
    deposit: ImportWriter


def k6_status(code: int, interrupted: bool, log: str) -> tuple[Status, str | None]:
    """Return status and reason of a run, from k6's exit code and the errors that it logged. Pure."""
    if interrupted or code == INTERRUPTED:
        return "interrupted", "interrupted from the keyboard"
    if code in (0, THRESHOLDS_CROSSED):
        return "complete", "a threshold was crossed" if code else None
    if code < 0:
        return "interrupted", f"k6 was killed by signal {-code}"
    return "failed", last_error(log) or f"k6 ended with exit code {code}"


def last_error(log: str) -> str | None:
    """Return the first sentence of the last error in k6's log, without the stack that follows it. Pure."""
    found = re.findall(r"^(?:test aborted: |GoError: |Uncaught \(in promise\) )?(\S.*)$", log, re.M)
    lines = [line for line in found if not re.match(r"(at |hint|executor=|\s)", line)]
    return re.sub(r"\s+at \S+ \(file:.*$", "", lines[0])[:300] if lines else None


def run_status(
    how: tuple[Status, str | None], samples: Samples, died: str | None, one_failure_a_day: bool
) -> tuple[Status, str | None]:
    """Return status and reason: a run in which nothing succeeded has failed, however k6 ended. Pure.

    So has one whose target died, of which `died` says since when.
    """
    status, reason = how
    deposit, assembler = samples.deposit, samples.assembler
    if samples.reader.broken_count:
        reason = f"{reason or 'k6 wrote unreadable lines'}; {samples.reader.broken[0]}"
    if status != "complete":
        return status, reason
    why = f": {deposit.first_failure}" if deposit.first_failure else ""
    if assembler.requests == 0:
        return "failed", f"k6 sent no request{why}"
    if deposit.good_requests == 0:
        return "failed", f"no request succeeded{why}"
    if one_failure_a_day and 0 < assembler.iterations <= deposit.failed_checks:
        return "failed", f"no iteration succeeded{why}"
    if died:
        return "failed", died
    return status, "; ".join(filter(None, (reason, too_many_missing(samples)))) or None


def too_many_missing(samples: Samples) -> str | None:
    """Return a sentence if more files failed to load than on a working site; else None. Pure."""
    missing, requests = samples.deposit.missing_files, samples.assembler.requests
    if missing <= _MOST_MISSING * requests:
        return None
    first = samples.deposit.first_missing
    return f"{missing:,} of {requests:,} requests were for files that did not load, first {first}"


class _Interrupts:
    """Passes Ctrl-C and SIGTERM on to k6: the first ends it in good order, the second at once."""

    def __init__(self, process: "subprocess.Popen[bytes]", say: Say) -> None:
        self.count = 0
        self._process, self._say = process, say
        self._before: dict[int, object] = {}

    def __enter__(self) -> "_Interrupts":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._pass_on)
        return self

    def __exit__(self, *_: object) -> None:
        for number, former in self._before.items():
            signal.signal(number, former)  # type: ignore[arg-type]

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count == 1:
            self._process.send_signal(signal.SIGINT)
            self._say("Interrupted: k6 is ending. Press Ctrl-C again to stop at once.")
        else:
            self._process.kill()


def _die_with_parent() -> None:
    if hasattr(_LIBC, "prctl"):
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _censor(path: Path, secrets: tuple[str, ...]) -> str:
    """Take secrets out of k6's log, which is removed where it is empty; return its text."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")[: 1 << 20]
    except OSError:
        return ""
    text = redact(hide_secrets(text, secrets))
    if text.strip():
        path.write_text(text, encoding="utf-8")
    else:
        path.unlink()
    return text
