"""lab.yml: the whole experiment. A field's description is its help text and stands in docs/lab.md."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from plimsoll.common.validation import Location, read_model
from plimsoll.lab.clones import AnyClone, driver_of
from plimsoll.lab.clones.golden import SiteSettings
from plimsoll.lab.disks import AnyDisk, make_disk
from plimsoll.lab.disks import find_disk_kind as disk_kind
from plimsoll.lab.disks.caches import CacheState
from plimsoll.lab.experiment.caches import cache_problems
from plimsoll.lab.experiment.factors.problems import factor_problems
from plimsoll.lab.experiment.factors.settings import Factor, Value
from plimsoll.lab.experiment.fileio_settings import Fileio, fileio_problems
from plimsoll.lab.experiment.notify_settings import Notify
from plimsoll.lab.experiment.precondition_settings import Precondition, precondition_problems
from plimsoll.lab.experiment.together.members import (
    UPGRADES,
    Member,
    Option,
    ScenarioName,
    full_name,
    member_problems,
)
from plimsoll.lab.hosts import HostSettings, Name
from plimsoll.lab.names import Folder, Label, LabName, StrictModel
from plimsoll.lab.observers import ObserverSettings
from plimsoll.lab.saturators import AnySaturator
from plimsoll.lab.tuning import Tuning
from plimsoll.lab.tuning.plan import problems as own_disk_problems

MANUAL = "docs/lab.md"
LOCAL = "local"
_LONGEST_RETRY_S = 600.0


class Phases(StrictModel):
    """Before, during and after the saturator: so each run carries its own control."""

    before_s: float = Field(
        30.0, ge=0, le=86400, description="Seconds after the warm-up, without the saturator."
    )
    during_s: float | None = Field(
        60.0,
        gt=0,
        le=86400,
        description="Seconds with the saturator. null: until the scenario ends by itself.",
    )
    after_s: float = Field(30.0, ge=0, le=86400, description="Seconds without the saturator again.")

    @model_validator(mode="before")
    @classmethod
    def _open_end(cls, said: Any) -> Any:
        """Leave nothing behind an open end."""
        if isinstance(said, dict) and said.get("during_s", ...) is None and "after_s" not in said:
            return {**said, "after_s": 0.0}
        return said

    @model_validator(mode="after")
    def _ends(self) -> "Phases":
        if self.during_s is None and self.after_s:
            raise ValueError("after_s: nothing can follow a during_s of null; leave after_s out")
        return self


class Backend(StrictModel):
    """One way of storing the site."""

    name: LabName = Field(description="Name of the backend in figures and verdicts.")
    host: Name = Field(LOCAL, description="Machine that has the disks: `local`, or one of `hosts`.")
    disk: AnyDisk | None = Field(
        None, description="Where to put the clone, or where a `static` one is: see docs/disks.md."
    )
    clone: AnyClone = Field(description="How to clone the site: see below.")
    tuning: Tuning = Field(
        Tuning(), description="Settings of the host while this backend runs: see docs/tuning.md."
    )
    saturator: AnySaturator | None = Field(
        None, description="Saturator for this backend, in place of the experiment's."
    )


class ScenarioChoice(StrictModel):
    """One scenario with its options, or several together."""

    scenario: ScenarioName | None = Field(
        None,
        description="`replay`, or a scenario from `plimsoll scenario list`. Required without `together`.",
    )
    name: LabName | None = Field(
        None,
        description="Name in this experiment. Default: the scenario's own name. Required with `together`.",
    )
    options: dict[str, Option] = Field(
        {},
        description="Settings of the scenario, spelled with `_`: `rate: 5`, `think_s: 1`. For replay, see "
        "below.",
    )
    phases: Phases | None = Field(None, description="Phases for this scenario, in place of the experiment's.")
    together: list[Member] = Field(
        [], description="Scenarios to run at the same time on one clone, in place of `scenario`: see below."
    )

    @property
    def called(self) -> str:
        """Its name in this lab."""
        return self.name or self.scenario or ""

    @property
    def members(self) -> list[Member]:
        """What runs at the same time: one scenario, or several."""
        if self.together or self.scenario is None:
            return self.together
        return [Member(scenario=self.scenario, name=self.name, options=self.options)]

    def called_in_full(self, member: Member) -> str:
        """Return what figures, gates and run.json call one of its members."""
        return full_name(self.called, member.called) if self.together else self.called


class Limits(StrictModel):
    """The limits at which a run or an experiment gives up."""

    run_s: float = Field(
        7200.0,
        gt=0,
        le=604_800,
        description="Seconds that a run may take in addition to its phases.",
    )
    failures: int = Field(
        3,
        ge=1,
        le=100,
        description="Failures in a row after which the lab sets a scenario on a backend aside, or a backend "
        "that cannot be made.",
    )
    retry_s: float = Field(
        10.0,
        ge=0,
        le=3600,
        description="Seconds to wait before a failed run is tried again: twice as long each time, at most "
        "10 minutes or this.",
    )
    settle_s: float = Field(
        2.0, ge=0, le=3600, description="Seconds to wait between the start of a site and its run."
    )

    def pause_s(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row. Pure."""
        return min(self.retry_s * 2.0 ** (failures - 1), max(_LONGEST_RETRY_S, self.retry_s))


class Lab(StrictModel):
    """The whole file."""

    name: LabName = Field(
        description="Name of the experiment. It is part of the name of everything that the lab makes."
    )
    site: SiteSettings = Field(SiteSettings(), description="Site that `compose` clones.")
    hosts: list[HostSettings] = Field([], description="Other machines: see docs/hosts.md for their keys.")
    backends: list[Backend] = Field(min_length=1, description="Storage backends to compare.")
    scenarios: list[ScenarioChoice] = Field(min_length=1, description="Scenarios to run on each backend.")
    saturator: AnySaturator | None = Field(
        None,
        description="What keeps the disks busy: see docs/saturators.md. Its target is the clone unless you "
        "name another.",
    )
    factors: list[Factor] = Field(
        [], max_length=16, description="What to vary besides the backend: see docs/factors.md."
    )
    combinations: list[dict[str, Value]] = Field(
        [], max_length=256, description="Combinations of the factors' values to try. Default: all."
    )
    goal_ms: float | None = Field(
        None,
        gt=0,
        le=3_600_000,
        description="What p99.9 is to stay under while the saturator runs. The report says up to which level "
        "of a factor it does.",
    )
    fileio: Fileio | None = Field(
        None, description="How to measure each backend's volume before the runs: see docs/fileio.md."
    )
    precondition: Precondition | None = Field(
        None,
        description="How to fill and overwrite each volume before the runs: see docs/precondition.md.",
    )
    cache: CacheState | None = Field(
        None,
        description="State of the caches at the start of each run, cold, warm or as-is: see "
        "docs/caches.md. Default: cold, but for the ARC of a pool that exists.",
    )
    phases: Phases = Field(Phases(), description="Lengths of the parts of a run.")
    warmup_s: float = Field(
        5.0, ge=0, le=86400, description="Seconds at the start of a run that figures leave out."
    )
    observe: ObserverSettings = Field(
        ObserverSettings(), description="What to sample each second: see docs/observers.md."
    )
    repeats: int = Field(
        4, ge=1, le=1000, description="Runs of each scenario on each backend. 4 are enough for a verdict."
    )
    order: Literal["abba", "random"] = Field(
        "abba",
        description="`abba`: forwards and backwards in turn. `random`: a random order for each repeat, from "
        "`seed`.",
    )
    seed: int = Field(1, ge=0, description="Seed for everything that is random.")
    limits: Limits = Field(Limits(), description="Limits at which the lab gives up.")
    notify: Notify | None = Field(None, description="Whom to tell of failures and of the end.")
    work: Folder = Field("/var/lib/plimsoll", description="Folder on each machine for the lab's own files.")
    out: Path = Field(Path("results"), description="Folder for results, on this machine.")

    def backend(self, name: str) -> Backend:
        """Return the backend of that name."""
        return next(backend for backend in self.backends if backend.name == name)

    def scenario(self, called: str) -> ScenarioChoice:
        """Return the scenario that is called so."""
        return next(choice for choice in self.scenarios if choice.called == called)

    def phases_of(self, choice: ScenarioChoice) -> Phases:
        """Return the lengths of its runs' phases."""
        return choice.phases or self.phases

    def duration_s(self, choice: ScenarioChoice) -> float | None:
        """Return the length of its runs in seconds, warm-up included; None where it ends by itself."""
        phases = self.phases_of(choice)
        if phases.during_s is None:
            return None
        return self.warmup_s + phases.before_s + phases.during_s + phases.after_s


def read_lab(path: Path) -> Lab:
    """Read and check `path`. Raises SettingsError with all problems."""
    return read_model(path, Lab, MANUAL, problems)


def problems(lab: Lab) -> Iterator[tuple[Location, str]]:
    """Yield the problems between keys: where, and what to do. Pure."""
    yield from _twice("backends", [backend.name for backend in lab.backends], "name")
    yield from _twice("scenarios", [choice.called for choice in lab.scenarios], "name")
    yield from _twice("hosts", [host.name for host in lab.hosts], "name")
    for i, choice in enumerate(lab.scenarios):
        yield from ((("scenarios", i, *at), what) for at, what in _choice_problems(lab, choice))
    hosts = {LOCAL, *(host.name for host in lab.hosts)}
    for i, host in enumerate(lab.hosts):
        if host.name == LOCAL:
            yield ("hosts", i, "name"), f"{LOCAL} is this machine: choose another name"
    for i, backend in enumerate(lab.backends):
        at: Location = ("backends", i)
        if backend.host not in hosts:
            yield (*at, "host"), f"{backend.host} is not one of hosts: {', '.join(sorted(hosts))}"
        on_disk = driver_of(backend.clone).needs_disk
        if on_disk and backend.disk is None:
            yield (
                (*at, "disk"),
                f"is missing: {backend.clone.driver} puts the clone on a disk (see docs/disks.md)",
            )
        yield from ((((*at, *where), what)) for where, what in _disk_problems(backend))
    yield from fileio_problems(lab)
    yield from precondition_problems(lab)
    yield from cache_problems(lab)
    yield from factor_problems(lab)


def _choice_problems(lab: Lab, choice: ScenarioChoice) -> Iterator[tuple[Location, str]]:
    if not choice.together:
        if choice.scenario is None:
            yield ("scenario",), "is missing: name a scenario, or several under together (see docs/lab.md)"
        elif choice.scenario in UPGRADES and lab.duration_s(choice) is not None:
            yield (
                ("phases",),
                f"{choice.scenario} ends by itself, so its phases cannot be of fixed lengths: write phases: "
                "{before_s: 0, during_s: null} in this entry, and the saturator works as long as the upgrade "
                "does, or put it under together with a crowd (see docs/lab.md)",
            )
        return
    if choice.scenario is not None:
        yield ("scenario",), "must be left out beside together, where each member has its own"
    if choice.options:
        yield ("options",), "must be left out beside together: give each member its own"
    if choice.name is None:
        yield ("name",), "is missing: what runs together needs a name, such as rush-hour"
    yield from member_problems(choice.together, lab.duration_s(choice))


def _disk_problems(backend: Backend) -> Iterator[tuple[Location, str]]:
    """Yield what is wrong with the disk of a clone that is put on none, and with a tuning of it."""
    driver, said = driver_of(backend.clone), backend.disk
    if said is not None and not driver.needs_disk:
        if driver.is_ours:
            yield ("disk",), f"must be left out: {driver.name} puts the clone on no disk"
        elif disk_kind(said).is_made:
            yield ("disk",), f"must be a folder: {driver.name} is on a disk that exists"
    place = make_disk(said, Label("any"), "any").place() if said else None
    has = (bool(place and place.devices), bool(place and place.dataset), driver.has_parts)
    own = own_disk_problems(backend.tuning, *has)
    yield from ((("tuning", *where), what) for where, what in own)


def _twice(key: str, names: list[str], field: str) -> Iterator[tuple[Location, str]]:
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if name in first:
            yield (key, i, field), f"{name} is already the name of {key}.{first[name]}"
        first.setdefault(name, i)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of lab.yml, for editors."""
    return Lab.model_json_schema() | {"$schema": "https://json-schema.org/draft/2020-12/schema"}
