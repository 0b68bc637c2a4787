"""Runs k6 as a child, and turns its samples into a run directory while they come.

The samples come through a named pipe, so that no giant file is left, and the run directory is whole up to the
last second also when k6 is killed.
"""

import ctypes
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType

from analysis.importing.assemble import Assembler
from analysis.importing.deposit import Deposit, limited_reason
from analysis.importing.lines import lines_from_pipe
from analysis.importing.reader import Reader
from analysis.models import RunFacts
from analysis.recording import RunWriter
from analysis.recording.folders import point_latest
from analysis.recording.redact import redacted
from analysis.recording.writer import Status

Progress = Callable[[int, int], None]
Say = Callable[[str], None]

# https://github.com/grafana/k6/blob/master/errext/exitcodes/codes.go
THRESHOLDS_CROSSED, INTERRUPTED = 99, 105
LOG, SUMMARY = "k6.log", "k6-summary.json"
_PIPE_BYTES = 1 << 20


@dataclass(frozen=True)
class Job:
    """What k6 is to do. `told` are the script's settings, `secrets` what no file may hold.

    `iterations` tells how many there will be, after so many seconds of which so many iterations were done.
    """

    k6: Path
    script: Path
    told: Mapping[str, str]
    timeout_s: float
    remedy: str
    ramping: bool
    iterations: Callable[[float, int], int]
    secrets: tuple[str, ...] = ()
    one_failure_a_day: bool = False  # whether an iteration ends with the first check that fails


def arguments(job: Job, pipe: Path, directory: Path) -> list[str]:
    """Return k6's command line; settings go by the environment, where no process list shows them. Pure."""
    return [
        str(job.k6),
        "run",
        "--quiet",
        "--no-color",
        "--address=",
        f"--log-output=file={LOG},level=error",
        "--log-format=raw",
        f"--summary-export={directory / SUMMARY}",
        f"--out=json={pipe}",
        str(job.script),
    ]


def environment(base: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    """Return k6's environment: the user's without what would change the run behind its back. Pure."""
    kept = {name: value for name, value in base.items() if not name.startswith(("K6_", "PLIMSOLL_"))}
    return kept | {"K6_NO_USAGE_REPORT": "true"} | dict(told)


def ending(code: int, interrupted: bool, log: str) -> tuple[Status, str | None]:
    """Return how a run ended, from k6's exit code and the errors that it logged. Pure."""
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


def run_k6(job: Job, directory: Path, facts: RunFacts, progress: Progress, say: Say) -> bool:
    """Run k6 to its end, with its samples in the run directory; return whether all went well.

    The first Ctrl-C lets k6 end in good order, the second ends it at once. Both keep what was recorded.
    """
    with (
        tempfile.TemporaryDirectory(prefix="plimsoll-k6-") as scratch,
        RunWriter(directory, facts, at_once=False) as run,
    ):
        point_latest(directory)
        pipe = Path(scratch) / "samples.json"
        os.mkfifo(pipe, 0o600)
        descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        process = subprocess.Popen(  # noqa: S603 built by `arguments`
            arguments(job, pipe, directory.resolve()),
            cwd=directory,
            env=environment(os.environ, job.told),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that Ctrl-C reaches k6 once, through us
            preexec_fn=_die_with_parent,  # so that no load goes on when we are killed
        )
        try:
            with _Interrupts(process, say) as interrupts:
                taken = _take(job, run, process, descriptor, progress)
                code = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(descriptor)
            log = _censor(directory / LOG, job.secrets)
        status, reason = judged(ending(code, interrupts.count > 0, log), taken, job.one_failure_a_day)
        limited = limited_reason(run, taken.assembler, job.remedy)
        run.update(generator_limited=limited is not None, generator_limited_reason=limited)
        run.finish(status, reason)
    unbroken = not taken.reader.broken_count and not taken.deposit.failed_checks
    return status == "complete" and code == 0 and unbroken


@dataclass(frozen=True)
class Taken:
    """All that came of k6's samples."""

    reader: Reader
    assembler: Assembler
    deposit: Deposit


def judged(
    how: tuple[Status, str | None], taken: Taken, one_failure_a_day: bool
) -> tuple[Status, str | None]:
    """Return status and reason: a run in which nothing succeeded has failed, however k6 ended. Pure."""
    status, reason = how
    deposit, assembler = taken.deposit, taken.assembler
    if taken.reader.broken_count:
        reason = f"{reason or 'k6 wrote what cannot be read'}; {taken.reader.broken[0]}"
    if status != "complete":
        return status, reason
    why = f": {deposit.first_failure}" if deposit.first_failure else ""
    if assembler.requests == 0:
        return "failed", f"k6 sent no request{why}"
    if deposit.good_requests == 0:
        return "failed", f"not one request succeeded{why}"
    if one_failure_a_day and 0 < assembler.iterations <= deposit.failed_checks:
        return "failed", f"not one iteration succeeded{why}"
    return status, reason


def _take(
    job: Job, run: RunWriter, process: "subprocess.Popen[bytes]", descriptor: int, progress: Progress
) -> Taken:
    """Take all samples until k6 has ended."""
    started_s = time.monotonic()
    assembler = Assembler(_epoch_ns(run.facts.started_at), job.timeout_s, job.ramping, strict=True)

    def ended() -> bool:
        done = assembler.iterations
        progress(done, max(job.iterations(time.monotonic() - started_s, done), done))
        return process.poll() is not None

    reader = Reader(lines_from_pipe(descriptor, ended))
    deposit = Deposit(run)
    deposit.all_of(reader, assembler)
    progress(assembler.iterations, assembler.iterations)
    return Taken(reader, assembler, deposit)


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
            self._say("Interrupted: k6 is ending. Press Ctrl-C again to leave at once.")
        else:
            self._process.kill()


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    if hasattr(_LIBC, "prctl"):
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _censor(path: Path, secrets: tuple[str, ...]) -> str:
    """Take secrets out of k6's log, which is removed where it is empty; return its text."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")[: 1 << 20]
    except OSError:
        return ""
    for secret in secrets:
        text = text.replace(secret, "REDACTED") if secret else text
    text = redacted(text)
    if text.strip():
        path.write_text(text, encoding="utf-8")
    else:
        path.unlink()
    return text


def _epoch_ns(instant: datetime | None) -> int:
    if instant is None:
        raise ValueError("a run that is recorded has started")
    return int(instant.timestamp()) * 1_000_000_000 + instant.microsecond * 1000
