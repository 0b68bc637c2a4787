"""Driver `libvirt`: a clone of a domain, with its disks copied onto the disk under test. By virsh."""

import json
from collections.abc import Mapping
from typing import Any

from plimsoll.lab.clones.clone import CloneKit, Driver, Surroundings, Target, needs_address, serves, target
from plimsoll.lab.clones.libvirt import scripts
from plimsoll.lab.clones.libvirt.settings import LibvirtSettings
from plimsoll.lab.clones.libvirt.xml import NAMESPACE, Base, clone_xml, read_base
from plimsoll.lab.disks.disk import DataLocation, Place
from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Remains, Room, Step

_SLACK_BYTES = 256 << 20


class Libvirt:
    """See Clone. Made by `prepared`, which reads what the base is; without that it can only be removed."""

    driver = "libvirt"

    def __init__(
        self,
        settings: LibvirtSettings,
        name: str,
        place: Place,
        base: Base | None = None,
        base_bytes: int = 0,
        problem: str = "the base has not been read",
    ) -> None:
        self._settings, self._name, self._place = settings, name, place
        self._base, self._base_bytes, self._problem = base, base_bytes, problem
        self._folder = f"{place.folder.rstrip('/')}/{name}"

    @classmethod
    async def prepared(
        cls, settings: LibvirtSettings, name: str, place: Place, machine: Machine
    ) -> "Libvirt":
        """Read the base; change nothing. `create` reports what is wrong with it.

        Raises MachineError where the machine cannot be reached.
        """
        try:
            base = await _base(settings, machine)
            taken = 0
            for disk in base.disks:
                taken += await _allocated(machine, disk.path, disk.format)
        except LabError as error:
            if isinstance(error, MachineError) and not error.command:
                raise
            problem = f"{machine.name}: cannot clone {settings.base}: {error}"
            return cls(settings, name, place, problem=problem)
        return cls(settings, name, place, base, taken)

    def create(self) -> list[Step]:
        """Copy the disks, and define the clone. Raises LabError where the base cannot be cloned."""
        base, said = self._known(), self._settings
        room = [Room("see that there is room", self._place.folder, self._base_bytes + _SLACK_BYTES)]
        xml = clone_xml(base, self._name, self._made(base), self._nvram(base))
        return [
            *(room if said.full else ()),
            Command("make its folder", ("mkdir", "-m", "0711", "--", self._folder)),
            *self._copies(base),
            Command("define it", (*self._virsh(), "define", "/dev/stdin"), stdin=xml),
        ]

    def reset(self, restore: bool) -> list[Step]:
        """Start it with cold caches; with `restore` its disks are copied again."""
        said, place = self._settings, self._place
        steps: list[Step] = [*place.unlimit, *self.stop()]
        if restore:
            base = self._known()
            paths = [path for path, _ in self._made(base).values()]
            steps.append(Command("remove its changed disks", ("rm", "-f", "--", *paths)))
            steps += self._copies(base, nvram=False)
        steps += [
            *place.cold,
            Command("start it", (*self._virsh(), "start", self._name), timeout_s=said.start_timeout_s),
        ]
        if place.group:
            steps.append(scripts.join(said.uri, self._name, place.group))
        if needs_address(said.target, said.connect_to):
            steps.append(scripts.address(said.uri, self._name, said.source, said.start_timeout_s))
        return [*steps, serves(said.target, said.connect_to, said.start_timeout_s), *place.limit]

    def stop(self) -> list[Step]:
        """Shut it down; switch it off where it takes too long."""
        return [scripts.stop(self._settings.uri, self._name, self._settings.stop_timeout_s)]

    def destroy(self) -> list[Step]:
        """Switch it off, and remove the domain and its files."""
        return [self._forget(), self._remove_files()]

    def target(self, captured: Mapping[str, str]) -> Target:
        """Return the target at which it is reached."""
        return target(self._settings.target, self._settings.connect_to, captured)

    def data(self) -> DataLocation:
        """Return the dataset or folder that the disks lie in."""
        return DataLocation(self._place.folder, self._place.dataset)

    def describe(self) -> dict[str, Any]:
        """Return a description of how it was made."""
        kept = {"uri", "base", "full", "format", "target"}
        said = self._settings.model_dump(mode="json", include=kept, exclude_none=True)
        return {"driver": self.driver, "name": self._name, "folder": self._folder, **said}

    async def find(self, machine: Machine) -> list[Remains]:
        """Find the domain with the clone's name and mark, and the folder of that name on its disk."""
        backend, found = self._name.rpartition("--")[2], list[Remains]()
        listed = await machine.run([*self._virsh(), "list", "--all", "--name"], check=False)
        if listed.status not in (0, 127):  # 127: there is no virsh, so there is no clone
            command = listed.command
            raise MachineError(
                machine.name, f"ended with status {listed.status}", command, listed.err, listed.status
            )
        if self._name in map(str.strip, listed.out.splitlines()):
            marked = await machine.run([*self._virsh(), "metadata", self._name, NAMESPACE], check=False)
            if f'name="{self._name}"' in marked.out:
                found.append(Remains(f"the virtual machine {self._name}", backend, (self._forget(),)))
        folder = await machine.run(["find", self._folder, "-maxdepth", "0", "-type", "d"], check=False)
        if folder.out.strip():
            found.append(Remains(f"the folder {self._folder}", backend, (self._remove_files(),)))
        return found

    def _known(self) -> Base:
        if self._base is None:
            raise LabError(self._problem)
        return self._base

    def _made(self, base: Base) -> dict[str, tuple[str, str]]:
        """Return path and format of each copy, by the disk's name in the guest."""
        said = self._settings
        formats = {disk.target: (said.format or disk.format) if said.full else "qcow2" for disk in base.disks}
        return {name: (f"{self._folder}/{name}.{of}", of) for name, of in formats.items()}

    def _nvram(self, base: Base) -> str | None:
        return f"{self._folder}/nvram.fd" if base.nvram else None

    def _copies(self, base: Base, nvram: bool = True) -> list[Step]:
        said, made = self._settings, self._made(base)
        steps = list[Step]()
        for disk in base.disks:
            path, of = made[disk.target]
            words: tuple[str, ...]
            if said.full:
                words = ("qemu-img", "convert", "-f", disk.format, "-O", of, disk.path, path)
                steps.append(Command(f"copy {disk.target}", words, timeout_s=said.copy_timeout_s))
            else:
                words = ("qemu-img", "create", "-q", "-f", of, "-F", disk.format, "-b", disk.path, path)
                steps.append(Command(f"make {disk.target} on top of the base's", words))
        copy, kept = self._nvram(base), base.nvram
        if nvram and copy and kept:
            # None before the base's first start: then libvirt makes the clone's from their template.
            words = ("sh", "-c", '[ ! -e "$1" ] || cp -- "$1" "$2"', "sh", kept, copy)
            steps.append(Command("copy the firmware's variables", words))
        return steps

    def _forget(self) -> Command:
        return scripts.remove(self._settings.uri, self._name)

    def _remove_files(self) -> Command:
        words = ("rm", "-rf", "--one-file-system", "--", self._folder)
        return Command("remove its files", words, timeout_s=600)

    def _virsh(self) -> tuple[str, ...]:
        return ("virsh", "-q", "-c", self._settings.uri)


async def _base(settings: LibvirtSettings, machine: Machine) -> Base:
    """Read the base's XML. Raises LabError where it is not there, runs, or cannot be cloned."""
    virsh = ["env", "LC_ALL=C", "virsh", "-q", "-c", settings.uri]
    state = await machine.run([*virsh, "domstate", settings.base], check=False)
    if state.status == 127:
        raise LabError("virsh is not installed: apt install libvirt-clients libvirt-daemon-system qemu-utils")
    if state.status != 0:
        raise MachineError(machine.name, "it does not exist", state.command, state.err, state.status)
    if state.out.strip() != "shut off":
        raise LabError(f"it is {state.out.strip()}, and must be shut off: virsh shutdown {settings.base}")
    return read_base((await machine.run([*virsh, "dumpxml", "--inactive", settings.base])).out)


async def _allocated(machine: Machine, path: str, disk_format: str) -> int:
    """Return the bytes that a disk takes, with all that lies below it."""
    words = ["qemu-img", "info", "--output=json", "--backing-chain", "-f", disk_format, path]
    try:
        chain = json.loads((await machine.run(words)).out)
        return sum(int(image.get("actual-size", 0)) or int(image["virtual-size"]) for image in chain)
    except (ValueError, KeyError, TypeError):
        raise LabError(f"cannot parse what qemu-img info prints about {path}") from None


async def _kit(settings: LibvirtSettings, around: Surroundings) -> CloneKit:
    return CloneKit(await Libvirt.prepared(settings, around.name, around.disk, around.machine))


LIBVIRT = Driver("libvirt", LibvirtSettings, _kit)
