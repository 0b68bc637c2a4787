"""Facts about the machine that the figures come from."""

import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.paths import ROOT

# Columns of proc_stat(5). Those of guests, from the second on, are counted under user and nice as well.
_STEAL, _GUEST = 7, 8


def facts() -> dict[str, str]:
    return {
        "Plimsoll": commit(),
        "CPU": f"{cpu_model(Path('/proc/cpuinfo').read_text())}, {os.cpu_count()} cores",
        "memory": f"{memory_gib(Path('/proc/meminfo').read_text()):.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "system": system_name(Path("/etc/os-release").read_text()),
        "load when it began": f"{os.getloadavg()[0]:.2f}",
    }


def commit() -> str:
    """Return the state of the project: the commit, and whether it was changed since."""
    found = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty=, with changes"],  # noqa: S607 (from PATH, as people have it)
        capture_output=True,
        text=True,
        check=False,
    )
    return f"commit {found.stdout.strip()}" if found.returncode == 0 else "unknown"


def busy() -> bool:
    """Return whether something else is at work here, so that figures are only indicative."""
    return os.getloadavg()[0] > 0.25 * (os.cpu_count() or 1)


def processor_ticks() -> list[int]:
    """Return what all processors did since the boot, in ticks: the columns of `cpu` in proc_stat(5)."""
    return [int(word) for word in Path("/proc/stat").read_text().partition("\n")[0].split()[1:]]


def stolen_share(before: Sequence[int], after: Sequence[int]) -> float | None:
    """Return the share of the processors' time that the hypervisor kept; None where no time went by."""
    ticks = [late - early for early, late in zip(before, after, strict=True)][:_GUEST]
    return ticks[_STEAL] / sum(ticks) if sum(ticks) > 0 else None


def cpu_model(cpuinfo: str) -> str:
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or "unknown"


def memory_gib(meminfo: str) -> float:
    return int(meminfo.split("MemTotal:")[1].split()[0]) / 1024**2


def system_name(os_release: str) -> str:
    for line in os_release.splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return "unknown"
