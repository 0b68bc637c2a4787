"""The five answers: read from what is typed, and checked against this machine. Changes nothing."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from plimsoll.common.programs import built_replay_program
from plimsoll.common.units import parse_duration_s
from plimsoll.common.validation import sentence_of
from plimsoll.lab.disks.disk import PlainFolder
from plimsoll.lab.errors import last_words
from plimsoll.lab.experiment.scenarios import run_replay
from plimsoll.lab.names import LabName
from plimsoll.lab.steps.runner import answer_of
from plimsoll.lab.steps.step import Serve
from plimsoll.scenarios.running.settings import BaseUrl

OWN = "own"  # the answer that means the site of `make site`
_MS = {"ms": 1.0, "s": 1000.0}
_LIMIT = re.compile(r"(?P<errors>errors=)?(?P<number>\d{1,9}(?:\.\d{1,6})?)(?P<unit>%|ms|s)", re.ASCII)
_MOST_MORE_PERCENT = 900.0
_READ_S = 600.0
_OCTAL = re.compile(r"\\([0-7]{3})")
_BLOCK = Path("/sys/class/block")


@dataclass(frozen=True)
class Disk:
    """A future backend: its name, and the folder on it, None if that is not known here."""

    name: str
    path: str | None = None


@dataclass(frozen=True)
class Site:
    """What is cloned, or what exists already: the base URL of a clone on each disk."""

    targets: tuple[str, ...] = ()

    @property
    def is_own(self) -> bool:
        """Return whether the lab makes the clones itself, of the site of `make site`."""
        return not self.targets


@dataclass(frozen=True)
class Limits:
    """What is allowed to the candidate: how many times slower, how slow, how many more errors."""

    ratio: float | None = None
    ms: float | None = None
    more_errors: float = 0.001


def parse_site(text: str) -> Site:
    """Return the site that `own` or base URLs stand for. Raises ValueError."""
    words = _split_words(text)
    if words == [OWN]:
        return Site()
    if not words or OWN in words:
        raise ValueError(
            f"say {OWN}, or the base URL of a clone on each disk: http://10.0.0.5 http://10.0.0.6"
        )
    targets = tuple(_check(BaseUrl, word, word) for word in words)
    if len(set(targets)) < len(targets):
        raise ValueError("the same URL twice is the same site: give each disk's clone its own")
    return Site(targets)


def parse_disks(text: str, site: Site) -> tuple[Disk, ...]:
    """Return the disks that `NAME=/folder NAME=/folder` stands for, for that site. Raises ValueError."""
    found = tuple(_disk(word) for word in _split_words(text))
    if not found:
        raise ValueError("name one disk or more, the old one first: sata=/rust/lab nvme=/tank/lab")
    names = [disk.name for disk in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{twice[0]} is the name of two disks: rename one of them")
    paths = [disk.path for disk in found if disk.path]
    if twice := sorted({path for path in paths if paths.count(path) > 1}):
        raise ValueError(f"{twice[0]} is on one disk: give each its own folder")
    if site.is_own and (bare := [disk.name for disk in found if disk.path is None]):
        raise ValueError(f"{bare[0]}: say where to put the clone: {bare[0]}=/folder/on/it")
    if not site.is_own and len(site.targets) != len(found):
        wanted = f"{len(site.targets)} base URL{'s' * (len(site.targets) > 1)}"
        raise ValueError(
            f"there are {wanted} and {len(found)} disks: name as many disks as sites, in the same order"
        )
    return found


def duration_of(text: str) -> float:
    """Return the seconds that the whole experiment may take. Raises ValueError."""
    return parse_duration_s(text)


def parse_limits(text: str) -> Limits:
    """Return the limits that `10% 800ms errors=0.1%` stands for. Raises ValueError."""
    ratio = ms = None
    errors = Limits.more_errors
    for word in _split_words(text):
        found = _LIMIT.fullmatch(word)
        if not found or (found["errors"] and found["unit"] != "%"):
            raise ValueError(
                f"{word}: is not a limit: write 10% (slower), 800ms (at most), errors=0.1% (more)"
            )
        number = float(found["number"])
        if found["errors"]:
            if number > 100:
                raise ValueError(f"{word}: is more than all requests")
            if number == 0:
                raise ValueError(f"{word}: no number of runs shows that there are none: write errors=0.1%")
            errors = number / 100
        elif found["unit"] == "%":
            if number > _MOST_MORE_PERCENT:
                raise ValueError(
                    f"{word}: allows over ten times the time: write {_MOST_MORE_PERCENT:g}% or less"
                )
            ratio = round(1 + number / 100, 6)
        elif number == 0:
            raise ValueError(f"{word}: no response takes zero time: write 800ms, or leave it out")
        else:
            ms = number * _MS[found["unit"]]
    if ratio is None and ms is None:
        raise ValueError("write how much slower p99.9 may be, or how slow: 10%, 800ms, or both")
    return Limits(ratio, ms, errors)


def parse_name(text: str) -> str:
    """Return the experiment's name. Raises ValueError."""
    return _check(LabName, text, text)


def _disk(word: str) -> Disk:
    name, equals, path = word.partition("=")
    _check(LabName, name, word)
    if equals and not path:
        raise ValueError(f"{word}: say which folder: {name}=/folder/on/it")
    return Disk(name, _check(PlainFolder, path, word) if equals else None)


def _check(kind: Any, value: str, shown: str) -> str:
    try:
        checked: str = TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise ValueError(f"{shown}: {sentence_of(error).removeprefix('it: ')}") from None
    return checked


def _split_words(text: str) -> list[str]:
    return text.replace(",", " ").split()


@dataclass(frozen=True)
class Log:
    """What an access log has; `requests_per_s` is None if it was not read, or spans no time."""

    path: str
    requests_per_s: float | None = None


@dataclass(frozen=True)
class StorageBelow:
    """What lies under a folder: a ZFS dataset, Btrfs, or devices."""

    dataset: str | None = None
    btrfs: bool = False
    devices: tuple[str, ...] = ()


def read_log(text: str, no_probe: bool) -> Log:
    """Return the log at a path or pattern, looked into unless `no_probe`. Raises ValueError."""
    if not text.strip():
        raise ValueError("say which log")
    return Log(text) if no_probe else probe_log(text)


def read_site(text: str, no_probe: bool) -> Site:
    """Return the site, probed unless `no_probe`. Raises ValueError."""
    found = parse_site(text)
    if not no_probe and (why := [says for target in found.targets if (says := explain_no_site(target))]):
        raise ValueError("; ".join(why))
    return found


def read_disks(text: str, site: Site, no_probe: bool) -> tuple[tuple[Disk, ...], tuple[StorageBelow, ...]]:
    """Return the disks, with what lies under each unless `no_probe`. Raises ValueError."""
    found = parse_disks(text, site)
    return found, tuple(StorageBelow() if no_probe else find_storage(disk) for disk in found)


def probe_log(path: str) -> Log:
    """Have bin/replay read the log. Raises ValueError where that fails, PlimsollError without bin/replay."""
    return Log(path, count_requests_per_s([path]))


def count_requests_per_s(logs: Sequence[str], log_format: str | None = None) -> float | None:
    """Return the mean pace of logs, None where they span no time, or take too long to read.

    Raises ValueError where they cannot be read, PlimsollError without bin/replay.
    """
    formats = [f"--format={log_format}"] if log_format else []
    built_replay_program()  # which says what to do where it is missing
    try:
        done = run_replay("parse", "--stats", "--quiet", *formats, "--", *logs, timeout_s=_READ_S)
    except subprocess.TimeoutExpired:
        return None  # a log that long can be read
    if done.returncode:
        raise ValueError(f"{last_words(done.stderr).removeprefix('replay: ')} (see docs/log-formats.md)")
    counted = json.loads(done.stdout)
    if not counted["valid"]:
        raise ValueError(f"{', '.join(logs)}: holds no request")
    lasts_s: float = counted["duration_s"]
    return counted["valid"] / lasts_s if lasts_s else None


def explain_no_site(target: str) -> str:
    """Return why a base URL gives no useful answer; empty if it does."""
    why = answer_of(Serve("ask", target))
    return f"{target}: does not serve the site: {why}: start it, or correct the URL" if why else ""


def find_storage(disk: Disk, mounts: str | None = None) -> StorageBelow:
    """Return what lies under the disk's folder. Raises ValueError if clones cannot be put into it."""
    if disk.path is None:
        return StorageBelow()
    folder = os.path.realpath(disk.path)
    if not Path(folder).is_dir():
        raise ValueError(f"{disk.name}: {disk.path} is not a folder here: create it, or name another")
    where, kind, source = find_mount(folder, _read("/proc/self/mountinfo") if mounts is None else mounts)
    if kind == "zfs":
        if where != disk.path:
            raise ValueError(
                f"{disk.name}: {disk.path} lies in the dataset {source}: name where one is mounted, {where}"
            )
        return StorageBelow(dataset=source)
    return StorageBelow(btrfs=kind == "btrfs", devices=_devices(source))


def find_mount(folder: str, mountinfo: str) -> tuple[str, str, str]:
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


def _devices(source: str) -> tuple[str, ...]:
    """Return the kernel name of the disk that a device is, or is a part of."""
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
