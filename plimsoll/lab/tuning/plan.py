"""Plans the values to set, and those that put the host back. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from plimsoll.lab.tuning.errors import TuningError
from plimsoll.lab.tuning.settings import SCHEDULERS_OWN, Tuning
from plimsoll.lab.tuning.values import (
    HugepageValue,
    PropertyValue,
    QueueValue,
    SettingCommand,
    Value,
    VmValue,
    ZfsValue,
)

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
class Plan:
    """Values to set, in this order, and values to put back, in this order.

    `asked` are all that the tuning names, also those that the host had already, for the run's record.
    """

    apply: tuple[Value, ...]
    put_back: tuple[Value, ...]
    asked: tuple[TunedValue, ...] = ()

    @property
    def apply_steps(self) -> tuple[SettingCommand, ...]:
        """The commands that apply it."""
        return tuple(value.step for value in self.apply)

    @property
    def put_back_steps(self) -> tuple[SettingCommand, ...]:
        """The commands that put everything back."""
        return tuple(value.step for value in self.put_back)


Current = Mapping[str, Value]  # by key; a key that the host lacks is missing


def wanted(tuning: Tuning) -> list[Value]:
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


def touched(tuning: Tuning) -> list[Value]:
    """Return `wanted`, and what changes along with it, which must be known to put it back.

    The values of the latter mean nothing.
    """
    values = {value.key: value for value in wanted(tuning)}
    for value in list(values.values()):
        for side_effect in _side_effects(value):
            values.setdefault(side_effect.key, side_effect)
    return list(values.values())


def plan(current: Current, tuning: Tuning, absent: frozenset[str] = frozenset()) -> Plan:
    """Return the plan that takes a host from the values `current` (of `touched`) to `tuning`, and back.

    What is so already is left alone. `absent` are disks and datasets that are not there at all. Raises
    TuningError naming all that this host has not.
    """
    values = wanted(tuning)
    comes = [value for value in values if value.key not in current and _comes(value, current, values)]
    lacking = [value for value in values if value.key not in current and value not in comes]
    if lacking:
        raise TuningError("\n".join(dict.fromkeys(_lacks(value, absent) for value in lacking)))
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
    grows = _arc_grows(apply, current)
    back = _without_zero_twins(before)
    was = {key: value.value for key, value in current.items()}
    asked = tuple(TunedValue(value.key, was.get(value.key, "-"), value.value) for value in values)
    return Plan(tuple(_in_order(apply, grows)), tuple(_in_order(back, not grows)), asked)


def _comes(value: Value, current: Current, values: Iterable[Value]) -> bool:
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


def _lacks(value: Value, absent: frozenset[str]) -> str:
    """Return what this host lacks for `value`: the thing itself, or a setting of it."""
    if isinstance(value, QueueValue) and value.device in absent:
        return (
            f"disks.{value.device}: this host has no disk {value.device}: lsblk -d names those that there are"
        )
    if isinstance(value, PropertyValue) and value.dataset in absent:
        return f"datasets.{value.dataset}: this host has no dataset {value.dataset}: zfs list names all"
    if isinstance(value, QueueValue) and value.name in SCHEDULERS_OWN:
        return f"{value.key}: the disk's scheduler has no such setting: add scheduler: mq-deadline"
    return f"{value.key}: this host has no such setting; leave it out"


def set_values(model: BaseModel | None) -> list[tuple[str, str]]:
    """Return the settings in `model` that are said, each with its value; none without a model."""
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


def _without_zero_twins(before: Mapping[str, Value]) -> Iterable[Value]:
    """Leave out the one of two settings that was off: the kernel refuses 0 bytes, and sets it itself."""
    for value in before.values():
        if isinstance(value, VmValue) and value.name in _TWINS and value.value == "0":
            twin = before.get(f"vm.{_TWINS[value.name]}")
            if value.name.endswith("_bytes") or (twin is not None and twin.value != "0"):
                continue
        yield value


def _arc_grows(apply: Iterable[Value], current: Current) -> bool:
    return any(value.key == _ARC_MAX and int(value.value) > int(current[_ARC_MAX].value) for value in apply)


def _in_order(values: Iterable[Value], most_first: bool) -> list[Value]:
    """Put the ARC's limits so that its least never exceeds its most on the way."""
    ordered = list(values)
    places = [place for place, value in enumerate(ordered) if value.key in (_ARC_MIN, _ARC_MAX)]
    limits = sorted((ordered[place] for place in places), key=lambda value: value.key == _ARC_MAX)
    for place, value in zip(places, reversed(limits) if most_first else limits, strict=True):
        ordered[place] = value
    return ordered
