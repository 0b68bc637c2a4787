"""The five answers, read from what somebody types. Pure: whether things are there is asked in here.py."""

import re
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from plimsoll.common.units import parse_duration_s
from plimsoll.common.validation import sentence_of
from plimsoll.lab.disks.disk import PlainFolder
from plimsoll.lab.names import LabName
from plimsoll.scenarios.running.settings import BaseUrl

OWN = "own"  # the answer that means the site of `make site`
_MS = {"ms": 1.0, "s": 1000.0}
_LIMIT = re.compile(r"(?P<errors>errors=)?(?P<number>\d{1,9}(?:\.\d{1,6})?)(?P<unit>%|ms|s)", re.ASCII)
_MOST_MORE_PERCENT = 900.0


@dataclass(frozen=True)
class Disk:
    """One backend to be: what it is called, and the folder on it, None where it is not known here."""

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
    """What the candidate may be: so many times as slow, so slow, with so many more errors."""

    ratio: float | None = None
    ms: float | None = None
    more_errors: float = 0.001


def site_of(text: str) -> Site:
    """Return the site that `own` or base URLs stand for. Raises ValueError."""
    words = _words(text)
    if words == [OWN]:
        return Site()
    if not words or OWN in words:
        raise ValueError(
            f"say {OWN}, or the base URL of a clone on each disk: http://10.0.0.5 http://10.0.0.6"
        )
    targets = tuple(_checked(BaseUrl, word, word) for word in words)
    if len(set(targets)) < len(targets):
        raise ValueError("the same URL twice is the same site: give each disk's clone its own")
    return Site(targets)


def disks_of(text: str, site: Site) -> tuple[Disk, ...]:
    """Return the disks that `NAME=/folder NAME=/folder` stands for, for that site. Raises ValueError."""
    found = tuple(_disk(word) for word in _words(text))
    if not found:
        raise ValueError("name one disk or more, the old one first: sata=/rust/lab nvme=/tank/lab")
    names = [disk.name for disk in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{twice[0]} is the name of two disks: call one of them otherwise")
    paths = [disk.path for disk in found if disk.path]
    if twice := sorted({path for path in paths if paths.count(path) > 1}):
        raise ValueError(f"{twice[0]} is on one disk: give each its own folder")
    if site.is_own and (bare := [disk.name for disk in found if disk.path is None]):
        raise ValueError(f"{bare[0]}: say where to put the clone: {bare[0]}=/folder/on/it")
    if not site.is_own and len(site.targets) != len(found):
        wanted = f"{len(site.targets)} base URL{'s' * (len(site.targets) > 1)}"
        raise ValueError(f"there are {wanted} and {len(found)} disks: name as many, in the same order")
    return found


def duration_of(text: str) -> float:
    """Return the seconds that the whole experiment may take. Raises ValueError."""
    return parse_duration_s(text)


def limits_of(text: str) -> Limits:
    """Return the limits that `10% 800ms errors=0.1%` stands for. Raises ValueError."""
    ratio = ms = None
    errors = Limits.more_errors
    for word in _words(text):
        found = _LIMIT.fullmatch(word)
        if not found or (found["errors"] and found["unit"] != "%"):
            raise ValueError(f"{word}: is no limit: say 10% (slower), 800ms (at most), errors=0.1% (more)")
        number = float(found["number"])
        if found["errors"]:
            if number > 100:
                raise ValueError(f"{word}: is more than all requests")
            errors = number / 100
        elif found["unit"] == "%":
            if number > _MOST_MORE_PERCENT:
                raise ValueError(
                    f"{word}: allows over ten times the time: say {_MOST_MORE_PERCENT:g}% or less"
                )
            ratio = round(1 + number / 100, 6)
        elif number == 0:
            raise ValueError(f"{word}: nothing answers in no time: say 800ms, or leave it out")
        else:
            ms = number * _MS[found["unit"]]
    if ratio is None and ms is None:
        raise ValueError("say how much slower p99.9 may be, or how slow: 10%, 800ms, or both")
    return Limits(ratio, ms, errors)


def name_of(text: str) -> str:
    """Return the experiment's name. Raises ValueError."""
    return _checked(LabName, text, text)


def _disk(word: str) -> Disk:
    name, equals, path = word.partition("=")
    _checked(LabName, name, word)
    if equals and not path:
        raise ValueError(f"{word}: say which folder: {name}=/folder/on/it")
    return Disk(name, _checked(PlainFolder, path, word) if equals else None)


def _checked(kind: Any, value: str, shown: str) -> str:
    try:
        checked: str = TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise ValueError(f"{shown}: {sentence_of(error).removeprefix('it: ')}") from None
    return checked


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()
