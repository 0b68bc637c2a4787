"""The machine that generates the load."""

import os
import platform
from pathlib import Path

from plimsoll.rundir.runfacts import GeneratorHost, RunFacts


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


def is_alive(run: RunFacts) -> bool | None:
    """Return whether the process that writes `run` lives, also where it is paused.

    None where nobody here can know: it is of another machine or of another PID namespace, or not named.
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
