"""`@disk` in a tuning: the backend's own disk, whose device and dataset may have no name yet. Pure."""

from collections.abc import Sequence
from typing import Any

from lab.names.storage import OWN_DISK
from lab.tuning.settings import Tuning
from lab.tuning.values import PropertyValue, QueueValue, SettingCommand


def resolved(tuning: Tuning, devices: Sequence[str], dataset: str | None) -> Tuning:
    """Return `tuning` with the disk's `devices` and `dataset` in place of `@disk`.

    What is said of a device or dataset by its name counts more.
    """
    disks, datasets = dict(tuning.disks), dict(tuning.datasets)
    own, ours = disks.pop(OWN_DISK, None), datasets.pop(OWN_DISK, None)
    for device in devices if own else ():
        disks[device] = _over(own, disks.get(device))
    if ours and dataset:
        datasets[dataset] = _over(ours, datasets.get(dataset))
    return tuning.model_copy(update={"disks": disks, "datasets": datasets})


def without(tuning: Tuning) -> Tuning:
    """Return `tuning` without what is said of `@disk`."""
    return resolved(tuning, (), None)


def still_to_be_made(tuning: Tuning, devices: Sequence[str], dataset: str | None) -> list[SettingCommand]:
    """Return the commands that tune `@disk`, for a plan: `devices` may be `${…}` that a step captures."""
    own, ours = tuning.disks.get(OWN_DISK), tuning.datasets.get(OWN_DISK)
    steps = [
        QueueValue.model_construct(device=device, name=name, value=str(value)).step
        for device in (devices if own else ())
        for name, value in own or ()
        if value is not None
    ]
    return steps + [
        PropertyValue(dataset=dataset, name=name, value=str(value)).step
        for name, value in ours or ()
        if value is not None and dataset
    ]


def problems(tuning: Tuning, has_devices: bool, has_dataset: bool) -> list[tuple[tuple[str, str], str]]:
    """Return what is wrong with `@disk` on a disk that has such things or not: at which key, and what."""
    found = []
    if OWN_DISK in tuning.disks and not has_devices:
        found.append((("disks", OWN_DISK), "no device of its disk is known: name them in disk.devices"))
    if OWN_DISK in tuning.datasets and not has_dataset:
        found.append((("datasets", OWN_DISK), "its disk has no dataset: only ZFS has one (disk.dataset)"))
    return found


def _over(own: Any, named: Any) -> Any:
    if named is None:
        return own
    return own.model_copy(update=named.model_dump(exclude_none=True))
