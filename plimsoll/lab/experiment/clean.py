"""What experiments of one name left, found and removed: by name, never by memory."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from plimsoll.common.errors import PlimsollError
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.design import Variant, rigs_in
from plimsoll.lab.experiment.folder import folders
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.machines import Machines, lock_machine
from plimsoll.lab.experiment.notices import LogLine
from plimsoll.lab.experiment.rig import build_rig
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import Label
from plimsoll.lab.tuning import JournalPlace, put_back
from plimsoll.lab.tuning.apply import find_journals


@dataclass(frozen=True)
class BackendRemains:
    """The leftovers of one backend."""

    backend: str
    machine: str
    what: tuple[str, ...]


async def remove_leftovers(lab: Lab, remove: bool, say: LogLine) -> list[BackendRemains]:
    """Return the leftovers of all experiments of this name; with `remove`, those that could not be removed.

    Raises LabError where another experiment is at work, or a machine cannot be asked.
    """
    found: list[BackendRemains] = []
    seen: set[tuple[str, ...]] = set()  # what decides what a backend can leave, and where
    for version in past_labs(lab):
        new = []
        for variant in rigs_in(version).values():
            backend = variant.backend
            busy = repr(backend.saturator or version.saturator)
            if (key := (backend.name, backend.host, backend.clone.driver, busy)) not in seen:
                seen.add(key)
                new.append(variant)
        if new:
            found += await _clean(version, new, lab, remove, say)
    return list(dict.fromkeys(found))


def past_labs(lab: Lab) -> list[Lab]:
    """Return `lab`, and what earlier experiments of its name began with: they may have had other backends."""
    found = [lab]
    for folder in folders(lab.out, lab.name):
        with contextlib.suppress(PlimsollError):
            found.append(folder.settings())
    return found


async def find_tunings(machine: Machine, lab: Lab) -> list[JournalPlace]:
    """Return the tunings of experiments of this name that `machine` still has. Raises LabError."""
    label = Label(lab.name)
    return [place for place in await find_journals(machine) if label.backend(place.label)]


async def _clean(
    version: Lab, among: Iterable[Variant], lab: Lab, remove: bool, say: LogLine
) -> list[BackendRemains]:
    machines, found = Machines(version), list[BackendRemains]()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(machines.close)
        for machine in machines.used(version) if remove else []:
            await stack.enter_async_context(lock_machine(machine, f"plimsoll clean of {lab.name}"))
        for variant in among:
            backend = variant.backend
            rig = await build_rig(variant.lab, backend, machines.of(backend), lambda _name, _step: None)
            if remove:
                for place in await find_tunings(rig.machine, lab):  # also of backends that no file has now
                    say(f"{rig.machine.name}: putting back the settings in {place.path}")
                    await put_back(rig.machine, place)
                try:
                    await rig.clear(say)
                except LabError as error:
                    raise LabError(f"{rig.name}: {error}") from None
            there = [one.what for one in await rig.find_remains()]
            there += [
                f"a tuning that must be put back: {place.path}"
                for place in await find_tunings(rig.machine, lab)
                if Label(lab.name).backend(place.label) == backend.name
            ]
            if there:
                found.append(BackendRemains(backend.name, rig.machine.name, tuple(there)))
    return found
