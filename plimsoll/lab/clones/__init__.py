"""The drivers that clone a site. One more is a file beside this one, and a line here."""

import pkgutil
from typing import Annotated, Any

from plimsoll.lab.clones.clone import CloneContext, CloneKit, CloneSettings, Driver
from plimsoll.lab.names import OneOf

DRIVERS: list[Driver[Any]] = [
    pkgutil.resolve_name(f"{__name__}.{at}")
    for at in (
        "static:STATIC",
        "compose:COMPOSE",
        "qemu:QEMU",
        "libvirt:LIBVIRT",
        "proxmox:PROXMOX",
    )
]
AnyClone = Annotated[CloneSettings, OneOf("driver", lambda: (driver.settings for driver in DRIVERS))]


def find_driver(settings: CloneSettings) -> Driver[Any]:
    """Return the entry that `settings` belong to."""
    return next(driver for driver in DRIVERS if driver.name == settings.driver)


async def prepare_clone(settings: CloneSettings, around: CloneContext) -> CloneKit:
    """Return the clone. Looks at what it is made of; changes nothing.

    Raises LabError, and ValueError where the place cannot hold such a clone.
    """
    return await find_driver(settings).make(settings, around)
