"""The machine that generates the load."""

import os
import platform
from pathlib import Path

from plimsoll.rundir.runfacts import GeneratorHost


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
