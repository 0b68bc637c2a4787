"""Whether an experiment can start: what its machines lack, and what does not fit."""

import asyncio
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from plimsoll.common.programs import project
from plimsoll.common.units import listed
from plimsoll.lab.clones import find_driver
from plimsoll.lab.clones.clone import CloneContext
from plimsoll.lab.disks import find_disk_kind as disk_kind
from plimsoll.lab.disks.caches import can_be_cold
from plimsoll.lab.errors import LabError, MachineError, last_words
from plimsoll.lab.experiment.design import (
    Variant,
    measured_rigs,
    preconditioned_rigs,
    variants,
)
from plimsoll.lab.experiment.labfile import LOCAL, Backend, Lab
from plimsoll.lab.experiment.machines import AskedOnce, Machines, lock_check
from plimsoll.lab.experiment.rig import Rig, StepGroup, build_rig
from plimsoll.lab.experiment.scenarios import find_problems_here
from plimsoll.lab.fileio.precondition import parse_numbers
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import PARTS, Label
from plimsoll.lab.saturators import find_saturator_kind as saturator_kind
from plimsoll.lab.steps.runner import answer_of
from plimsoll.lab.steps.step import Check, Command, Room, Serve, is_device
from plimsoll.lab.tuning.apply import find_left_tuned
from plimsoll.lab.tuning.apply import plan_for_host as planned_tuning
from plimsoll.lab.tuning.plan import drop_own, resolve_own

_EVERYWHERE = {"env", "sh", "rm", "cat", "tee", "mkdir", "printf"}
_SIZE, _TEST_DATA = "disk.size_bytes", "fileio.file_size"
_DU_S = 3600.0

# $1: a folder that may not be there yet. Prints the one above it that is, and what df says of that.
_FREE = """here=$1
until [ -e "$here" ]; do here=$(dirname -- "$here"); done
printf '%s\\n' "$here" && df -P -T -B1 -- "$here" | sed 1d"""
_DF = re.compile(r"(?P<source>.*?)\s+(?P<type>\S+)\s+[0-9]+\s+[0-9]+\s+(?P<free>[0-9]+)\s+\S+\s+(?P<at>/.*)")
_MEMORY = re.compile(r"(?m)^MemTotal:\s*([0-9]+) kB")


@dataclass
class ProbeResult:
    """What was found on the machines, one sentence each.

    `problems` are missing, or in the way; `cautions` do not keep the experiment from starting.
    """

    problems: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class VolumeUses:
    """What is done to the volumes of rigs before the runs.

    `measured`: the bytes of the test files of fileio, `fill_percent`: how full they are made.
    """

    measured: Mapping[str, int] = field(default_factory=dict)
    fill_percent: Mapping[str, int] = field(default_factory=dict)


async def probe_machines(lab: Lab) -> ProbeResult:
    """Return what keeps the experiment from starting. Changes nothing, and asks each question once."""
    found = ProbeResult(find_problems_here(lab))
    uses = VolumeUses(
        {name: lab.fileio.most_bytes for name in measured_rigs(lab) if lab.fileio},
        {name: lab.precondition.fill_percent for name in preconditioned_rigs(lab) if lab.precondition},
    )
    machines = Machines(lab)
    try:
        for machine in machines.used(lab):
            asked = AskedOnce(machine)
            try:
                busy = await _ask(asked, [lock_check()]) or await find_left_tuned(asked)
                found.problems += [f"{machine.name}: {what}" for what in busy]
            except LabError as error:  # then it can be asked nothing
                found.problems.append(str(error))
                continue
            mine = [one for one in variants(lab) if machines.of(one.backend) is machine]
            await _probe_backends(mine, asked, uses, found)
    finally:
        await machines.close()
    found.problems = list(dict.fromkeys(found.problems))
    return found


async def _probe_backends(
    among: Sequence[Variant], machine: Machine, uses: VolumeUses, found: ProbeResult
) -> None:
    """Add the problems of the backends of one machine; what several share is named once."""
    whose: dict[str, list[str]] = {}
    probed: list[tuple[Any, ...]] = []
    rigs: dict[str, Rig] = {}
    for variant in among:
        lab, backend = variant.lab, variant.backend
        if (key := (backend, lab.saturator, lab.observe, lab.site)) in probed:
            continue
        probed.append(key)
        try:
            problems, rig = await _probe_backend(lab, backend, machine, variant.rig, uses)
        except LabError as error:  # the connection broke
            problems, rig = [str(error)], None
        for what in problems:
            whose.setdefault(what, []).append(backend.name)
        if rig is not None:
            rigs.setdefault(rig.name, rig)
    for name, rig in rigs.items():
        try:
            problems = [
                f"is in the way and will be removed first: {one.what}" for one in await rig.find_remains()
            ]
        except LabError as error:
            problems = [str(error)]
        for what in problems:
            whose.setdefault(what, []).append(name)
    try:
        claims = await collect_claims(list(rigs.values()), uses)
    except LabError as error:
        claims = []
        found.problems.append(str(error))
    for name, what in find_shortages(claims):
        whose.setdefault(what, []).append(name)
    found.problems += [
        ": ".join(filter(None, (listed(list(dict.fromkeys(names))), what))) for what, names in whose.items()
    ]
    found.cautions += find_growth_risks(claims)


async def _probe_backend(
    lab: Lab, backend: Backend, machine: Machine, called: str, uses: VolumeUses
) -> tuple[list[str], Rig | None]:
    """Return all problems of one backend, each looked for whatever the others came to, and its rig.

    `called`: the rig's name in the whole experiment.
    """
    problems: list[str] = []
    try:
        problems += await _check_privileges(backend, machine)
        rig = await build_rig(lab, backend, machine, lambda _name, _step: None)
    except LabError as error:
        return [*problems, str(error)], None
    remains = False
    for look_for in (_check_programs, _check_tuning):
        try:
            problems += await look_for(lab, backend, rig)
        except LabError as error:
            problems.append(str(error))
    with contextlib.suppress(LabError):  # who asks for them says why
        remains = bool(await rig.find_remains())
    checks = [one for one in _list_checks(lab, backend, machine) if not (one.ours and remains)]
    if called in uses.measured and rig.files:
        checks += rig.files.checks()
        problems += await _missing_programs(machine, lab.fileio.programs if lab.fileio else set())
    if called in uses.fill_percent and rig.filling:
        checks += rig.filling.checks()
        problems += await _missing_programs(machine, {"fio"})
    problems += await _ask(machine, checks)
    problems += await _unserved_sites(rig)
    try:
        rig.saturator(lab)
    except LabError as error:
        problems.append(str(error).removeprefix(f"{backend.name}: "))
    return problems, rig


def _list_checks(lab: Lab, backend: Backend, machine: Machine) -> list[Check]:
    """Return the checks of what `backend` needs, in the order in which a run needs it. Pure."""
    checks: list[Check] = []
    label, place = Label(lab.name), None
    if backend.disk is not None:
        kind = disk_kind(backend.disk)
        checks += kind.checks(backend.disk, lab.work)
        place = kind.make(backend.disk, label, backend.name, lab.work).place()
        checks += can_be_cold(place, backend.name) if lab.cache == "cold" else []
    around = CloneContext(machine, label.of(backend.name), place, lab.site, lab.work, str(project()))
    checks += find_driver(backend.clone).checks(backend.clone, around)
    if (saturator := backend.saturator or lab.saturator) is not None:
        checks += saturator_kind(saturator).checks(saturator)
    checks += [is_device("observe.disks", name) for name in lab.observe.disks]
    return checks + lab.observe.checks()


async def _ask(machine: Machine, checks: list[Check]) -> list[str]:
    """Return the problems that `checks` find, whose commands say why on standard error.

    Raises MachineError where the machine cannot be asked.
    """
    problems = []
    for one in checks:
        try:
            done = await machine.run(one.words, check=False, timeout_s=one.timeout_s)
        except MachineError as error:
            if not error.command:
                raise
            problems.append(f"{one.problem}: {error}")
            continue
        if done.status:
            problems.append(": ".join([one.problem, *([last_words(done.err)] if done.err.strip() else [])]))
    return problems


async def _check_programs(lab: Lab, backend: Backend, rig: Rig) -> list[str]:
    parts = [rig.make_disk(), rig.make_clone(), rig.reset(True), rig.stop(), *rig.remove()]
    words = {step.words[0] for part in parts for step in part.steps if isinstance(step, Command)}
    if (saturator := backend.saturator or lab.saturator) is not None:
        words |= saturator_kind(saturator).programs
    return await _missing_programs(rig.machine, words - _EVERYWHERE)


async def _missing_programs(machine: Machine, programs: Set[str]) -> list[str]:
    return [
        f"{machine.name} has no {word}: install it"
        for word in sorted(programs)
        if (await machine.run(["sh", "-c", 'command -v -- "$1"', "sh", word], check=False)).status
    ]


async def _check_privileges(backend: Backend, machine: Machine) -> list[str]:
    needs_root = find_driver(backend.clone).needs_disk or backend.tuning.model_dump(exclude_defaults=True)
    if not needs_root or (await machine.run(["id", "-u"])).out.strip() == "0":
        return []
    how = "run plimsoll as root" if backend.host == LOCAL else "log in as root, or set become: true"
    return [f"{machine.name}: only root can make disks and clones, and tune: {how}"]


async def _unserved_sites(rig: Rig) -> list[str]:
    """Return what keeps a site that exists from serving, asked once."""
    if rig.is_ours:
        return []
    steps = [step for step in rig.clone.create() if isinstance(step, Serve)]
    asked = [(step, await asyncio.to_thread(answer_of, step)) for step in steps]
    return [f"clone.target: {step.url}: does not serve the site: {why}" for step, why in asked if why]


async def _check_tuning(lab: Lab, backend: Backend, rig: Rig) -> list[str]:
    tuning, place = backend.tuning, rig.place
    if place is not None and rig.makes_disk:  # whose device and pool are not there yet
        pool = Label(lab.name).of(backend.name)
        datasets = {name: one for name, one in tuning.datasets.items() if name.partition("/")[0] != pool}
        tuning = drop_own(tuning.model_copy(update={"datasets": datasets}))
    elif place is not None:
        # Datasets of a clone, which are not there yet, will have the properties that the one above them has.
        above = [place.dataset] if place.dataset else []
        tuning = resolve_own(tuning, place.devices, place.dataset, dict.fromkeys(PARTS, above))
    try:
        await planned_tuning(rig.machine, tuning)
    except LabError as error:
        return [f"tuning: {line}" for line in str(error).splitlines()]
    return []


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


def find_shortages(claims: Sequence[Claim]) -> Iterator[tuple[str, str]]:
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


def find_growth_risks(claims: Sequence[Claim]) -> Iterator[str]:
    """Yield what fits as it is made, and may grow to more than there is room for. Pure."""
    for here in _by_file_system(claims):
        growing = [claim for claim in here if claim.most_bytes > claim.bytes]
        grown_bytes = sum(max(claim.bytes, claim.most_bytes) for claim in here)
        if not growing or grown_bytes <= _free_bytes(here) or any(find_shortages(here)):
            continue
        parts = listed([f"{claim.what} of {claim.backend} to {_gib(claim.most_bytes)}" for claim in growing])
        yield (
            f"what is made fits, but guests may write more: {parts}; {here[0].on.name} has "
            f"{_gib(_free_bytes(here))}, and a guest that runs out of room gets errors"
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


async def collect_claims(rigs: Sequence[Rig], uses: VolumeUses) -> list[Claim]:
    """Return the room that `rigs` take: disks, copies of the site, and that site if it is still to be made.

    With the test files of those that are measured, and what volumes are filled with. Raises LabError.
    """
    found: list[Claim] = []
    for rig in rigs:
        for room in _list_rooms(rig.make_disk()):
            on = await _ask_file_system(rig.machine, room.folder)
            found.append(Claim(rig.name, _SIZE, "the disk", on, room.bytes))
            if rig.mirrors_disk:
                what = "the second side that resilver gives it"
                found.append(Claim(rig.name, "saturator", what, on, room.bytes))
        with contextlib.suppress(LabError):  # a clone that cannot be made has no size: others say why
            found += [await _claim_copy(rig, room) for room in _list_rooms(rig.make_clone())]
        if (test_bytes := uses.measured.get(rig.name)) and rig.files:
            on = await _find_file_system(rig, rig.files.folder)
            found.append(Claim(rig.name, _TEST_DATA, "the test data", on, test_bytes))
    goldens = {(rig.machine.name, rig.golden.folder): rig for rig in rigs if rig.golden}
    for (_, folder), rig in goldens.items():
        if not await _is_made(rig):
            on = await _ask_file_system(rig.machine, folder)
            found.append(Claim(rig.name, "work", "the site to copy", on, await _read_size_bytes(rig, folder)))
    return [*found, *await _claim_fillings(rigs, uses.fill_percent, found)]


async def _claim_fillings(
    rigs: Sequence[Rig], fill_percent: Mapping[str, int], beside: Sequence[Claim]
) -> list[Claim]:
    """Return what volumes are filled with beside the clones; those on one volume have equal parts of it."""
    volumes: dict[str, list[tuple[Rig, FileSystem]]] = {}
    for rig in rigs:
        if rig.filling and rig.name in fill_percent:
            on = await _find_file_system(rig, rig.filling.folder)
            volumes.setdefault(on.name, []).append((rig, on))
    found: list[Claim] = []
    for name, each in volumes.items():
        copies = sum(
            claim.bytes
            for claim in beside
            if claim.on.name == name and claim.adds_up and claim.key != _TEST_DATA
        )
        used, free = await _read_used_and_free(*each[0])
        lacking = max(fill_percent[each[0][0].name] * (used + free) // 100 - used - copies, 0)
        found += [
            Claim(rig.name, "precondition.fill_percent", "the filling", on, lacking // len(each))
            for rig, on in each
        ]
    return found


async def _read_used_and_free(rig: Rig, on: FileSystem) -> tuple[int, int]:
    """Return the used and the free bytes of a volume; one that does not exist yet is all free."""
    if rig.filling is None or (rig.place and rig.place.size_bytes is not None):
        return 0, on.free_bytes
    said = parse_numbers((await rig.machine.run(rig.filling.room(), check=False)).out)
    return (said[0], said[1]) if len(said) == 2 else (0, on.free_bytes)


async def _claim_copy(rig: Rig, room: Room) -> Claim:
    """Return the claim of a clone: on a disk that is still to be made, it has that to itself."""
    made = rig.place is not None and rig.place.size_bytes is not None
    on, key = await _find_file_system(rig, room.folder), _SIZE if made else "disk"
    of = await _ask_file_system(rig.machine, room.like) if room.like and rig.golden else None
    size_bytes = room.bytes + (await _read_size_bytes(rig, room.like) if room.like else 0)
    return Claim(rig.name, key, "the clone", on, size_bytes, await _read_most_bytes(rig), of)


async def _find_file_system(rig: Rig, folder: str) -> FileSystem:
    """Return the file system that `folder` is on: a disk that is still to be made holds its rig's alone."""
    place = rig.place
    if place is None or place.size_bytes is None:
        return await _ask_file_system(rig.machine, folder)
    return FileSystem(f"the disk of {rig.name}", "the disk", place.size_bytes, remedy="make it larger")


def _list_rooms(part: StepGroup) -> list[Room]:
    return [step for step in part.steps if isinstance(step, Room)]


async def _is_made(rig: Rig) -> bool:
    return rig.golden is None or bool(rig.golden.settings.data) or await rig.golden.whole(rig.machine)


async def _read_size_bytes(rig: Rig, folder: str) -> int:
    """Return the size of the folder to copy, estimated if it is not made yet; 0 if it is missing."""
    if rig.golden and not await _is_made(rig):
        memory = _MEMORY.search((await rig.machine.run(["cat", "/proc/meminfo"], check=False)).out)
        return rig.golden.about_bytes(int(memory[1]) << 10 if memory else 0)
    done = await rig.machine.run(["du", "-sx", "-B1", "--", folder], check=False, timeout_s=_DU_S)
    first = done.out.split("\t")[0]
    return int(first) if first.isdecimal() else 0


async def _read_most_bytes(rig: Rig) -> int:
    """Return the bytes that the clone may grow to; 0 if it does not grow, or its limit is unknown."""
    command = find_driver(rig.backend.clone).grows(rig.backend.clone)
    if command is None:
        return 0
    said = (await rig.machine.run(command.words, check=False, timeout_s=command.timeout_s)).out.strip()
    return int(said) if said.isdecimal() else 0


async def _ask_file_system(machine: Machine, folder: str) -> FileSystem:
    return file_system((await machine.run(["sh", "-c", _FREE, "sh", folder])).out)


def _by_file_system(claims: Sequence[Claim]) -> list[list[Claim]]:
    names = dict.fromkeys(claim.on.name for claim in claims)
    return [[claim for claim in claims if claim.on.name == name] for name in names]


def _free_bytes(claims: Sequence[Claim]) -> int:
    """Return the room of their file system: the most, since a dataset's quota may leave it less."""
    return max(claim.on.free_bytes for claim in claims)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / (1 << 30):.1f} GiB"
