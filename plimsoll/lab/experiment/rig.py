"""One backend at work: its machine, its disk and its clone, made, tuned, found again, and removed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from plimsoll.common.programs import project
from plimsoll.lab.clones import find_driver, prepare_clone
from plimsoll.lab.clones.clone import Clone, CloneContext, CloneDetails, CloneKit
from plimsoll.lab.disks import find_disk_kind, make_disk
from plimsoll.lab.disks.caches import with_caches
from plimsoll.lab.disks.disk import Disk, Place
from plimsoll.lab.disks.limits import LimitedMachine
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.design import variants
from plimsoll.lab.experiment.labfile import Backend, Lab
from plimsoll.lab.experiment.machines import Machines
from plimsoll.lab.fileio.measure import VolumeFiles
from plimsoll.lab.fileio.precondition import Filling
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import Label
from plimsoll.lab.observers.fsync import FsyncProbe, FsyncProbeSettings, ProbeFile
from plimsoll.lab.saturators import aim_saturator
from plimsoll.lab.saturators import find_saturator_kind as saturator_kind
from plimsoll.lab.saturators.saturator import SaturatorSettings
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.lab.steps.step import Remains, Step, fill
from plimsoll.lab.tuning import JournalPlace, Tuning, TuningPlan, apply_tuning, put_back
from plimsoll.lab.tuning.plan import creation_properties, resolve_own

_PAUSES_S = (1.0, 3.0, 10.0, 20.0)  # before each new attempt: whatever uses it may be about to end
OnStep = Callable[[str, Step], None]  # gets the backend, and the step about to be carried out


@dataclass(frozen=True)
class StepGroup:
    """Steps that belong together, under a heading."""

    says: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Saturated:
    """What keeps a backend's disks busy, not aimed yet, and its label."""

    settings: SaturatorSettings
    label: str


class Rig:
    """A backend, its disk and its clone: `check --plan` shows the steps that `plimsoll run` carries out."""

    def __init__(
        self,
        backend: Backend,
        machine: Machine,
        disk: Disk | None,
        kit: CloneKit,
        files: VolumeFiles | None,
        filling: Filling | None,
        on_step: OnStep,
        saturated: Saturated | None = None,
        probe: ProbeFile | None = None,
    ) -> None:
        self.backend, self.machine, self.disk, self.clone = backend, machine, disk, kit.clone
        self.files, self.filling = files, filling  # of fileio and precondition, where it has a disk
        self._saturated, self._probe = saturated, probe
        self.golden, self._api, self._on_step = kit.golden, kit.api, on_step
        self._read_details = kit.read_details
        self.variants: dict[str, tuple[Backend, Clone]] = {}  # by variant, where factors make several of it
        self.changed = False  # whether a run changed the site since it was as created
        self.stands = False  # whether the lab made it, whole or in part
        self.on_group: Callable[[str], None] = lambda _: None  # gets the heading of steps about to be done
        self.forget()

    @property
    def name(self) -> str:
        """The backend's name."""
        return self.backend.name

    @property
    def is_ours(self) -> bool:
        """True if the lab made the clone: then scenarios may change its site."""
        return find_driver(self.backend.clone).is_ours

    @property
    def place(self) -> Place | None:
        """The place of its clone, None where it has no disk."""
        return self.disk.place() if self.disk else None

    @property
    def mirrors_disk(self) -> bool:
        """True if its saturator needs as much room again as the disk that the lab makes."""
        busy = self._saturated
        return busy is not None and self.makes_disk and saturator_kind(busy.settings).mirrors_disk

    @property
    def makes_disk(self) -> bool:
        """True if the lab makes the disk, whose device has no name before."""
        return self.backend.disk is not None and find_disk_kind(self.backend.disk).is_made

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of its disk by name, once that is made."""
        place, captured = self.place, self.runner.captured
        named = place.devices if place else ()
        return tuple(fill(device, captured).removeprefix("/dev/") for device in named)

    def tuning(self, of_clone: bool) -> Tuning:
        """Return its tuning, with the names of its own disk, and `of_clone` those of the clone's datasets."""
        place, parts = self.place, self.clone.data().parts if of_clone else {}
        return resolve_own(self.backend.tuning, self.devices, place.dataset if place else None, parts)

    def use_variant(self, variant: str) -> None:
        """Take the settings of a variant for what comes next: disk and clone stay what they are."""
        self.backend, self.clone = self.variants.get(variant, (self.backend, self.clone))

    def forget(self) -> None:
        """Forget what was captured: everything is to be made again."""
        self.runner = StepRunner(self.machine, self._api, self.note_step)
        self.changed = self.stands = False

    def note_step(self, step: Step) -> None:
        """Note a step that is about to be carried out."""
        self._on_step(self.name, step)

    async def prepare(self) -> StepGroup:
        """Return the steps that make what stays on a machine: the site that clones are copies of."""
        golden = self.golden
        steps = golden.make() if golden and not await golden.whole(self.machine) else []
        return StepGroup("make the site to copy", tuple(steps))

    def make_disk(self) -> StepGroup:
        """Return the steps that make the disk."""
        return StepGroup("make the disk", tuple(self.disk.create()) if self.disk else ())

    def make_clone(self) -> StepGroup:
        """Return the steps that make the clone, with the disk as fast as it can be."""
        return StepGroup("clone the site", tuple(self.clone.create()))

    def limit(self) -> StepGroup:
        """Return the steps that make the disk as slow as it is to be."""
        return StepGroup("limit the disk", tuple(self.disk.limit()) if self.disk else ())

    async def create(self, tuning: JournalPlace) -> None:
        """Make it all; the site is copied with the host tuned, since what is written keeps some of it.

        `tuning` is the journal of that. Raises LabError.
        """
        self.stands = True
        await self.do([await self.prepare(), self.make_disk()])
        async with self.tune(tuning, of_clone=False):
            await self.do([self.make_clone()])
        await self.do([self.limit()])

    @contextlib.asynccontextmanager
    async def tune(self, journal: JournalPlace, of_clone: bool = True) -> AsyncIterator[TuningPlan]:
        """Tune the host within the block, as given; what a crash left in `journal` is put back first.

        `of_clone`: also the clone's own datasets, which are created with what holds for what is written.
        """
        await put_back(self.machine, journal, self.note_step)
        try:
            yield await apply_tuning(self.machine, self.tuning(of_clone), journal, self.note_step)
        finally:
            await put_back(self.machine, journal, self.note_step)

    async def read_details(self) -> CloneDetails:
        """Return what is known of the clone only now that it stands. Looks only. Raises LabError."""
        return await self._read_details(self.runner.captured) if self._read_details else CloneDetails()

    def reset(self, restore: bool) -> StepGroup:
        """Return the steps before a run; with `restore`, the data are put back as they were."""
        return StepGroup(
            "restart" + (", with the data as they were" if restore else ""),
            tuple(self.clone.reset(restore)),
        )

    def stop(self) -> StepGroup:
        """Return the steps after a run."""
        return StepGroup("stop the clone", tuple(self.clone.stop()))

    def remove(self, filled: bool = False) -> list[StepGroup]:
        """Return the steps that remove it all, at the end; with what a disk that exists was `filled` with."""
        parts = [StepGroup("remove the clone", tuple(self.clone.destroy()))]
        if self.filling and filled and not self.makes_disk:
            parts.append(StepGroup("remove the filling", (self.filling.remove(),)))
        if self.disk:
            parts.append(StepGroup("remove the disk", tuple(self.disk.destroy())))
        return [part for part in parts if part.steps]

    async def find_remains(self, filling: bool = True) -> list[Remains]:
        """Return the remains of this backend, in the order of removal. Looks only. Raises MachineError.

        `filling`: also what its volume is filled with, on a disk that exists.
        """
        found = await self.clone.find(self.machine)
        found += await self._probe.find(self.machine, self.name) if self._probe else []
        found += await self.files.find(self.machine, self.name) if self.files else []
        found += await self.filling.find(self.machine, self.name) if self.filling and filling else []
        found += await self.disk.find(self.machine) if self.disk else []
        return found + await self._find_saturator_remains()

    async def _find_saturator_remains(self) -> list[Remains]:
        """Return what its saturator left, where that goes neither with the clone nor with the disk."""
        if (busy := self._saturated) is None:
            return []
        settings = busy.settings
        with contextlib.suppress(ValueError):  # what cannot be aimed says so elsewhere
            settings = aim_saturator(settings, self.clone.data())
        return await saturator_kind(settings).find(self.machine, settings, busy.label, self.name)

    async def clear(self, say: Callable[[str], None] = lambda _: None, filling: bool = True) -> None:
        """Remove everything of this backend, whoever left it. Raises LabError where something stays.

        Without `filling`, what its volume is filled with stays, on a disk that exists.

        What comes later in the order lies below what comes before: after a failure nothing else is removed
        until that is gone.
        """
        for pause_s in (*_PAUSES_S, None):
            found = await self.find_remains(filling)
            if not found:
                break
            try:
                for one in found:
                    say(f"removing {one.what}")
                    runner = StepRunner(self.machine, self._api, self.note_step)
                    runner.captured.update(one.captured)
                    await runner.do(one.remove)
            except LabError as error:
                if pause_s is None:
                    raise LabError(f"cannot remove {one.what}: {error}") from None
                await asyncio.sleep(pause_s)
        else:
            if found := await self.find_remains(filling):
                raise LabError(f"still there after removal: {'; '.join(one.what for one in found)}")
        self.forget()

    def saturator(self, lab: Lab) -> SaturatorSettings | None:
        """Return the settings of this backend's saturator, aimed at its clone. Raises LabError."""
        settings = self.backend.saturator or lab.saturator
        if settings is None:
            return None
        try:
            return aim_saturator(settings, self.clone.data())
        except ValueError as error:
            raise LabError(f"{self.name}: saturator: {error}") from None

    @property
    def probed(self) -> FsyncProbe | None:
        """The file of its fsync probe, None where no folder of it is known; its disk has to stand."""
        captured = self.runner.captured
        return FsyncProbe(self.under_limits(self.machine, captured), self._probe) if self._probe else None

    def under_limits(self, machine: Machine, captured: Mapping[str, str]) -> Machine:
        """Return `machine` for the saturator: on a disk with limits it works under them too."""
        group = self.place.group if self.place else None
        return LimitedMachine(machine, fill(group, captured)) if group else machine

    async def do(self, parts: list[StepGroup]) -> None:
        """Carry `parts` out. Raises LabError."""
        for part in parts:
            if part.steps:
                self.on_group(part.says)
            await self.runner.do(part.steps)


async def build_rigs(lab: Lab, machines: Machines, on_step: OnStep) -> list[Rig]:
    """Return all rigs. Raises LabError with all that is missing."""
    rigs, problems = dict[str, Rig](), dict[str, None]()
    for variant in variants(lab):
        backend = variant.backend
        try:
            rig = await build_rig(variant.lab, backend, machines.of(backend), on_step)
        except LabError as error:
            problems[f"{backend.name}: {error}"] = None
            continue
        rigs.setdefault(variant.rig, rig).variants[variant.name] = (rig.backend, rig.clone)
    if problems:
        raise LabError("\n".join(problems))
    return list(rigs.values())


def rigs_by_variant(rigs: list[Rig]) -> dict[str, Rig]:
    """Return the rig of each variant by the variant's name; without factors, of each backend."""
    return {name: rig for rig in rigs for name in rig.variants}


async def build_rig(lab: Lab, backend: Backend, machine: Machine, on_step: OnStep) -> Rig:
    """Return the rig of `backend`; looks at what a clone is made of, changes nothing. Raises LabError."""
    label = Label(lab.name)
    storage = make_disk(backend.disk, label, backend.name, lab.work) if backend.disk else None
    place = storage.place() if storage else None
    try:
        name, parts = label.of(backend.name), creation_properties(backend.tuning)
        caches = with_caches(lab.cache, place, name) if place else None
        around = CloneContext(machine, name, caches, lab.site, lab.work, str(project()), parts)
        kit = await prepare_clone(backend.clone, around)
    except ValueError as error:  # a clone that this disk cannot hold
        raise LabError(f"clone: {error}") from None
    files, filling = (VolumeFiles(place, name), Filling(place, name)) if place else (None, None)
    busy = backend.saturator or lab.saturator
    saturated = Saturated(busy, label.saturator(backend.name)) if busy else None
    # On a disk whose clone is not the lab's, nothing is written unless lab.yml says where.
    ours = place.folder if place and find_driver(backend.clone).is_ours else None
    named = lab.observe.own(FsyncProbeSettings)
    folder = (named and named.folder) or kit.clone.data().own or ours
    probe = ProbeFile(folder, name) if folder and "fsync" in lab.observe.observe else None
    return Rig(backend, machine, storage, kit, files, filling, on_step, saturated, probe)
