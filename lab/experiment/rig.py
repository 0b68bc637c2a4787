"""One backend at work: its machine, its disk, the clone on it, and what steps captured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.clones.clone import Clone, Found
from lab.disks.disk import Disk
from lab.doing import Api, Doer
from lab.errors import LabError
from lab.experiment.settings import Backend, Lab
from lab.experiment.told import ToldMachine
from lab.machine import Machine
from lab.place import Place
from lab.saturators.pointed import pointed
from lab.saturators.settings import SaturatorSettings
from lab.steps import Step
from lab.tuning import apply, put_back

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
        clone: Clone,
        on_step: OnStep,
        api: Api | None = None,
        prepare: tuple[Step, ...] = (),
    ) -> None:
        """`prepare`: what has to be there before, and stays: the golden copy of the site."""
        self.backend, self.machine, self.disk, self.clone = backend, machine, disk, clone
        self._prepare, self._on_step, self._api = prepare, on_step, api
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

    def prepare(self) -> Part:
        """What is made once, and stays."""
        return Part("have the site that is copied", self._prepare)

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
        await self.do([self.prepare(), self.make_disk()])
        try:
            await apply(ToldMachine(self.machine, self.tell), self.backend.tuning, tuning)
            await self.do([self.make_clone()])
        finally:
            await put_back(ToldMachine(self.machine, self.tell), tuning)
        await self.do([self.limit()])

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
        """Remove what is there of this backend, whoever left it. Raises LabError where something stays."""
        for _ in range(3):  # what is removed may uncover more: a mount below a mount
            found = await self.found()
            if not found:
                break
            await self._remove(found, say)
        else:
            if found := await self.found():
                raise LabError(f"{self.name}: cannot be removed: " + "; ".join(one.what for one in found))
        self.forget()

    async def _remove(self, found: list[Found], say: Callable[[str], None]) -> None:
        problems = []
        for one in found:
            say(f"removes {one.what}")
            doer = Doer(self.machine, self._api, self.tell)
            doer.captured.update(one.captured)
            try:
                await doer.do(one.remove)
            except LabError as error:
                problems.append(str(error))
        if problems and {one.what for one in await self.found()} >= {one.what for one in found}:
            raise LabError("\n".join(problems))

    def saturator(self, lab: Lab) -> SaturatorSettings | None:
        """Return what keeps this backend's disks busy, pointed at its clone. Raises ValueError."""
        settings = self.backend.saturator or lab.saturator
        if settings is None:
            return None
        data = self.clone.data()
        return pointed(settings, data.dataset, data.subvolume, data.folder)

    async def do(self, parts: list[Part]) -> None:
        """Carry `parts` out. Raises LabError."""
        for part in parts:
            await self.doer.do(part.steps)


def all_steps(parts: list[Part]) -> Iterator[Step]:
    """Yield the steps of `parts`."""
    for part in parts:
        yield from part.steps
