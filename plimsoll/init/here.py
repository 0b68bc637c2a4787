"""What is there on this machine: the log, the sites, what lies under a folder. Changes nothing."""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from plimsoll.common.programs import built_replay_program
from plimsoll.init.answers import Disk
from plimsoll.lab.errors import last_words
from plimsoll.lab.steps.runner import answer_of
from plimsoll.lab.steps.step import Serve

_READ_S = 600.0
_OCTAL = re.compile(r"\\([0-7]{3})")
_BLOCK = Path("/sys/class/block")


@dataclass(frozen=True)
class Log:
    """What an access log has; `requests_per_s` is None where nobody looked, or it spans no time."""

    path: str
    requests_per_s: float | None = None


@dataclass(frozen=True)
class Under:
    """What lies under a folder: a ZFS dataset, Btrfs, or devices."""

    dataset: str | None = None
    btrfs: bool = False
    devices: tuple[str, ...] = ()


def log_at(path: str) -> Log:
    """Have bin/replay read the log. Raises ValueError where that fails, PlimsollError without bin/replay."""
    words = [built_replay_program(), "parse", "--stats", "--quiet", "--", path]
    try:
        done = subprocess.run(  # noqa: S603 our own program, by a list of words
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_READ_S,
        )
    except subprocess.TimeoutExpired:
        return Log(path)  # a log that long can be read
    if done.returncode:
        raise ValueError(f"{last_words(done.stderr).removeprefix('replay: ')} (see docs/log-formats.md)")
    told = json.loads(done.stdout)
    if not told["valid"]:
        raise ValueError(f"{path}: holds no request")
    lasts_s = told["duration_s"]
    return Log(path, told["valid"] / lasts_s if lasts_s else None)


def why_no_site(target: str) -> str:
    """Return why nothing useful answers at a base URL, empty where it does."""
    why = answer_of(Serve("ask", target))
    return f"{target}: does not serve the site: {why}: start it, or correct the URL" if why else ""


def under(disk: Disk, mounts: str | None = None) -> Under:
    """Return what lies under the disk's folder. Raises ValueError where it is no folder to put clones in."""
    if disk.path is None:
        return Under()
    folder = os.path.realpath(disk.path)
    if not Path(folder).is_dir():
        raise ValueError(f"{disk.name}: {disk.path} is no folder here: make it, or name another")
    where, kind, source = mounted_at(folder, _read("/proc/self/mountinfo") if mounts is None else mounts)
    if kind == "zfs":
        if where != disk.path:
            raise ValueError(
                f"{disk.name}: {disk.path} lies in the dataset {source}: name where one is mounted, {where}"
            )
        return Under(dataset=source)
    return Under(btrfs=kind == "btrfs", devices=_disks(source))


def mounted_at(folder: str, mountinfo: str) -> tuple[str, str, str]:
    """Return the mount point that holds `folder`, its file system and its source. Pure."""
    best = ("/", "", "")
    for line in mountinfo.splitlines():
        first, _, last = line.partition(" - ")
        fields, rest = first.split(), last.split()
        if len(fields) < 5 or len(rest) < 2:
            continue
        where = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
        inside = folder == where or folder.startswith(where.rstrip("/") + "/")
        if inside and len(where) >= len(best[0]):
            best = (where, rest[0], rest[1])
    return best


def _disks(source: str) -> tuple[str, ...]:
    """Return the whole disk that a device is, or is a part of, by its kernel name."""
    device = _BLOCK / Path(os.path.realpath(source)).name
    if not source.startswith("/dev/") or not device.exists():
        return ()
    if (device / "partition").exists():
        device = device.resolve().parent
    return (device.name,)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
