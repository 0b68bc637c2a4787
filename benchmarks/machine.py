"""Facts about the machine that the figures come from."""

import os
import platform
import subprocess
from pathlib import Path

from benchmarks.paths import ROOT


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
