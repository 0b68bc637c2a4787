"""One value of the host: as it is now, as it is to be, or as it was. The journal is a list of these.

Each checks its own names, so that neither lab.yml nor a journal that was changed can reach anything else.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from plimsoll.lab.names import DatasetName, DeviceName, StrictModel
from plimsoll.lab.tuning.settings import SCHEDULERS_OWN, DatasetTuning, DiskTuning, VmTuning, ZfsTuning


@dataclass(frozen=True)
class SettingCommand:
    """A command that sets one value, and what it is given on standard input."""

    command: tuple[str, ...]
    stdin: str | None = None


def _known(model: type[BaseModel]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in model.model_fields:
            raise ValueError(f"{name} cannot be tuned; see docs/tuning.md")
        return name

    return AfterValidator(check)


# These files and properties take a word or a number, and never hold anything else.
Text = Annotated[str, Field(pattern=r"^-?[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$")]


class _Value(StrictModel):
    value: Text


class _FileValue(_Value):
    @property
    def path(self) -> str:
        """The file that holds it."""
        raise NotImplementedError

    @property
    def step(self) -> SettingCommand:
        """The command that sets it."""
        return SettingCommand(
            ("tee", self.path), self.value + "\n"
        )  # tee, since sudo does not write a shell's >


class QueueValue(_FileValue):
    """A setting of a disk's queue."""

    kind: Literal["queue"] = "queue"
    device: DeviceName
    name: Annotated[str, _known(DiskTuning)]

    @property
    def key(self) -> str:
        """Its key in lab.yml."""
        return f"disks.{self.device}.{self.name}"

    @property
    def path(self) -> str:
        """The file that holds it."""
        folder = "queue/iosched" if self.name in SCHEDULERS_OWN else "queue"
        return f"/sys/block/{self.device}/{folder}/{self.name}"


class HugepageValue(_FileValue):
    """A setting of when the kernel backs memory with huge pages, and when it makes room for them."""

    kind: Literal["hugepage"] = "hugepage"
    name: Literal["enabled", "defrag"] = "enabled"

    @property
    def key(self) -> str:
        """Its key in lab.yml."""
        return "transparent_hugepage" + ("_defrag" if self.name == "defrag" else "")

    @property
    def path(self) -> str:
        """The file that holds it."""
        return f"/sys/kernel/mm/transparent_hugepage/{self.name}"


class ZfsValue(_FileValue):
    """A parameter of OpenZFS's kernel module."""

    kind: Literal["zfs"] = "zfs"
    name: Annotated[str, _known(ZfsTuning)]

    @property
    def key(self) -> str:
        """Its key in lab.yml."""
        return f"zfs.{self.name}"

    @property
    def path(self) -> str:
        """The file that holds it."""
        return f"/sys/module/zfs/parameters/{self.name}"


class VmValue(_FileValue):
    """A setting of the kernel's memory."""

    kind: Literal["vm"] = "vm"
    name: Annotated[str, _known(VmTuning)]

    @property
    def key(self) -> str:
        """Its key in lab.yml."""
        return f"vm.{self.name}"

    @property
    def path(self) -> str:
        """The file that holds it."""
        return f"/proc/sys/vm/{self.name}"


class PropertyValue(_Value):
    """A property of a dataset, and where it has it from: only what was set there is set again."""

    kind: Literal["property"] = "property"
    dataset: DatasetName
    name: Annotated[str, _known(DatasetTuning)]
    source: Literal["local", "inherited", "received"] = "local"

    @property
    def key(self) -> str:
        """Its key in lab.yml."""
        return f"datasets.{self.dataset}.{self.name}"

    @property
    def step(self) -> SettingCommand:
        """The command that sets it."""
        if self.source == "local":
            return SettingCommand(("zfs", "set", f"{self.name}={self.value}", self.dataset))
        received = ("-S",) if self.source == "received" else ()
        return SettingCommand(("zfs", "inherit", *received, self.name, self.dataset))


Value = Annotated[
    QueueValue | HugepageValue | ZfsValue | VmValue | PropertyValue, Field(discriminator="kind")
]
