"""Names of devices, pools, datasets and folders that may become part of a command; others are refused."""

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator

# A device as the kernel calls it, without /dev/: sda, nvme0n1, dm-3. A slash (cciss/c0d0) is left out on
# purpose: no disk of today has one, and a path is made of the name.
_DEVICE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")
# ZFS allows spaces too, but a name with one is more likely a trick than a pool.
_PART = r"[A-Za-z0-9][A-Za-z0-9_.:-]*"
_POOL = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]*")
_DATASET = re.compile(rf"[A-Za-z][A-Za-z0-9_.:-]*(/{_PART})*")
_LONGEST_DATASET = 200  # ZFS allows 255, snapshot included: the rest is for names that the lab puts behind it


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
    """Return a folder without a slash at its end. Raises ValueError for what is no absolute path."""
    if not value.startswith("/") or "\0" in value or ".." in value.split("/"):
        raise ValueError("must be an absolute path without .., such as /srv/data")
    return value.rstrip("/") or "/"


Folder = Annotated[str, AfterValidator(checked_folder)]
