"""Looks at the machines before anything is done: what is missing there, and what would be in the way."""

import asyncio
import contextlib
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from plimsoll.common.programs import project
from plimsoll.common.units import listed
from plimsoll.lab.clones import driver_of
from plimsoll.lab.clones.clone import Surroundings
from plimsoll.lab.disks import find_disk_kind as disk_kind
from plimsoll.lab.disks.caches import can_be_cold
from plimsoll.lab.errors import LabError, MachineError, last_words
from plimsoll.lab.experiment.asked_once import AskedOnce
from plimsoll.lab.experiment.factors.variants import Variant, variants
from plimsoll.lab.experiment.lock import PATH
from plimsoll.lab.experiment.precondition_settings import preconditioned_rigs
from plimsoll.lab.experiment.probe_here import probe_here
from plimsoll.lab.experiment.probe_room import VolumeUses, cautions, claims_of, obstacles
from plimsoll.lab.experiment.rig import Rig
from plimsoll.lab.experiment.rigs import Machines, rig_of
from plimsoll.lab.experiment.settings import LOCAL, Backend, Lab
from plimsoll.lab.experiment.volumes import measured_rigs
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import PARTS, Label
from plimsoll.lab.saturators import find_saturator_kind as saturator_kind
from plimsoll.lab.steps.runner import answer_of
from plimsoll.lab.steps.step import Command, Look, Serve, is_device, is_file
from plimsoll.lab.tuning.apply import find_left_tuned
from plimsoll.lab.tuning.apply import plan_for_host as planned_tuning
from plimsoll.lab.tuning.plan import drop_own, resolve_own

_EVERYWHERE = {"env", "sh", "rm", "cat", "tee", "mkdir", "printf"}
_FREE = '[ ! -e "$1" ] || flock -n "$1" true || { cat "$1.by" >&2; exit 1; }'


@dataclass
class Findings:
    """What a look at the machines came to, one sentence each.

    `problems` are missing, or in the way; `cautions` do not keep the experiment from starting.
    """

    problems: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)


async def probe(lab: Lab) -> Findings:
    """Return what keeps the experiment from starting. Changes nothing, and asks each question once."""
    found = Findings(probe_here(lab))
    uses = VolumeUses(
        {name: lab.fileio.most_bytes for name in measured_rigs(lab) if lab.fileio},
        {name: lab.precondition.fill_percent for name in preconditioned_rigs(lab) if lab.precondition},
    )
    machines = Machines(lab)
    try:
        for machine in machines.used(lab):
            asked = AskedOnce(machine)
            try:
                found.problems += await _in_use(asked)
            except LabError as error:  # then it can be asked nothing
                found.problems.append(str(error))
                continue
            mine = [one for one in variants(lab) if machines.of(one.settings) is machine]
            await _backends(mine, asked, uses, found)
    finally:
        await machines.close()
    found.problems = list(dict.fromkeys(found.problems))
    return found


async def _in_use(machine: Machine) -> list[str]:
    """Return who is at work on `machine`, or else what a crash left tuned there. Raises LabError."""
    look = Look("another experiment uses this machine: wait until it ends", ("sh", "-c", _FREE, "sh", PATH))
    if busy := await _seen(machine, [look]):
        return [f"{machine.name}: {what}" for what in busy]
    return [f"{machine.name}: {what}" for what in await find_left_tuned(machine)]


async def _backends(among: Sequence[Variant], machine: Machine, uses: VolumeUses, found: Findings) -> None:
    """Add what is wrong of the backends of one machine: what is the same for several, once."""
    whose: dict[str, list[str]] = {}
    probed: list[tuple[Any, ...]] = []
    rigs: dict[str, Rig] = {}
    for variant in among:
        lab, backend = variant.lab, variant.settings
        if (key := (backend, lab.saturator, lab.observe, lab.site)) in probed:
            continue
        probed.append(key)
        try:
            problems, rig = await _backend(lab, backend, machine, variant.rig, uses)
        except LabError as error:  # the connection broke
            problems, rig = [str(error)], None
        for what in problems:
            whose.setdefault(what, []).append(backend.name)
        if rig is not None:
            rigs.setdefault(rig.name, rig)
    for name, rig in rigs.items():
        try:
            problems = [f"is in the way and will be removed first: {one.what}" for one in await rig.found()]
        except LabError as error:
            problems = [str(error)]
        for what in problems:
            whose.setdefault(what, []).append(name)
    try:
        claims = await claims_of(list(rigs.values()), uses)
    except LabError as error:
        claims = []
        found.problems.append(str(error))
    for name, what in obstacles(claims):
        whose.setdefault(what, []).append(name)
    found.problems += [
        ": ".join(filter(None, (listed(list(dict.fromkeys(names))), what))) for what, names in whose.items()
    ]
    found.cautions += cautions(claims)


async def _backend(
    lab: Lab, backend: Backend, machine: Machine, called: str, uses: VolumeUses
) -> tuple[list[str], Rig | None]:
    """Return all obstacles of one backend: each is looked for, whatever the others came to; and its rig.

    `called`: the rig's name in the whole experiment.
    """
    problems: list[str] = []
    try:
        problems += await _privileges(backend, machine)
        rig = await rig_of(lab, backend, machine, lambda _name, _step: None)
    except LabError as error:
        return [*problems, str(error)], None
    remains = False
    for look_for in (_programs, _tuning):
        try:
            problems += await look_for(lab, backend, rig)
        except LabError as error:
            problems.append(str(error))
    with contextlib.suppress(LabError):  # who asks for them says why
        remains = bool(await rig.found())
    looks = [look for look in _looks(lab, backend, machine) if not (look.ours and remains)]
    if called in uses.measured and rig.files:
        looks += rig.files.looks()
        problems += await _lacks(machine, lab.fileio.programs if lab.fileio else set())
    if called in uses.fill_percent and rig.filling:
        looks += rig.filling.looks()
        problems += await _lacks(machine, {"fio"})
    problems += await _seen(machine, looks)
    problems += await _served(rig)
    try:
        rig.saturator(lab)
    except LabError as error:
        problems.append(str(error).removeprefix(f"{backend.name}: "))
    return problems, rig


def _looks(lab: Lab, backend: Backend, machine: Machine) -> list[Look]:
    """Return what is to be looked at for `backend`, in the order in which a run needs it. Pure."""
    looks: list[Look] = []
    label, place = Label(lab.name), None
    if backend.disk is not None:
        kind = disk_kind(backend.disk)
        looks += kind.looks(backend.disk, lab.work)
        place = kind.make(backend.disk, label, backend.name, lab.work).place()
        looks += can_be_cold(place, backend.name) if lab.cache == "cold" else []
    around = Surroundings(machine, label.of(backend.name), place, lab.site, lab.work, str(project()))
    looks += driver_of(backend.clone).looks(backend.clone, around)
    if (saturator := backend.saturator or lab.saturator) is not None:
        looks += saturator_kind(saturator).looks(saturator)
    looks += [is_device("observe.disks", name) for name in lab.observe.disks]
    if lab.observe.mariadb is not None:
        looks.append(is_file("observe.mariadb.defaults_file", lab.observe.mariadb.defaults_file))
    return looks


async def _seen(machine: Machine, looks: list[Look]) -> list[str]:
    """Return what is wrong of `looks`, whose commands say why on standard error.

    Raises MachineError where the machine cannot be asked.
    """
    problems = []
    for look in looks:
        try:
            done = await machine.run(look.words, check=False, timeout_s=look.timeout_s)
        except MachineError as error:
            if not error.command:
                raise
            problems.append(f"{look.problem}: {error}")
            continue
        if done.status:
            problems.append(": ".join([look.problem, *([last_words(done.err)] if done.err.strip() else [])]))
    return problems


async def _programs(lab: Lab, backend: Backend, rig: Rig) -> list[str]:
    parts = [rig.make_disk(), rig.make_clone(), rig.reset(True), rig.rest(), *rig.remove()]
    words = {step.words[0] for part in parts for step in part.steps if isinstance(step, Command)}
    if (saturator := backend.saturator or lab.saturator) is not None:
        words |= saturator_kind(saturator).programs
    return await _lacks(rig.machine, words - _EVERYWHERE)


async def _lacks(machine: Machine, programs: Set[str]) -> list[str]:
    return [
        f"{machine.name} has no {word}: install it"
        for word in sorted(programs)
        if (await machine.run(["sh", "-c", 'command -v -- "$1"', "sh", word], check=False)).status
    ]


async def _privileges(backend: Backend, machine: Machine) -> list[str]:
    needs_root = driver_of(backend.clone).needs_disk or backend.tuning.model_dump(exclude_defaults=True)
    if not needs_root or (await machine.run(["id", "-u"])).out.strip() == "0":
        return []
    how = "run plimsoll as root" if backend.host == LOCAL else "log in as root, or set become: true"
    return [f"{machine.name}: only root can make disks and clones, and tune: {how}"]


async def _served(rig: Rig) -> list[str]:
    """Return what keeps a site that exists from serving, asked once."""
    if rig.is_ours:
        return []
    steps = [step for step in rig.clone.create() if isinstance(step, Serve)]
    asked = [(step, await asyncio.to_thread(answer_of, step)) for step in steps]
    return [f"clone.target: {step.url}: does not serve the site: {why}" for step, why in asked if why]


async def _tuning(lab: Lab, backend: Backend, rig: Rig) -> list[str]:
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
