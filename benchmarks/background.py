"""A server that runs while something else is measured, and is gone afterwards, whatever happens."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.measure import RunFailedError, kill_group, pinned

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@contextmanager
def background(
    argv: Sequence[str], scratch: Path, cpu: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server in a process group of its own; at the end ask it to stop, then make it."""
    scratch.mkdir(parents=True, exist_ok=True)
    with (scratch / "server.out").open("wb") as out, (scratch / "server.err").open("wb") as err:
        process = subprocess.Popen(
            pinned(argv, cpu), stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            yield process
        finally:
            kill_group(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            kill_group(process.pid)
            process.wait()


def first_line(process: subprocess.Popen[bytes], scratch: Path, timeout_s: float = 10) -> str:
    """The first line that a server of ours prints: its address."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and process.poll() is None:
        text = (scratch / "server.out").read_text()
        if "\n" in text:
            return text.splitlines()[0]
        time.sleep(0.01)
    raise RunFailedError(f"the server did not start: {(scratch / 'server.err').read_text().strip()[-160:]}")


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and its children so far."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return _own_cpu_seconds(pid) + sum(_own_cpu_seconds(int(child)) for child in children)


def _own_cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
