"""From lab.yml to rigs: the machines, disks and clones of its backends."""

from plimsoll.common.programs import project
from plimsoll.lab.clones import clone_of, driver_of
from plimsoll.lab.clones.clone import Surroundings
from plimsoll.lab.disks import make_disk
from plimsoll.lab.disks.caches import with_caches
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.factors.variants import variants
from plimsoll.lab.experiment.rig import OnStep, Rig, Saturated
from plimsoll.lab.experiment.settings import LOCAL, Backend, Lab
from plimsoll.lab.fileio.measure import VolumeFiles
from plimsoll.lab.fileio.precondition import Filling
from plimsoll.lab.machine import LocalMachine, Machine
from plimsoll.lab.names import Label
from plimsoll.lab.observers.settings import ProbePlace
from plimsoll.lab.tuning.plan import created_with


class Machines:
    """The machines of an experiment, each connected to once."""

    def __init__(self, lab: Lab) -> None:
        self.here = LocalMachine(LOCAL)
        self._others = {host.name: host.machine() for host in lab.hosts}

    def of(self, backend: Backend) -> Machine:
        """Return the machine with the backend's disks."""
        return self.here if backend.host == LOCAL else self._others[backend.host]

    def used(self, lab: Lab) -> list[Machine]:
        """Return the machines whose disks are used, each once."""
        return list({backend.host: self.of(backend) for backend in lab.backends}.values())

    async def close(self) -> None:
        """End all connections, and what still runs over them."""
        machines: list[Machine] = [*self._others.values(), self.here]
        for machine in machines:
            await machine.close()


async def rig_of(lab: Lab, backend: Backend, machine: Machine, on_step: OnStep) -> Rig:
    """Return the rig of `backend`; looks at what a clone is made of, changes nothing. Raises LabError."""
    label = Label(lab.name)
    storage = make_disk(backend.disk, label, backend.name, lab.work) if backend.disk else None
    place = storage.place() if storage else None
    try:
        name, parts = label.of(backend.name), created_with(backend.tuning)
        caches = with_caches(lab.cache, place, name) if place else None
        around = Surroundings(machine, name, caches, lab.site, lab.work, str(project()), parts)
        kit = await clone_of(backend.clone, around)
    except ValueError as error:  # a clone that this disk cannot hold
        raise LabError(f"clone: {error}") from None
    files, filling = (VolumeFiles(place, name), Filling(place, name)) if place else (None, None)
    busy = backend.saturator or lab.saturator
    saturated = Saturated(busy, label.saturator(backend.name)) if busy else None
    # On a disk whose clone is not the lab's, nothing is written unless lab.yml says where.
    ours = place.folder if place and driver_of(backend.clone).is_ours else None
    folder = lab.observe.fsync.folder or kit.clone.data().own or ours
    probe = ProbePlace(folder, name) if folder and "fsync" in lab.observe.observe else None
    return Rig(backend, machine, storage, kit, files, filling, on_step, saturated, probe)


async def rigs_of(lab: Lab, machines: Machines, on_step: OnStep) -> list[Rig]:
    """Return all rigs. Raises LabError with all that is missing."""
    rigs, problems = dict[str, Rig](), dict[str, None]()
    for variant in variants(lab):
        backend = variant.settings
        try:
            rig = await rig_of(variant.lab, backend, machines.of(backend), on_step)
        except LabError as error:
            problems[f"{backend.name}: {error}"] = None
            continue
        rigs.setdefault(variant.rig, rig).outfits[variant.name] = (rig.backend, rig.clone)
    if problems:
        raise LabError("\n".join(problems))
    return list(rigs.values())


def by_variant(rigs: list[Rig]) -> dict[str, Rig]:
    """Return the rig of each variant by the variant's name; without factors, of each backend."""
    return {name: rig for rig in rigs for name in rig.outfits}
