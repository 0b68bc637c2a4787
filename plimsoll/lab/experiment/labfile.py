"""lab.yml: every key, as models, the whole file last. A field's description stands in the docs."""

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, field_validator, model_validator

from plimsoll.common.notify import URL_NAME
from plimsoll.lab.clones import DRIVERS, AnyClone
from plimsoll.lab.clones.golden import SiteSettings
from plimsoll.lab.disks import AnyDisk
from plimsoll.lab.disks.caches import CacheState
from plimsoll.lab.experiment.order import Looks, Order
from plimsoll.lab.fileio.fio import FsyncMatrix
from plimsoll.lab.fileio.measure import BenchCases
from plimsoll.lab.fileio.precondition import PreconditionSettings
from plimsoll.lab.fileio.sysbench import Matrix
from plimsoll.lab.hosts.hostsfile import HostSettings, Name
from plimsoll.lab.names import Folder, LabName, StrictModel, explained_in
from plimsoll.lab.observers import AnyObserving, WithOwnKeys
from plimsoll.lab.saturators import AnySaturator
from plimsoll.lab.steps.step import no_reference
from plimsoll.lab.tuning.keys import DatasetTuning, DiskTuning, Tuning, VmTuning, ZfsTuning

MANUAL = "docs/lab.md"
LOCAL = "local"
REPLAY = "replay"
BACKEND = "backend"  # the factor that there is without saying so
EVERY = "*"  # in a key: each disk, or each dataset, of the backend
BEGIN_APART_S = 20.0  # at most between the first member that begins and the last
_LONGEST_RETRY_S = 600.0
CROWD = frozenset({"replay", "visitors"})  # has no end of its own: it is what others are timed within
ON_K6 = frozenset({"browser"})  # has a clock of its own, and waits for nobody
UPGRADES = {"upgrade-wordpress": "WordPress", "upgrade-xenforo": "the forum"}
Value = str | int | float | bool | None
Word = Annotated[str, AfterValidator(no_reference)]
Option = Annotated[str | int | float | bool | list[str], AfterValidator(no_reference)]
ScenarioName = Annotated[str, Field(pattern=r"^[a-z][a-z-]{0,39}$")]
FactorName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
Occasion = Literal["end", "failure", "set-aside"]
OCCASIONS: tuple[Occasion, ...] = ("end", "failure", "set-aside")


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
        """Refuse a phase that follows one without an end."""
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


class Member(StrictModel):
    """One of several scenarios that run together."""

    scenario: ScenarioName = Field(description="`replay`, or a scenario from `plimsoll scenario list`.")
    name: LabName | None = Field(
        None, description="Name among the members of this entry. Default: the scenario's own name."
    )
    options: dict[str, Option] = Field({}, description="Settings of the scenario, as without `together`.")
    begin_s: float | None = Field(
        None,
        ge=0,
        le=86400,
        description="Seconds after the start of the run, warm-up included, at which it begins. Default: with "
        "the saturator if it ends by itself, such as after `iterations`, else 0.",
    )

    @property
    def called(self) -> str:
        """Its name among the members."""
        return self.name or self.scenario

    @property
    def is_crowd(self) -> bool:
        """True if it goes on as long as the others do."""
        return self.scenario in CROWD


def full_name(entry: str, member: str) -> str:
    """Return what figures, gates and `run.json` call a member of an entry."""
    return f"{entry}/{member}"


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


class ReplayOptions(StrictModel):
    """The options of a replay in an experiment. A field's description stands in docs/lab.md."""

    log: list[Word] = Field(min_length=1, description="Access log, or a list of access logs.")
    format: Word | None = Field(
        None, description="goaccess preset or log-format string. Default: detected from the log."
    )
    speed: Word = Field("1", description="Multiple of the recorded pace, or `max`.")
    rate: float | None = Field(None, gt=0, description="Requests a second, in place of the log's pace.")
    users: int | None = Field(
        None, ge=1, description="Number of users in a closed loop, in place of the log's pace."
    )
    loops: int = Field(
        0, ge=0, description="Number of times to replay the log. 0: until the run's phases are over."
    )
    flags: list[Word] = Field(
        [], description="More flags for `plimsoll replay`: [--unconditional, --tz, UTC]."
    )

    @field_validator("log", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_validator("speed", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value

    @field_validator("speed")
    @classmethod
    def _pace(cls, value: str) -> str:
        try:
            right = value == "max" or 0 < float(value) < math.inf
        except ValueError:
            right = False
        if not right:
            raise ValueError("must be a number greater than 0, such as 10 or 0.5, or max")
        return value

    @model_validator(mode="after")
    def _one_pace(self) -> "ReplayOptions":
        given = [key for key in ("speed", "rate", "users") if key in self.model_fields_set]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: give only one of them")
        return self

    @field_validator("flags")
    @classmethod
    def _not_ours(cls, value: list[str]) -> list[str]:
        for flag in value:
            if flag.split("=")[0] in (
                "--target",
                "--connect-to",
                "--out",
                "--duration",
                "--warmup",
                "--backend",
            ):
                raise ValueError(f"{flag}: the lab sets this; leave it out")
            if flag.split("=")[0] in ("--fail-over", "--abort-on-fail", "--abort-after"):
                raise ValueError(f"{flag}: an experiment is judged by its gates.yml; leave it out")
        return value


def _short(prefix: str, model: type[BaseModel]) -> dict[str, str]:
    return {name: f"{prefix}.{name}" for name in model.model_fields}


_GROUPS = {"disks", "datasets", "zfs", "vm"}

# What is called by one word: each tuning key, and what a clone takes at its start.
SHORT: dict[str, str] = {
    **_short(f"tuning.disks.{EVERY}", DiskTuning),
    **_short(f"tuning.datasets.{EVERY}", DatasetTuning),
    **_short("tuning.zfs", ZfsTuning),
    **_short("tuning.vm", VmTuning),
    **{name: key for name, key in _short("tuning", Tuning).items() if name not in _GROUPS},
    **{name: f"clone.{name}" for driver in DRIVERS for name in sorted(driver.at_start)},
    "arc": "tuning.zfs.zfs_arc_max",
    "send_rate": "saturator.rate_bytes_per_s",
}


class Factor(StrictModel):
    """One thing to vary, and its levels."""

    name: FactorName = Field(
        description="Name of the factor in figures. One that is in the list below needs no key."
    )
    key: str | None = Field(
        None,
        description="Key of lab.yml to set: below `tuning`, `disk`, `clone` or `saturator` of a backend, or "
        "below `scenarios.NAME`.",
        max_length=300,
    )
    values: list[Value] = Field(
        min_length=2,
        max_length=64,
        description="Values to try. The others are compared with the first.",
    )
    backends: list[Name] = Field([], description="Backends to vary it on. Default: all.")

    @property
    def path(self) -> str | None:
        """The key that it sets; None where its name alone does not say which."""
        return self.key or SHORT.get(self.name.replace("-", "_"))


class Fileio(Matrix):
    """A measurement of each backend's volume, once, before the first run."""

    model_config = explained_in("docs/fileio.md")

    backends: tuple[LabName, ...] = Field(
        (),
        description="Backends whose volumes to measure. Default: all whose clone the lab puts on a disk.",
    )
    fsync: FsyncMatrix | None = Field(
        None, description="What to measure of fsyncs with fio, after sysbench: see docs/fileio.md."
    )

    @property
    def parts(self) -> list[Matrix | FsyncMatrix]:
        """What is measured, one after the other."""
        return [self, *([self.fsync] if self.fsync else [])]

    @property
    def all_cells(self) -> BenchCases:
        """The cells of all parts."""
        return [cell for part in self.parts for cell in part.cells]

    @property
    def most_bytes(self) -> int:
        """The room that the test files need, of which each part removes its own."""
        return max(part.needed_bytes for part in self.parts)

    @property
    def programs(self) -> set[str]:
        """The programs that measure."""
        return {"sysbench", *(["fio"] if self.fsync else [])}


class Precondition(PreconditionSettings):
    """Volumes that are full and used in the runs."""

    model_config = explained_in("docs/precondition.md")

    backends: tuple[LabName, ...] = Field(
        (), description="Backends whose volumes to fill. Default: all whose clone the lab puts on a disk."
    )


class Notify(StrictModel):
    """Notices of an experiment. No secret stands here: the URL of a web hook is in a file of its own."""

    command: str | None = Field(None, description="Command to run, with the notice as its input in Markdown.")
    webhook_file: Path | None = Field(
        None, description="File that holds the URL to POST to. Default: that in PLIMSOLL_WEBHOOK, if set."
    )
    occasions: list[Occasion] = Field(
        list(OCCASIONS),
        min_length=1,
        description="What to notify of: [end, failure, set-aside], which is the default, or some of them.",
    )

    def silence(self, environment: Mapping[str, str]) -> str | None:
        """Return what to do where these keys and the environment notify nobody; None where they do."""
        if self.command or self.webhook_file or environment.get(URL_NAME):
            return None
        return (
            f"notify: nobody is notified: give command or webhook_file, set {URL_NAME}, or start plimsoll "
            "run with --notify-command or --webhook-file"
        )

    @field_validator("command")
    @classmethod
    def _words(cls, command: str | None) -> str | None:
        try:
            empty = command is not None and not shlex.split(command)
        except ValueError as error:
            raise ValueError(f"is not a command line: {error}") from None
        if empty:
            raise ValueError("is empty; give a program and its arguments")
        return command


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
        [], max_length=16, description="What to vary in addition to the backend: see docs/factors.md."
    )
    combinations: list[dict[str, Value]] = Field(
        [], max_length=256, description="Combinations of the factors' values to try. Default: all."
    )
    goal_ms: float | None = Field(
        None,
        gt=0,
        le=3_600_000,
        description="Limit for p99.9 while the saturator runs. The report says up to which level of a factor "
        "it is met.",
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
        "docs/caches.md. Default: cold, except the ARC of an existing pool.",
    )
    phases: Phases = Field(Phases(), description="Lengths of the parts of a run.")
    warmup_s: float = Field(
        5.0, ge=0, le=86400, description="Seconds at the start of a run that figures leave out."
    )
    observe: AnyObserving = Field(
        WithOwnKeys(), description="What to sample each second: see docs/observers.md."
    )
    repeats: int = Field(
        4,
        ge=1,
        le=1000,
        description="Runs of each scenario on each backend, an even number. 4 are enough for a verdict.",
    )
    order: Order = Field(
        "blocks",
        description="`blocks`: every two repeats are a block, each backend twice, in an order drawn from "
        "`seed`. `abba`: forwards and backwards in turn. `random`: a random order for each repeat.",
    )
    looks: Looks = Field(
        "end",
        description="When verdicts are given, with `order: blocks`. `end`: once, after the last block, with "
        "the power of all runs. `blocks`: after each block, so that it may end early; one that does not end "
        "early takes more runs for the same power.",
    )
    seed: int = Field(1, ge=0, description="Seed for everything that is random.")
    limits: Limits = Field(Limits(), description="Limits at which the lab gives up.")
    notify: Notify | None = Field(None, description="Who is notified of failures and of the end.")
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

    def member_duration_s(self, choice: ScenarioChoice, member: Member) -> float | None:
        """Return how long `member` is to last in seconds, warm-up included; None where it ends by itself.

        An upgrade takes what it takes. A crowd begins first, and must not end before what is timed within
        it: it is to last longer. Where the phases have no end, it is stopped when
        all others have ended.
        """
        duration_s = self.duration_s(choice)
        if member.scenario in UPGRADES:
            return None
        if not choice.together or not member.is_crowd:
            return duration_s
        return self.limits.run_s if duration_s is None else duration_s + BEGIN_APART_S
