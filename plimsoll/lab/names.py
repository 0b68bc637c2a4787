"""Names and values that may become part of a path or a command. Pure.

What the lab makes bears the experiment's label, and only what bears such a name is ever changed or removed.
Names of experiments and backends have single hyphens only, so that `--` parts them without doubt:
`plimsoll-EXPERIMENT--BACKEND` is a folder, a pool, a Compose project, a virtual machine.
"""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from plimsoll.common.validation import AS_SIZE

_PART = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_NAME = re.compile(_PART)
_LONGEST = 16  # of each part: a saturator's label has 40, ext4's volume 16, and people read them
_OWN = re.compile(rf"plimsoll-({_PART})--({_PART})")
_LABEL = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_DIGITS = 6
# A device as the kernel calls it, without /dev/: sda, nvme0n1, dm-3. A slash (cciss/c0d0) is left out on
# purpose: no disk of today has one, and a path is made of the name.
_DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")
# ZFS allows spaces too, but a name with one is more likely a trick than a pool.
_DATASET_PART = r"[A-Za-z0-9][A-Za-z0-9_.:-]*"
_POOL = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]*")
_DATASET = re.compile(rf"[A-Za-z][A-Za-z0-9_.:-]*(/{_DATASET_PART})*")
_LONGEST_DATASET = 200  # ZFS allows 255, snapshot included: the rest is for names that the lab puts behind it


def _name(value: str) -> str:
    if len(value) > _LONGEST or not _NAME.fullmatch(value):
        raise ValueError(
            f"must be lower-case letters, digits and single hyphens, at most {_LONGEST}: nvme-p3600"
        )
    return value


LabName = Annotated[str, AfterValidator(_name)]


@dataclass(frozen=True)
class Label:
    """The experiment's label, and what is called by it."""

    experiment: str

    def __post_init__(self) -> None:
        """Raise ValueError where it could become anything but part of a name."""
        _name(self.experiment)

    def of(self, backend: str) -> str:
        """Return the name of everything of this backend: folder, pool, project, machine."""
        return f"plimsoll-{self.experiment}--{_name(backend)}"

    def saturator(self, backend: str) -> str:
        """Return the label of this backend's saturator, whose own names begin with `plimsoll-` too."""
        return f"{self.experiment}--{_name(backend)}"

    def backend(self, name: str) -> str | None:
        """Return the backend that `name` is called after, None where it is not of this experiment."""
        found = _OWN.fullmatch(name)
        return found[2] if found and found[1] == self.experiment else None


def is_own(name: str) -> bool:
    """Return whether `name` is called after a backend of some experiment."""
    return _OWN.fullmatch(name) is not None


def checked_label(label: str) -> str:
    """Return `label`. Raises ValueError where it could become anything but part of a name."""
    if not _LABEL.fullmatch(label):
        raise ValueError(
            "a label has up to 40 lower-case letters, digits and '-', and does not begin with '-'"
        )
    return label


def own_name(label: str) -> str:
    """Return the name, or the first part of the name, of everything with this label."""
    return f"plimsoll-{checked_label(label)}"


def snapshot_name(label: str, number: int) -> str:
    """Return the name of the snapshot with this number."""
    return f"{own_name(label)}-{number:0{_DIGITS}d}"


def is_own_snapshot(name: str, label: str) -> bool:
    """Return whether `name` is a snapshot of this experiment, and not of one whose label begins alike."""
    return bool(re.fullmatch(rf"{re.escape(own_name(label))}-[0-9]{{{_DIGITS}}}", name))


def _named(what: str, form: re.Pattern[str], longest: int) -> Callable[[str], str]:
    def check(value: str) -> str:
        if len(value) > longest or not form.fullmatch(value) or ".." in value:
            raise ValueError(f"must be {what}; letters, digits and _ . - only, no spaces or quotes")
        return value

    return check


checked_device = _named("a device's name without /dev/, such as nvme0n1", _DEVICE, 32)
DeviceName = Annotated[str, AfterValidator(checked_device)]
PoolName = Annotated[str, AfterValidator(_named("a pool's name, such as tank", _POOL, _LONGEST_DATASET))]
checked_dataset = _named("a dataset's name, such as tank/site", _DATASET, _LONGEST_DATASET)
DatasetName = Annotated[str, AfterValidator(checked_dataset)]
OWN_DISK = "@disk"  # stands for the devices, or the dataset, of the backend's own disk
# Parts of a clone's data that can be on datasets of their own: its database, and what its web server serves.
DATABASE, WEB = "@database", "@web"
PARTS = (DATABASE, WEB)


def _dataset_or_own(value: str) -> str:
    own = (OWN_DISK, *PARTS)
    if value.startswith("@") and value not in own:
        raise ValueError(f"must be {', '.join(own)} or a dataset's name, such as tank/site")
    return value if value in own else checked_dataset(value)


DeviceOrOwn = Annotated[
    str, AfterValidator(lambda value: value if value == OWN_DISK else checked_device(value))
]
DatasetOrOwn = Annotated[str, AfterValidator(_dataset_or_own)]


def checked_folder(value: str) -> str:
    """Return a folder without a slash at its end. Raises ValueError unless it is an absolute path."""
    if not value.startswith("/") or "\0" in value or ".." in value.split("/"):
        raise ValueError("must be an absolute path without .., such as /srv/data")
    return value.rstrip("/") or "/"


Folder = Annotated[str, AfterValidator(checked_folder)]


def on_off(value: object) -> object:
    """Return `on` or `off` for a bare one, which YAML reads as true or false; anything else as it is."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def _power_of_two(value: int) -> int:
    if value & (value - 1):
        raise ValueError("must be a power of two, such as 16K or 128K")
    return value


RecordSize = Annotated[int, AS_SIZE, Field(ge=512, le=16 << 20), AfterValidator(_power_of_two)]

Compression = Annotated[
    str,
    BeforeValidator(on_off),
    Field(
        pattern=r"^(on|off|lz4|lzjb|zle|gzip(-[1-9])?|zstd(-([1-9]|1[0-9]))?|zstd-fast(-[0-9]{1,4})?)$",
        examples=["lz4, zstd-3 or off"],
    ),
]
Switch = Annotated[Literal["on", "off"], BeforeValidator(on_off)]


class StrictModel(BaseModel):
    """Settings that do not change, and that refuse a key they do not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def explained_in(page: str) -> ConfigDict:
    """Return the configuration of settings that `page` of the documentation explains: errors name it."""
    return ConfigDict(json_schema_extra={"manual": page})


@dataclass(frozen=True)
class OneOf:
    """In an annotation: one of the models of a registry, chosen by the value of `key`.

    `models` is called when the model that holds the field is built, so a registry is complete by then.
    """

    key: str
    models: Callable[[], Iterable[type[BaseModel]]]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a union of the registered models."""
        union: Any = reduce(operator.or_, self.models())
        return handler.generate_schema(Annotated[union, Field(discriminator=self.key)])


@dataclass(frozen=True)
class NameOf:
    """In an annotation: one of the names of a registry."""

    names: Callable[[], Iterable[str]]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a choice among the registered names."""
        return core_schema.literal_schema(list(self.names()))
