"""Samples what the host under test does, once a second, into `host.csv` of a run directory.

One more is one more file beside this one, and one more line here; `sampler` reads them all in one go.
"""

import pkgutil
from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from plimsoll.lab.names import NameOf
from plimsoll.lab.observers.observer import Observer
from plimsoll.lab.observers.settings import ObserverOptions

OBSERVERS: list[Observer] = [
    pkgutil.resolve_name(f"{__name__}.{at}")
    for at in (
        "kstat:ARCSTATS",
        "kstat:TXG",
        "kstat:ZIL",
        "zpool:OBSERVER",
        "poolwaits:OBSERVER",
        "vdevs:OBSERVER",
        "poolstate:OBSERVER",
        "diskstats:OBSERVER",
        "proc:PRESSURE",
        "proc:CPU",
        "proc:MEMORY",
        "fsync:OBSERVER",
        "mariadb:OBSERVER",
        "php:OBSERVER",
    )
]

ObserverName = Annotated[str, NameOf(lambda: (observer.name for observer in OBSERVERS))]


def find_observer(name: str) -> Observer:
    """Return the entry of that name. Raises KeyError where there is none."""
    return {one.name: one for one in OBSERVERS}[name]


class ObserverSettings(ObserverOptions):
    """The choice of what is sampled each second. A field's description is its help text."""

    model_config = ConfigDict(defer_build=True)  # until it is used: the registry is complete by then

    observe: tuple[ObserverName, ...] = Field(
        (
            "arcstats",
            "txg",
            "zil",
            "zpool",
            "poolwaits",
            "vdevs",
            "poolstate",
            "diskstats",
            "pressure",
            "cpu",
            "memory",
            "fsync",
        ),
        description="Observers to run, of those below. What a host does not have stays empty, and is "
        "reported once. "
        "Default: all but `mariadb` and `php`.",
    )

    @model_validator(mode="after")
    def _can_ask(self) -> "ObserverSettings":
        if "mariadb" in self.observe and self.mariadb is None:
            raise ValueError("mariadb: the observer needs an option file: mariadb: {defaults_file: /…}")
        if "php" in self.observe and self.php is None:
            raise ValueError("php: the observer needs a socket: php: {fastcgi: /run/php/php8.2-fpm.sock}")
        for name, values in (("observe", self.observe), ("disks", self.disks), ("pools", self.pools)):
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: names something twice; remove one of them")
        return self
