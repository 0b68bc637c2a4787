"""The parts of a kind of saturator; each kind is a file of this package, and a line in `registry`."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field

from plimsoll.lab.disks.place import DataLocation
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import StrictModel, explained_in
from plimsoll.lab.saturators.runner import OnEvent, Saturator
from plimsoll.lab.steps.step import Look, Remains

# Stands in settings for the clone's own dataset, subvolume or folder, whatever the backend.
CLONE: Literal["@clone"] = "@clone"


class SaturatorSettings(StrictModel):
    """The settings that every saturator has. A field's description is its help text."""

    model_config = explained_in("docs/saturators.md")

    kind: str
    retries: int = Field(3, ge=0, le=1000, description="Failures in a row before the saturator gives up.")


Settings = TypeVar("Settings", bound=SaturatorSettings)


async def _nothing(_machine: Machine, _settings: SaturatorSettings, _label: str, _of: str) -> list[Remains]:
    return []


@dataclass(frozen=True)
class SaturatorKind(Generic[Settings]):
    """An entry of the registry.

    `name`: the value of `kind` in lab.yml.
    `settings`: the model of its keys.
    `make`: returns the saturator for a machine, settings, a label and what is called with each event.
    `aim`: returns the settings with what they leave open (`@clone`) taken from where a clone's data lie;
    raises ValueError, which names the key, where the clone has no such thing.
    `programs`: what it runs, which `plimsoll lab check` looks for.
    `questions`: commands that change nothing and whose status decides what it does: `plimsoll lab plan` asks
    the machine itself.
    `rounds`: how many processes it starts, one after the other, until every kind of command was run.
    `looks`: what is to be looked at before, for settings that are not aimed.
    `brief`: the settings as `lab plan` shows what it does: without waiting.
    `find`: returns what one that was killed left, for a machine, settings, label and backend: only what does
    not go with the clone or its disk. Looks only, by name. The settings are aimed if they can be.
    `mirrors_disk`: it needs as much room again as an emulated disk, beside that.
    """

    name: str
    settings: type[Settings]
    make: Callable[[Machine, Settings, str, OnEvent], Saturator]
    aim: Callable[[Settings, DataLocation], Settings]
    programs: frozenset[str]
    questions: tuple[tuple[str, ...], ...] = ()
    rounds: Callable[[Settings], int] = lambda _: 0
    looks: Callable[[Settings], list[Look]] = lambda _: []
    brief: Callable[[Settings], Settings] = lambda settings: settings
    find: Callable[[Machine, Settings, str, str], Coroutine[Any, Any, list[Remains]]] = _nothing
    mirrors_disk: bool = False
