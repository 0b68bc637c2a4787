"""`@disk`, `@database` and `@web` in a tuning: what has no name yet, or another one on each backend. Pure.

`@disk` are the devices and the dataset of the backend's own disk. The others are parts of its clone, which
are on datasets of their own where a tuning names them (names.storage.PARTS).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from plimsoll.lab.names import OWN_DISK, PARTS
from plimsoll.lab.tuning.plan import TunedValue, set_values
from plimsoll.lab.tuning.settings import AT_ONCE, Tuning
from plimsoll.lab.tuning.values import PropertyValue, QueueValue, SettingCommand

Parts = Mapping[str, Sequence[str]]  # the datasets that a part is on, by its word


def resolved(tuning: Tuning, devices: Sequence[str], dataset: str | None, parts: Parts) -> Tuning:
    """Return `tuning` with the disk's `devices` and `dataset` in place of `@disk`, and those of `parts`.

    What is said of a device or dataset by its name counts more. A part that is not in `parts` is left out:
    before the clone is made, it is on no dataset.
    """
    disks, datasets = dict(tuning.disks), dict(tuning.datasets)
    own, ours = disks.pop(OWN_DISK, None), datasets.pop(OWN_DISK, None)
    of_parts = [(parts.get(part, ()), datasets.pop(part, None)) for part in PARTS]
    for device in devices if own else ():
        disks[device] = _over(own, disks.get(device))
    for names, said in [((dataset,) if dataset else (), ours), *of_parts]:
        for name in names if said else ():
            datasets[name] = _over(said, datasets.get(name))
    return tuning.model_copy(update={"disks": disks, "datasets": datasets})


def without(tuning: Tuning) -> Tuning:
    """Return `tuning` without what is said of `@disk` and of parts."""
    return resolved(tuning, (), None, {})


def still_to_be_made(tuning: Tuning, devices: Sequence[str], dataset: str | None) -> list[SettingCommand]:
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


def created_with(tuning: Tuning) -> dict[str, dict[str, str]]:
    """Return the parts that `tuning` names, and the properties that the datasets of each are created with.

    What holds at once is left to each run, since runs may differ in it and yet share the clone.
    """
    return {
        part: {name: value for name, value in set_values(tuning.datasets[part]) if name not in AT_ONCE}
        for part in PARTS
        if part in tuning.datasets
    }


def tuned_in_runs(tuning: Tuning, parts: Parts) -> list[SettingCommand]:
    """Return the commands that tune `parts` before a run, for a plan: what they were not created with."""
    return [
        PropertyValue(dataset=dataset, name=name, value=value).step
        for part, datasets in parts.items()
        for dataset in datasets
        for name, value in set_values(tuning.datasets.get(part))
        if name in AT_ONCE
    ]


def in_words(asked: Sequence[TunedValue], part_of: Mapping[str, str]) -> list[TunedValue]:
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


def _over(own: Any, named: Any) -> Any:
    if named is None:
        return own
    return own.model_copy(update=named.model_dump(exclude_none=True))
