"""Run one program to its end, and know how long it took and how much memory it had."""

import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.memory import PeakMemory, max_rss_bytes

# The server's core and the client's: what one of them does must not slow down the other.
SERVER_CPU = 0
CLIENT_CPU = 1


@dataclass(frozen=True)
class Finished:
    argv: list[str]
    exit_code: int
    out: str
    err: str
    wall_s: float
    cpu_s: float
    max_rss_bytes: int


class RunFailedError(Exception):
    """The program ended badly; the message is fit for the table."""


def pinned(argv: Sequence[str], cpu: int | None) -> list[str]:
    """The command on one core, where there are two cores at least."""
    if cpu is None or (os.cpu_count() or 1) < 2:
        return list(argv)
    return ["taskset", "-c", str(cpu), *argv]


def kill_group(pid: int, sig: signal.Signals = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, sig)


def run(
    argv: Sequence[str],
    scratch: Path,
    *,
    timeout_s: float,
    cpu: int | None = None,
    env: Mapping[str, str] | None = None,
    ok_codes: Sequence[int] = (0,),
    cwd: Path | None = None,
) -> Finished:
    """Run to the end. Output goes through files, so that no full pipe slows the program down."""
    scratch.mkdir(parents=True, exist_ok=True)
    command = pinned(argv, cpu)
    with (scratch / "stdout").open("w+b") as out, (scratch / "stderr").open("w+b") as err:
        start = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
        timer = threading.Timer(timeout_s, kill_group, [process.pid])
        timer.start()
        own_rss_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        peak = PeakMemory(process.pid)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            kill_group(process.pid)
            process.wait()
            raise
        finally:
            timer.cancel()
            watched_bytes = peak.stop()
        wall_s = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        kill_group(process.pid)  # what it may have left behind
        out.seek(0)
        err.seek(0)
        finished = Finished(
            argv=list(argv),
            exit_code=process.returncode,
            out=out.read().decode(errors="replace"),
            err=err.read().decode(errors="replace"),
            wall_s=wall_s,
            cpu_s=usage.ru_utime + usage.ru_stime,
            max_rss_bytes=max_rss_bytes(usage.ru_maxrss * 1024, own_rss_bytes, watched_bytes),
        )
    if finished.exit_code not in ok_codes:
        raise RunFailedError(complaint(finished, timeout_s))
    return finished


def complaint(finished: Finished, timeout_s: float) -> str:
    """One line on why a program failed: its last words."""
    name = Path(finished.argv[0]).name
    if finished.exit_code == -signal.SIGKILL and finished.wall_s >= timeout_s:
        return f"{name} was stopped after {timeout_s:g} s"
    words = [line.strip() for line in (finished.err + "\n" + finished.out).splitlines() if line.strip()]
    last = words[-1][:160] if words else "it printed nothing"
    return f"{name} ended with {finished.exit_code}: {last}"
