"""What is there of an experiment on this machine, looked for without the project's own means."""

import subprocess
from pathlib import Path

from tests.support.programs import LONGEST_S


def left(name: str) -> list[str]:
    """Every loop device, mount, pool, container, network, control group and process called after `name`."""
    mark = f"plimsoll-{name}--"
    found = []
    for what, command in {
        "loop device": ["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"],
        "mount": ["cat", "/proc/mounts"],
        "pool": ["zpool", "list", "-H", "-o", "name"],
        "container": ["docker", "ps", "-a", "--format", "{{.Names}}"],
        "network": ["docker", "network", "ls", "--format", "{{.Name}}"],
        "process": ["ps", "-eo", "pid,args"],
    }.items():
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        except FileNotFoundError:
            continue
        found += [f"{what}: {line.strip()}" for line in done.stdout.splitlines() if mark in line]
    found += [f"control group: {path}" for path in Path("/sys/fs/cgroup").rglob(f"*{mark}*")]
    return found


def left_in(work: Path) -> list[str]:
    """What lies in the lab's folder, but for the site that is copied."""
    return (
        [path.name for path in work.iterdir() if not path.name.startswith("golden-")] if work.exists() else []
    )
