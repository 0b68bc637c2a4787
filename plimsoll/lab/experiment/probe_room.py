"""Room for all that an experiment puts on the file systems of a machine: added up, since all of it stands."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from plimsoll.common.units import listed
from plimsoll.lab.clones import driver_of
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.rig import Rig, StepGroup
from plimsoll.lab.fileio.precondition import numbers
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Room

_SIZE, _TEST_DATA = "disk.size_bytes", "fileio.file_size"
_DU_S = 3600.0

# $1: a folder that may not be there yet. Prints the one above it that is, and what df says of that.
_FREE = """here=$1
until [ -e "$here" ]; do here=$(dirname -- "$here"); done
printf '%s\\n' "$here" && df -P -T -B1 -- "$here" | sed 1d"""
_DF = re.compile(r"(?P<source>.*?)\s+(?P<type>\S+)\s+[0-9]+\s+[0-9]+\s+(?P<free>[0-9]+)\s+\S+\s+(?P<at>/.*)")

_MEMORY = re.compile(r"(?m)^MemTotal:\s*([0-9]+) kB")


@dataclass(frozen=True)
class VolumeUses:
    """What is done to the volumes of rigs before the runs.

    `measured`: the bytes of the test files of fileio, `fill_percent`: how full they are made.
    """

    measured: Mapping[str, int] = field(default_factory=dict)
    fill_percent: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FileSystem:
    """A file system as df shows it: its name, a folder on it, and its free bytes.

    `clones`: it copies files without their taking room again.
    """

    name: str
    folder: str
    free_bytes: int
    clones: bool = False
    remedy: str = "make room, or choose another folder"


@dataclass(frozen=True)
class Claim:
    """Room that a backend takes: for `what`, a `key` of lab.yml, and on which file system.

    `most_bytes`: what it may come to take, where that is more than `bytes`. `of`: the file system of what it
    is a plain copy of, if it is one.
    """

    backend: str
    key: str
    what: str
    on: FileSystem
    bytes: int
    most_bytes: int = 0
    of: FileSystem | None = None

    @property
    def adds_up(self) -> bool:
        """False for a copy that shares the room of what it was copied from."""
        return not (self.on.clones and self.of and self.of.name == self.on.name)


def obstacles(claims: Sequence[Claim]) -> Iterator[tuple[str, str]]:
    """Yield what does not fit, by itself or with what else is put on its file system: whose, and what.

    What several do not fit together names them itself, and is nobody's. Pure.
    """
    for here in _by_file_system(claims):
        alone = [claim for claim in here if claim.bytes > claim.on.free_bytes]
        for claim in alone:
            yield (
                claim.backend,
                f"{claim.key}: {claim.what} does not fit: {_gib(claim.bytes)} are needed and "
                f"{claim.on.folder} has {_gib(claim.on.free_bytes)}: {claim.on.remedy}",
            )
        added, free_bytes = [claim for claim in here if claim.adds_up], _free_bytes(here)
        needed_bytes = sum(claim.bytes for claim in added)
        if not alone and needed_bytes > free_bytes:
            parts = listed([f"{claim.what} of {claim.backend} ({_gib(claim.bytes)})" for claim in added])
            yield (
                "",
                f"{parts} do not fit together: {_gib(needed_bytes)} are needed and {here[0].on.name} has "
                f"{_gib(free_bytes)}: {here[0].on.remedy}",
            )


def cautions(claims: Sequence[Claim]) -> Iterator[str]:
    """Yield what fits as it is made, and may grow to more than there is room for. Pure."""
    for here in _by_file_system(claims):
        growing = [claim for claim in here if claim.most_bytes > claim.bytes]
        grown_bytes = sum(max(claim.bytes, claim.most_bytes) for claim in here)
        if not growing or grown_bytes <= _free_bytes(here) or any(obstacles(here)):
            continue
        parts = listed([f"{claim.what} of {claim.backend} to {_gib(claim.most_bytes)}" for claim in growing])
        yield (
            f"what is made fits, but guests may write more: {parts}; {here[0].on.name} has "
            f"{_gib(_free_bytes(here))}, and a guest that finds no more gets errors"
        )


def file_system(shown: str) -> FileSystem:
    """Return the file system that `_FREE` printed. Raises LabError. Pure."""
    folder, _, line = shown.strip().partition("\n")
    found = _DF.fullmatch(line.strip())
    if not found:
        raise LabError(f"{folder}: cannot parse what df prints: {line[:100]}")
    source, kind, at = found["source"], found["type"], found["at"]
    if kind.startswith(("zfs", "fuse")) and not source.startswith("/") and ":" not in source:
        name = f"the pool {source.partition('/')[0]}"  # whose datasets share its room
    else:
        name = source if source.startswith("/dev/") else at
    return FileSystem(name, folder, int(found["free"]), clones=kind == "btrfs")


async def claims_of(rigs: Sequence[Rig], uses: VolumeUses) -> list[Claim]:
    """Return the room that `rigs` take: disks, copies of the site, and that site if it is still to be made.

    With the test files of those that are measured, and what volumes are filled with. Raises LabError.
    """
    found: list[Claim] = []
    for rig in rigs:
        for room in _rooms(rig.make_disk()):
            on = await _file_system(rig.machine, room.folder)
            found.append(Claim(rig.name, _SIZE, "the disk", on, room.bytes))
            if rig.mirrors_disk:
                what = "the second side that resilver gives it"
                found.append(Claim(rig.name, "saturator", what, on, room.bytes))
        with contextlib.suppress(LabError):  # a clone that cannot be made has no size: others say why
            found += [await _copy(rig, room) for room in _rooms(rig.make_clone())]
        if (test_bytes := uses.measured.get(rig.name)) and rig.files:
            on = await _disk(rig, rig.files.folder)
            found.append(Claim(rig.name, _TEST_DATA, "the test data", on, test_bytes))
    goldens = {(rig.machine.name, rig.golden.folder): rig for rig in rigs if rig.golden}
    for (_, folder), rig in goldens.items():
        if not await _is_made(rig):
            on = await _file_system(rig.machine, folder)
            found.append(Claim(rig.name, "work", "the site to copy", on, await _size_bytes(rig, folder)))
    return [*found, *await _fillings(rigs, uses.fill_percent, found)]


async def _fillings(
    rigs: Sequence[Rig], fill_percent: Mapping[str, int], beside: Sequence[Claim]
) -> list[Claim]:
    """Return what volumes are filled with beside the clones; those on one volume have equal parts of it."""
    volumes: dict[str, list[tuple[Rig, FileSystem]]] = {}
    for rig in rigs:
        if rig.filling and rig.name in fill_percent:
            on = await _disk(rig, rig.filling.folder)
            volumes.setdefault(on.name, []).append((rig, on))
    found: list[Claim] = []
    for name, each in volumes.items():
        copies = sum(
            claim.bytes
            for claim in beside
            if claim.on.name == name and claim.adds_up and claim.key != _TEST_DATA
        )
        used, free = await _used_and_free(*each[0])
        lacking = max(fill_percent[each[0][0].name] * (used + free) // 100 - used - copies, 0)
        found += [
            Claim(rig.name, "precondition.fill_percent", "the filling", on, lacking // len(each))
            for rig, on in each
        ]
    return found


async def _used_and_free(rig: Rig, on: FileSystem) -> tuple[int, int]:
    """Return the bytes of a volume in use, and those that are free; of one that is not there yet, all are."""
    if rig.filling is None or (rig.place and rig.place.size_bytes is not None):
        return 0, on.free_bytes
    said = numbers((await rig.machine.run(rig.filling.room(), check=False)).out)
    return (said[0], said[1]) if len(said) == 2 else (0, on.free_bytes)


async def _copy(rig: Rig, room: Room) -> Claim:
    """Return the claim of a clone: on a disk that is still to be made, it has that to itself."""
    made = rig.place is not None and rig.place.size_bytes is not None
    on, key = await _disk(rig, room.folder), _SIZE if made else "disk"
    of = await _file_system(rig.machine, room.like) if room.like and rig.golden else None
    size_bytes = room.bytes + (await _size_bytes(rig, room.like) if room.like else 0)
    return Claim(rig.name, key, "the clone", on, size_bytes, await _most_bytes(rig), of)


async def _disk(rig: Rig, folder: str) -> FileSystem:
    """Return the file system that `folder` is on: a disk that is still to be made holds its rig's alone."""
    place = rig.place
    if place is None or place.size_bytes is None:
        return await _file_system(rig.machine, folder)
    return FileSystem(f"the disk of {rig.name}", "the disk", place.size_bytes, remedy="make it larger")


def _rooms(part: StepGroup) -> list[Room]:
    return [step for step in part.steps if isinstance(step, Room)]


async def _is_made(rig: Rig) -> bool:
    return rig.golden is None or bool(rig.golden.settings.data) or await rig.golden.whole(rig.machine)


async def _size_bytes(rig: Rig, folder: str) -> int:
    """Return what the folder to copy takes, or about what it will, once it is made; 0 where it is missing."""
    if rig.golden and not await _is_made(rig):
        return rig.golden.about_bytes(await _memory_bytes(rig.machine))
    done = await rig.machine.run(["du", "-sx", "-B1", "--", folder], check=False, timeout_s=_DU_S)
    first = done.out.split("\t")[0]
    return int(first) if first.isdecimal() else 0


async def _most_bytes(rig: Rig) -> int:
    """Return what the clone may come to take; 0 where that is no more than at first, or cannot be told."""
    command = driver_of(rig.backend.clone).grows(rig.backend.clone)
    if command is None:
        return 0
    said = (await rig.machine.run(command.words, check=False, timeout_s=command.timeout_s)).out.strip()
    return int(said) if said.isdecimal() else 0


async def _memory_bytes(machine: Machine) -> int:
    found = _MEMORY.search((await machine.run(["cat", "/proc/meminfo"], check=False)).out)
    return int(found[1]) << 10 if found else 0


async def _file_system(machine: Machine, folder: str) -> FileSystem:
    return file_system((await machine.run(["sh", "-c", _FREE, "sh", folder])).out)


def _by_file_system(claims: Sequence[Claim]) -> list[list[Claim]]:
    names = dict.fromkeys(claim.on.name for claim in claims)
    return [[claim for claim in claims if claim.on.name == name] for name in names]


def _free_bytes(claims: Sequence[Claim]) -> int:
    """Return the room of their file system: the most, since a dataset's quota may leave it less."""
    return max(claim.on.free_bytes for claim in claims)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.1f} GiB"
