"""Reads what a host's values are now."""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from plimsoll.lab.errors import MachineError
from plimsoll.lab.facts import parse
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers import arcstats
from plimsoll.lab.observers.files import BUSY_S, read_files
from plimsoll.lab.tuning.settings import Tuning
from plimsoll.lab.tuning.values import PropertyValue, Value, ZfsValue

# While it runs, OpenZFS does not take back the 0 that means its default: what it came to is kept instead.
_DEFAULTED = {"zfs_arc_min": "c_min", "zfs_arc_max": "c_max"}


def get_command(dataset: str) -> list[str]:
    """Return the command that prints all properties with exact values. Pure.

    All, since zfs-fuse refuses a list with one that it does not know, such as `sync`.
    """
    return ["zfs", "get", "-H", "-p", "-o", "name,property,value,source", "all", dataset]


async def read_current(machine: Machine, values: Sequence[Value]) -> dict[str, Value]:
    """Return, by key, what each of `values` is now; what the host has not is missing. Raises MachineError."""
    files = [value for value in values if not isinstance(value, PropertyValue)]
    *texts, arc = await read_files(machine, [*(value.path for value in files), arcstats.PATHS[0]], BUSY_S)
    found = {value.key: file_value(value, text, arc) for value, text in zip(files, texts, strict=True)}
    properties = [value for value in values if isinstance(value, PropertyValue)]
    for dataset in dict.fromkeys(value.dataset for value in properties):
        asked = [value for value in properties if value.dataset == dataset]
        done = await machine.run(get_command(dataset), check=False)
        rows = parse.properties(done.out).get(dataset, {})
        found |= {value.key: property_value(value, rows) for value in asked}
    return {key: value for key, value in found.items() if value is not None}


def file_value(value: Value, text: str | None, arc: str | None) -> Value | None:
    """Return `value` as its file's `text` has it; `arc` is arcstats. None where it is no such value. Pure."""
    word = parse.chosen(text)
    if isinstance(value, ZfsValue) and word == "0" and value.name in _DEFAULTED:
        size = arcstats.parse(arc or "").get(_DEFAULTED[value.name])
        word = None if size is None else str(int(size))
    return _with(value, {"value": word})


def property_value(value: PropertyValue, rows: Mapping[str, tuple[str, str]]) -> Value | None:
    """Return `value` as `zfs get` printed it; None where the dataset has no such property. Pure."""
    word, source = rows.get(value.name, ("-", "-"))
    kinds = {"local": "local", "received": "received", "default": "inherited", "inherited": "inherited"}
    kind = kinds.get(source.split(" ")[0])
    return None if word == "-" or kind is None else _with(value, {"value": word, "source": kind})


async def absent(machine: Machine, tuning: Tuning) -> frozenset[str]:
    """Return the disks and datasets of `tuning` that this host does not have."""
    looks = {name: ["test", "-e", f"/sys/block/{name}"] for name in tuning.disks}
    looks |= {name: ["zfs", "list", "-H", "-o", "name", name] for name in tuning.datasets}
    return frozenset([name for name, look in looks.items() if (await machine.run(look, check=False)).status])


async def has_pool(machine: Machine, dataset: str) -> bool:
    """Return whether the pool of `dataset` is imported."""
    try:
        done = await machine.run(["zpool", "list", "-H", "-o", "name", dataset.split("/")[0]], check=False)
    except MachineError:
        return False
    return done.status == 0


def _with(value: Value, update: Mapping[str, object]) -> Value | None:
    try:
        return type(value).model_validate({**value.model_dump(), **update})
    except ValidationError:
        return None
