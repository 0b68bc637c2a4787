"""One backend at work: its machine, its disk, the clone on it, and what steps captured."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.clones.clone import Found
from lab.clones.make import Made
from lab.disks.disk import Disk
from lab.disks.within import Within
from lab.doing import Doer
from lab.errors import LabError
from lab.experiment.settings import Backend, Lab
from lab.experiment.told import ToldMachine, changes_settings
from lab.machine import Machine
from lab.place import Place
from lab.saturators.pointed import pointed
from lab.saturators.settings import SaturatorSettings
from lab.steps import Step, fill
from lab.tuning import apply, put_back

_PAUSES_S = (1.0, 3.0, 10.0, 20.0)  # before it is tried again: who used it may be about to end

OnStep = Callable[[str, Step], None]  # the backend, and the step that is about to be carried out


@dataclass(frozen=True)
class Part:
    """Steps that belong together, under a heading."""

    says: str
    steps: tuple[Step, ...]


class Rig:
    """What `lab plan` shows of a backend and `plimsoll run` carries out are the same parts."""

    def __init__(
        self,
        backend: Backend,
        machine: Machine,
        disk: Disk | None,
        made: Made,
        on_step: OnStep,
    ) -> None:
        self.backend, self.machine, self.disk, self.clone = backend, machine, disk, made.clone
        self._golden, self._api, self._on_step = made.golden, made.api, on_step
        self.changed = False  # whether a run changed the site since it was as created
        self.stands = False  # whether it was made, whole or in part, by us
        self.forget()

    @property
    def name(self) -> str:
        """The backend's name."""
        return self.backend.name

    @property
    def place(self) -> Place | None:
        """Where its clone is."""
        return self.disk.place() if self.disk else None

    def forget(self) -> None:
        """Forget what was captured: everything is made anew."""
        self.doer = Doer(self.machine, self._api, self.tell)
        self.changed = self.stands = False

    def tell(self, step: Step) -> None:
        """Note a step that is about to be carried out."""
        self._on_step(self.name, step)

    async def prepare(self) -> Part:
        """What is made once on a machine, and stays: the site that clones are copies of."""
        golden = self._golden
        steps = golden.make() if golden and not await golden.whole(self.machine) else []
        return Part("make the site that is copied", tuple(steps))

    def make_disk(self) -> Part:
        """What makes the disk."""
        return Part("make the disk", tuple(self.disk.create()) if self.disk else ())

    def make_clone(self) -> Part:
        """What makes the clone, with the disk as fast as it can be."""
        return Part("clone the site", tuple(self.clone.create()))

    def limit(self) -> Part:
        """What makes the disk as slow as it is to be."""
        return Part("slow the disk down", tuple(self.disk.limit()) if self.disk else ())

    async def made(self, tuning: Path) -> None:
        """Make it all; the site is copied with the host tuned, since what is written keeps some of it.

        `tuning` is the journal of that. Raises LabError.
        """
        self.stands = True
        await self.do([await self.prepare(), self.make_disk()])
        async with self.tuned(tuning):
            await self.do([self.make_clone()])
        await self.do([self.limit()])

    @contextlib.asynccontextmanager
    async def tuned(self, journal: Path) -> AsyncIterator[None]:
        """Have the host tuned meanwhile; what a crash left in `journal` is put back first."""
        machine = ToldMachine(self.machine, self.tell, changes_settings)
        await put_back(machine, journal)
        try:
            await apply(machine, self.backend.tuning, journal)
            yield
        finally:
            await put_back(machine, journal)

    def reset(self, restore: bool) -> Part:
        """What comes before a run."""
        return Part(
            "begin anew" + (", with the data as they were" if restore else ""),
            tuple(self.clone.reset(restore)),
        )

    def rest(self) -> Part:
        """What comes after a run."""
        return Part("let it rest", tuple(self.clone.stop()))

    def remove(self) -> list[Part]:
        """What removes it all, at the end."""
        parts = [Part("remove the clone", tuple(self.clone.destroy()))]
        if self.disk:
            parts.append(Part("remove the disk", tuple(self.disk.destroy())))
        return [part for part in parts if part.steps]

    async def found(self) -> list[Found]:
        """Return what is there of this backend, in the order of removal. Looks only. Raises MachineError."""
        found = await self.clone.find(self.machine)
        return found + (await self.disk.find(self.machine) if self.disk else [])

    async def clear(self, say: Callable[[str], None] = lambda _: None) -> None:
        """Remove what is there of this backend, whoever left it. Raises LabError where something stays.

        What comes later in the order lies below what comes before: after a failure nothing else is removed
        until that is gone.
        """
        for pause_s in (*_PAUSES_S, None):
            found = await self.found()
            if not found:
                break
            try:
                for one in found:
                    say(f"removes {one.what}")
                    doer = Doer(self.machine, self._api, self.tell)
                    doer.captured.update(one.captured)
                    await doer.do(one.remove)
            except LabError as error:
                if pause_s is None:
                    raise LabError(f"{self.name}: {one.what} cannot be removed: {error}") from None
                await asyncio.sleep(pause_s)
        else:
            if found := await self.found():
                raise LabError(f"{self.name}: comes back: " + "; ".join(one.what for one in found))
        self.forget()

    def saturator(self, lab: Lab) -> SaturatorSettings | None:
        """Return what keeps this backend's disks busy, pointed at its clone. Raises LabError."""
        settings = self.backend.saturator or lab.saturator
        if settings is None:
            return None
        data = self.clone.data()
        try:
            return pointed(settings, data.dataset, data.subvolume, data.folder)
        except ValueError as error:
            raise LabError(f"{self.name}: saturator: {error}") from None

    def saturated_on(self, machine: Machine, captured: Mapping[str, str]) -> Machine:
        """Return `machine` for the saturator: on a disk with limits it works under them too."""
        group = self.place.group if self.place else None
        return Within(machine, fill(group, captured)) if group else machine

    async def do(self, parts: list[Part]) -> None:
        """Carry `parts` out. Raises LabError."""
        for part in parts:
            await self.doer.do(part.steps)


def all_steps(parts: list[Part]) -> Iterator[Step]:
    """Yield the steps of `parts`."""
    for part in parts:
        yield from part.steps
