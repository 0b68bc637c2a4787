"""A clone and its driver, as every driver has to have them: verbs as steps, settings, the site's address."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Protocol, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from plimsoll.common.validation import problems_of
from plimsoll.lab.clones.golden import Golden, SiteSettings
from plimsoll.lab.disks.disk import DataLocation, Place
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import StrictModel
from plimsoll.lab.steps.runner import Api
from plimsoll.lab.steps.step import Check, Command, Remains, Step, fill, no_reference
from plimsoll.scenarios.running.settings import BaseUrl, HostPort

ADDRESS = "${address}"
_ANY = "192.0.2.1"  # stands for the address while the rest is checked

StopTimeout = Annotated[
    int,
    Field(ge=0, le=3600, description="Seconds to wait for the guest to shut down before it is switched off."),
]


@dataclass(frozen=True)
class Target:
    """The target of the load."""

    url: str
    connect_to: str | None = None


class Clone(Protocol):
    """The site on one backend. Every verb is a list of steps: pure, so it can be shown before it is done.

    `create` may rely on nothing of this clone being there: the lab removes what `find` finds before.
    """

    driver: str  # as lab.yml names it

    def create(self) -> list[Step]:
        """Make the clone, not started."""
        ...

    def reset(self, restore: bool) -> list[Step]:
        """Restart it with cold caches, and see that it serves; with `restore` as it was when created."""
        ...

    def stop(self) -> list[Step]:
        """Let it rest, so that it takes nothing from the others. It may be at rest already."""
        ...

    def destroy(self) -> list[Step]:
        """Remove it, whether it runs or not."""
        ...

    def target(self, captured: Mapping[str, str]) -> Target:
        """Return the clone's target, after `reset`. Raises KeyError where no step captured its address."""
        ...

    def data(self) -> DataLocation:
        """Return the location of its data. Pure; known before anything is made."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return its description for `run.json`: how it was made, of what, where. Without secrets."""
        ...

    async def find(self, machine: Machine) -> list[Remains]:
        """Return the remains of this clone, running or half made, in the order of removal.

        Looks only, by name. Raises MachineError where it cannot look; finds nothing where the program that
        would have made it is not even installed.
        """
        ...


class CloneSettings(StrictModel):
    """The settings that every driver has. A field's description is its help text."""

    driver: str


@dataclass(frozen=True)
class CloneContext:
    """The surroundings that a clone is made in. `name` is the name of everything that belongs to it.

    `place` is None only for drivers that put the clone nowhere; `site` has lab.yml's settings of the site
    that is copied; `work` is the lab's own folder on `machine`, `project` Plimsoll's own folder. `parts` are
    to be on datasets of their own, each created with these properties (see names.storage.PARTS).
    """

    machine: Machine
    name: str
    place: Place | None
    site: SiteSettings
    work: str
    project: str
    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def disk(self) -> Place:
        """The place. Raises ValueError where there is none."""
        if self.place is None:
            raise ValueError("this driver needs a disk")
        return self.place


@dataclass(frozen=True)
class CloneDetails:
    """What is known of a clone only once it stands.

    `description` adds to that of `Clone.describe`; `datasets` are its own, on the backend's machine.
    """

    description: Mapping[str, Any] = field(default_factory=dict)
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True)
class CloneKit:
    """A clone, the API that it is made through, and the site that it copies, where there are such things.

    `read_details` reads what is known once the clone stands, given what its steps captured. Raises LabError.
    """

    clone: Clone
    api: Api | None = None
    golden: Golden | None = None
    read_details: Callable[[Mapping[str, str]], Awaitable[CloneDetails]] | None = None


Settings = TypeVar("Settings", bound=CloneSettings)


@dataclass(frozen=True)
class Driver(Generic[Settings]):
    """An entry of the registry.

    `name`: the value of `driver` in lab.yml.
    `settings`: the model of its keys.
    `make`: returns the clone for settings and surroundings; looks at what it is made of, changes nothing.
    Raises LabError, and ValueError where the place cannot hold such a clone.
    `needs_disk`: it puts the clone on the backend's disk; else the backend has none.
    `is_ours`: the lab made the clone and throws it away: scenarios may change its site unasked.
    `has_own_site`: the site in it is Plimsoll's own, whose password is public.
    `checks`: what must hold before anything is made, for settings and surroundings.
    `grows`: the command that prints how many bytes a clone may come to take on its disk, where that can be
    more than it takes at first, for settings; None where it cannot.
    `at_start`: keys that hold from each start on, so that clones which differ in no other can be one.
    `has_parts`: it can put its database and its web files on datasets of their own.
    `has_files`: the files of its site lie on the disk as such, in a folder called as the clone is.
    """

    name: str
    settings: type[Settings]
    make: Callable[[Settings, CloneContext], Awaitable[CloneKit]]
    needs_disk: bool = True
    is_ours: bool = True
    has_own_site: bool = False
    checks: Callable[[Settings, CloneContext], list[Check]] = lambda *_: []
    grows: Callable[[Settings], Command | None] = lambda _: None
    at_start: frozenset[str] = frozenset()
    has_parts: bool = False
    has_files: bool = False


def _address_checker(kind: Any) -> Callable[[str], str]:
    adapter = TypeAdapter[str](kind)

    def check(value: str) -> str:
        before, address, after = value.partition(ADDRESS)
        no_reference(before + after)
        if address and (not before.endswith("//") if before else not after.startswith(":")):
            raise ValueError(
                "must have ${address} in place of the host: http://${address}:8080, ${address}:80"
            )
        try:
            checked = adapter.validate_python(value.replace(ADDRESS, _ANY) if address else value)
        except ValidationError as error:
            raise ValueError(problems_of(error)[0].text) from None
        return f"{before}{ADDRESS}{checked.removeprefix(before + _ANY)}" if address else checked

    return check


TargetUrl = Annotated[str, AfterValidator(_address_checker(BaseUrl))]
TargetHost = Annotated[str, AfterValidator(_address_checker(HostPort))]


def needs_address(url: str, connect_to: str | None) -> bool:
    """Return whether the machine has to be asked for its address."""
    return ADDRESS in url or ADDRESS in (connect_to or "")


def resolve_target(url: str, connect_to: str | None, captured: Mapping[str, str]) -> Target:
    """Return the target with its address. Raises KeyError where that is not known yet."""
    return Target(fill(url, captured), None if connect_to is None else fill(connect_to, captured))


class GuestSettings(CloneSettings):
    """The settings of every driver whose clones are guests with an address of their own."""

    connect_to: TargetHost | None = Field(
        None, description="HOST:PORT to connect to instead; ${address}:80 if the site has its own name."
    )
    start_timeout_s: float = Field(
        300.0,
        gt=0,
        description="Seconds to wait for each step of a start: booting, getting an address, serving.",
    )
    stop_timeout_s: StopTimeout = 60
