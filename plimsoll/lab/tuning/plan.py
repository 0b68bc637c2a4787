"""Which values to set, and which to put back. Pure.

`@disk` are the devices and the dataset of the backend's own disk; `@database` and `@web` are parts of its
clone, which are on datasets of their own where a tuning names them (names.storage.PARTS).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from plimsoll.lab.errors import LabError
from plimsoll.lab.names import OWN_DISK, PARTS
from plimsoll.lab.steps.step import Command
from plimsoll.lab.tuning.keys import (
    AT_ONCE,
    SCHEDULERS_OWN,
    HugepageValue,
    PropertyValue,
    QueueValue,
    Tuning,
    Value,
    VmValue,
    ZfsValue,
)


class TuningError(LabError):
    """The tuning cannot be applied to this host, or not all of it could be put back."""


# A new scheduler starts with its own, whatever was set before; so they are set after it.
_RESET_BY_SCHEDULER = ("nr_requests", "wbt_lat_usec", *SCHEDULERS_OWN)
_ARC_MIN, _ARC_MAX = "zfs.zfs_arc_min", "zfs.zfs_arc_max"
_TWINS = {
    "dirty_bytes": "dirty_ratio",
    "dirty_ratio": "dirty_bytes",
    "dirty_background_bytes": "dirty_background_ratio",
    "dirty_background_ratio": "dirty_background_bytes",
}


@dataclass(frozen=True)
class TunedValue:
    """One key of a tuning: what was there, and what it was set to."""

    key: str
    was: str
    set: str


@dataclass(frozen=True)
class TuningPlan:
    """Values to set, in this order, and values to put back, in this order.

    `asked` are all that the tuning names, also those that the host had already, for the run's record.
    """

    apply: tuple[Value, ...]
    put_back: tuple[Value, ...]
    asked: tuple[TunedValue, ...] = ()

    @property
    def apply_steps(self) -> tuple[Command, ...]:
        """The commands that apply it."""
        return tuple(value.step for value in self.apply)

    @property
    def put_back_steps(self) -> tuple[Command, ...]:
        """The commands that put everything back."""
        return tuple(value.step for value in self.put_back)


_Current = Mapping[str, Value]  # by key; a key that the host lacks is missing


def asked_values(tuning: Tuning) -> list[Value]:
    """Return the values that `tuning` asks for, in the order in which they can be set."""
    values: list[Value] = []
    for device, disk in tuning.disks.items():
        values += [QueueValue(device=device, name=name, value=text) for name, text in set_values(disk)]
    if tuning.transparent_hugepage:
        values.append(HugepageValue(value=tuning.transparent_hugepage))
    if tuning.transparent_hugepage_defrag:
        values.append(HugepageValue(name="defrag", value=tuning.transparent_hugepage_defrag))
    for dataset, properties in tuning.datasets.items():
        values += [
            PropertyValue(dataset=dataset, name=name, value=text) for name, text in set_values(properties)
        ]
    values += [ZfsValue(name=name, value=text) for name, text in set_values(tuning.zfs)]
    values += [VmValue(name=name, value=text) for name, text in set_values(tuning.vm)]
    return values


def touched_values(tuning: Tuning) -> list[Value]:
    """Return `wanted`, and what changes along with it, which must be known to put it back.

    The values of the latter mean nothing.
    """
    values = {value.key: value for value in asked_values(tuning)}
    for value in list(values.values()):
        for side_effect in _side_effects(value):
            values.setdefault(side_effect.key, side_effect)
    return list(values.values())


def plan_tuning(current: _Current, tuning: Tuning, absent: frozenset[str] = frozenset()) -> TuningPlan:
    """Return the plan that takes a host from the values `current` (of `touched`) to `tuning`, and back.

    What is so already is left alone. `absent` are disks and datasets that are not there at all. Raises
    TuningError naming all that this host has not.
    """
    values = asked_values(tuning)
    comes = [
        value
        for value in values
        if value.key not in current and _comes_with_scheduler(value, current, values)
    ]
    lacking = [value for value in values if value.key not in current and value not in comes]
    if lacking:
        raise TuningError("\n".join(dict.fromkeys(_find_lacking(value, absent) for value in lacking)))
    apply = [
        value
        for value in values
        if value in comes
        or current[value.key].value != value.value
        or _would_inherit(value, current[value.key], values)
    ]
    # A scheduler that changes resets what was right before it.
    switched = {
        value.device for value in apply if isinstance(value, QueueValue) and value.name == "scheduler"
    }
    apply = [
        value
        for value in values
        if value in apply
        or (isinstance(value, QueueValue) and value.device in switched and value.name in _RESET_BY_SCHEDULER)
    ]
    before: dict[str, Value] = {}
    for value in apply:
        if value.key in current:
            before[value.key] = current[value.key]
        for side_effect in _side_effects(value):
            if side_effect.key in current:
                before[side_effect.key] = current[side_effect.key]
    grows = any(value.key == _ARC_MAX and int(value.value) > int(current[_ARC_MAX].value) for value in apply)
    back = _drop_zero_twins(before)
    was = {key: value.value for key, value in current.items()}
    asked = tuple(TunedValue(value.key, was.get(value.key, "-"), value.value) for value in values)
    return TuningPlan(tuple(_order_limits(apply, grows)), tuple(_order_limits(back, not grows)), asked)


def _comes_with_scheduler(value: Value, current: _Current, values: Iterable[Value]) -> bool:
    """Return whether `value` belongs to a scheduler that is chosen before it."""
    return (
        isinstance(value, QueueValue)
        and value.name in SCHEDULERS_OWN
        and any(
            isinstance(other, QueueValue)
            and (other.device, other.name) == (value.device, "scheduler")
            and other.key in current
            and current[other.key].value != other.value
            for other in values
        )
    )


def _find_lacking(value: Value, absent: frozenset[str]) -> str:
    """Return what this host lacks for `value`: the thing itself, or a setting of it."""
    if isinstance(value, QueueValue) and value.device in absent:
        return f"disks.{value.device}: this host has no disk {value.device}: lsblk -d shows all"
    if isinstance(value, PropertyValue) and value.dataset in absent:
        return f"datasets.{value.dataset}: this host has no dataset {value.dataset}: zfs list shows all"
    if isinstance(value, QueueValue) and value.name in SCHEDULERS_OWN:
        return f"{value.key}: the disk's scheduler has no such setting: add scheduler: mq-deadline"
    return f"{value.key}: this host has no such setting; leave it out"


def set_values(model: BaseModel | None) -> list[tuple[str, str]]:
    """Return the settings given in `model`, each with its value; none without a model."""
    return [(name, str(value)) for name, value in model or () if value is not None]


def _would_inherit(value: Value, now: Value, values: Iterable[Value]) -> bool:
    """Return whether a property is right only by a value that it inherits and that is about to change."""
    return (
        isinstance(value, PropertyValue)
        and isinstance(now, PropertyValue)
        and now.source != "local"
        and any(
            isinstance(other, PropertyValue)
            and other.name == value.name
            and value.dataset.startswith(f"{other.dataset}/")
            for other in values
        )
    )


def _side_effects(value: Value) -> list[Value]:
    if isinstance(value, QueueValue) and value.name == "scheduler":
        return [QueueValue(device=value.device, name=name, value="0") for name in _RESET_BY_SCHEDULER]
    if isinstance(value, VmValue) and value.name in _TWINS:
        return [VmValue(name=_TWINS[value.name], value="0")]
    return []


def _drop_zero_twins(before: Mapping[str, Value]) -> Iterable[Value]:
    """Leave out the one of two settings that was off: the kernel refuses 0 bytes, and sets it itself."""
    for value in before.values():
        if isinstance(value, VmValue) and value.name in _TWINS and value.value == "0":
            twin = before.get(f"vm.{_TWINS[value.name]}")
            if value.name.endswith("_bytes") or (twin is not None and twin.value != "0"):
                continue
        yield value


def _order_limits(values: Iterable[Value], most_first: bool) -> list[Value]:
    """Put the ARC's limits so that its least never exceeds its most on the way."""
    ordered = list(values)
    places = [place for place, value in enumerate(ordered) if value.key in (_ARC_MIN, _ARC_MAX)]
    limits = sorted((ordered[place] for place in places), key=lambda value: value.key == _ARC_MAX)
    for place, value in zip(places, reversed(limits) if most_first else limits, strict=True):
        ordered[place] = value
    return ordered


Parts = Mapping[str, Sequence[str]]  # the datasets that a part is on, by its word


def resolve_own(tuning: Tuning, devices: Sequence[str], dataset: str | None, parts: Parts) -> Tuning:
    """Return `tuning` with the disk's `devices` and `dataset` in place of `@disk`, and those of `parts`.

    Settings given for a device or dataset by its name take precedence. A part that is not in `parts` is left
    out: before the clone is made, it is on no dataset.
    """
    disks, datasets = dict(tuning.disks), dict(tuning.datasets)
    own, ours = disks.pop(OWN_DISK, None), datasets.pop(OWN_DISK, None)
    of_parts = [(parts.get(part, ()), datasets.pop(part, None)) for part in PARTS]
    for device in devices if own else ():
        disks[device] = _merge(own, disks.get(device))
    for names, said in [((dataset,) if dataset else (), ours), *of_parts]:
        for name in names if said else ():
            datasets[name] = _merge(said, datasets.get(name))
    return tuning.model_copy(update={"disks": disks, "datasets": datasets})


def drop_own(tuning: Tuning) -> Tuning:
    """Return `tuning` without the settings of `@disk` and of parts."""
    return resolve_own(tuning, (), None, {})


def own_disk_commands(tuning: Tuning, devices: Sequence[str], dataset: str | None) -> list[Command]:
    """Return the commands that tune `@disk`, for a plan: `devices` may be `${…}` that a step captures."""
    own, ours = tuning.disks.get(OWN_DISK), tuning.datasets.get(OWN_DISK)
    steps = [
        QueueValue.model_construct(device=device, name=name, value=value).step
        for device in (devices if own else ())
        for name, value in set_values(own)
    ]
    return steps + [
        PropertyValue(dataset=dataset, name=name, value=value).step
        for name, value in (set_values(ours) if ours and dataset else ())
    ]


def creation_properties(tuning: Tuning) -> dict[str, dict[str, str]]:
    """Return the parts that `tuning` names, and the properties that the datasets of each are created with.

    What holds at once is left to each run, since runs may differ in it and yet share the clone.
    """
    return {
        part: {name: value for name, value in set_values(tuning.datasets[part]) if name not in AT_ONCE}
        for part in PARTS
        if part in tuning.datasets
    }


def run_commands(tuning: Tuning, parts: Parts) -> list[Command]:
    """Return the commands that tune `parts` before a run, for a plan: what they were not created with."""
    return [
        PropertyValue(dataset=dataset, name=name, value=value).step
        for part, datasets in parts.items()
        for dataset in datasets
        for name, value in set_values(tuning.datasets.get(part))
        if name in AT_ONCE
    ]


def label_parts(asked: Sequence[TunedValue], part_of: Mapping[str, str]) -> list[TunedValue]:
    """Return `asked` with the word for a part in place of each of its datasets, for a run's record."""
    found: dict[tuple[str, str], TunedValue] = {}
    for value in asked:
        kind, _, rest = value.key.partition(".")
        dataset, _, name = rest.rpartition(".")
        if kind == "datasets" and dataset in part_of:
            value = replace(value, key=f"{kind}.{part_of[dataset]}.{name}")
        found.setdefault((value.key, value.was), value)
    return list(found.values())


def problems(
    tuning: Tuning, has_devices: bool, has_dataset: bool, has_parts: bool
) -> list[tuple[tuple[str, str], str]]:
    """Return what is wrong with `@disk` and parts: at which key, and what.

    The disk has such things or not; `has_parts`: the clone can put parts on datasets of their own.
    """
    found = []
    if OWN_DISK in tuning.disks and not has_devices:
        found.append((("disks", OWN_DISK), "no device of its disk is known: name them in disk.devices"))
    if OWN_DISK in tuning.datasets and not has_dataset:
        found.append((("datasets", OWN_DISK), "its disk has no dataset: only ZFS has one (disk.dataset)"))
    for part in (part for part in PARTS if part in tuning.datasets):
        if not has_parts:
            what = (
                "only a clone of the driver compose has it on a dataset of its own: name the dataset instead"
            )
        elif not has_dataset:
            what = (
                "its disk has no dataset: put the clone on ZFS (disk.dataset, or filesystem: zfs), or leave "
                "it out"
            )
        else:
            continue
        found.append((("datasets", part), what))
    return found


def _merge(own: Any, named: Any) -> Any:
    if named is None:
        return own
    return own.model_copy(update=named.model_dump(exclude_none=True))
