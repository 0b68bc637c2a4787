"""Samples what the host under test does, once a second, into `host.csv` of a run directory.

One more is one more file beside this one, and one more line here; `sampler` reads them all in one go.
"""

import pkgutil
from typing import Annotated, Any

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, create_model, model_validator
from pydantic_core import CoreSchema

from plimsoll.lab.names import NameOf
from plimsoll.lab.observers.observer import Observer, ObserverOptions
from plimsoll.lab.steps.step import Check

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
_NEEDY = [observer for observer in OBSERVERS if observer.own and observer.own.needs]

ObserverName = Annotated[str, NameOf(lambda: (observer.name for observer in OBSERVERS))]


def find_observer(name: str) -> Observer:
    """Return the entry of that name. Raises KeyError where there is none."""
    return {one.name: one for one in OBSERVERS}[name]


class ObserverSettings(ObserverOptions):
    """The choice of what is sampled each second. A field's description is its help text."""

    model_config = ConfigDict(defer_build=True)  # until it is used: the registry is complete by then

    observe: tuple[ObserverName, ...] = Field(
        tuple(observer.name for observer in OBSERVERS if observer not in _NEEDY),
        description="Observers to run, of those below. What a host does not have stays empty, and is "
        f"reported once. Default: all but {' and '.join(f'`{observer.name}`' for observer in _NEEDY)}.",
    )

    @model_validator(mode="after")
    def _can_ask(self) -> "ObserverSettings":
        for observer in OBSERVERS:
            own = observer.own
            if own and own.needs and observer.name in self.observe and self.own(own.model) is None:
                raise ValueError(f"{observer.name}: the observer needs {own.needs}")
        for name, values in (("observe", self.observe), ("disks", self.disks), ("pools", self.pools)):
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: names something twice; remove one of them")
        return self

    def checks(self) -> list[Check]:
        """Return what must hold on the machine before the start."""
        own = [observer.own for observer in OBSERVERS if observer.own]
        return [check for each in own if (keys := self.own(each.model)) for check in each.checks(keys)]


_OWN: dict[str, Any] = {
    observer.name: (own.model | None, Field(None, description=own.description))
    if own.needs
    else (own.model, Field(own.model(), description=own.description))
    for observer in OBSERVERS
    if (own := observer.own)
}
WithOwnKeys: type[ObserverSettings] = create_model(
    "ObserverSettings", __base__=ObserverSettings, __doc__=ObserverSettings.__doc__, **_OWN
)


class _WithOwnKeys:
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of the settings with the keys that observers have for themselves."""
        return handler.generate_schema(WithOwnKeys)


AnyObserving = Annotated[ObserverSettings, _WithOwnKeys()]
