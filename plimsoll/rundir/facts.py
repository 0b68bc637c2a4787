"""The facts of a run, checked: what its run.json and its summary.json hold.

Unknown keys are fine; wrong types are not.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from plimsoll.common.errors import Severity

RUN_FORMAT = 2
RUN_FORMATS = (1, 2)  # that are read
_FIRST_YEAR, _LAST_YEAR = 1970, 9000
_NEVER_S = 0xFFFF_FFFF / 1e6  # what stands for "never" in the columns of records


def _is_format(value: object) -> object:
    if value not in RUN_FORMATS or isinstance(value, bool):
        raise ValueError(f"must be {' or '.join(map(str, RUN_FORMATS))}")
    return value


def _instant(value: datetime | None) -> str | None:
    """Instants are in UTC with six decimals (docs/run-format.md)."""
    return None if value is None else f"{value:%Y-%m-%dT%H:%M:%S.%fZ}"


def _utc(value: datetime | None) -> datetime | None:
    if value is None:
        return None
    if not _FIRST_YEAR <= value.year <= _LAST_YEAR:
        raise ValueError(f"is in the year {value.year}, before any run")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Format = Annotated[int, BeforeValidator(_is_format)]
Instant = Annotated[datetime | None, AfterValidator(_utc), PlainSerializer(_instant)]
Count = Annotated[int, Field(ge=0, le=1 << 62)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
# Of every object. A model is built when it is first used: most runs have few of them.
IGNORE_UNKNOWN = ConfigDict(extra="ignore", frozen=True, defer_build=True)


FROM_LOG = "accesslog"  # the program of a run that was imported from an access log
REPLAY = "replay"  # a scenario, and the program of its runs
_CONTROL = "download"  # should take as long whatever the storage is


class _Model(BaseModel):
    model_config = IGNORE_UNKNOWN


class RunTarget(_Model):
    """The server that the load went to."""

    url: str
    connect_to: str | None = None
    addresses: list[str] = []


class Log(_Model):
    """One access log that was replayed, and how many of its lines parsed."""

    path: str
    format: str | None = None
    lines: Count | None = None
    valid: Count | None = None
    failed: Count | None = None
    ignored: Count | None = None
    strays: Count | None = None
    set_backs: Count | None = None
    ahead_s: float | None = None
    first: str | None = None
    last: str | None = None


class LogPauses(_Model):
    """The pauses of a log that a replay shortened, and what it cut off them in all, in the log's time."""

    shortened: Count
    cut_s: Seconds


class Clients(_Model):
    """The clients of the log, and how many of their addresses are a proxy's.

    `spread_over` is how many clients send the requests of proxies; None where they are the log's own.
    """

    counted: Count
    largest_share: float = Field(ge=0, le=1)
    proxies: Count = 0
    proxies_share: float = Field(default=0, ge=0, le=1)
    spread_over: Count | None = None


class Program(_Model):
    """The program that wrote the run directory, and further versions (`go`, `python`, `locust`, `k6`)."""

    model_config = ConfigDict(extra="allow")

    name: str = "unknown"
    version: str | None = None


class GeneratorHost(_Model):
    """The machine that generated the load."""

    hostname: str | None = None
    kernel: str | None = None
    cpu: str | None = None
    cpus: Count | None = None
    memory_bytes: int | None = Field(default=None, ge=0, le=1 << 60)


class RunProcess(_Model):
    """The process that writes a run: its number in a namespace, and its start, in clock ticks of a boot."""

    pid: int = Field(ge=1)
    start: Count
    boot: str
    namespace: Count


class Sender(_Model):
    """What sent the load of a replay: so many threads of that priority, on so many cores at most.

    Beside the server, `ran_ms_per_s` is how long the generator had a processor in each second, and
    `others_wait_ms_per_s` how long all other threads of the machine waited for one; `cores_busy` is the
    share of their time that all cores were at work.
    """

    beside_server: bool
    cores: int = Field(ge=1)
    threads: int = Field(ge=1)
    nice: int
    ran_ms_per_s: float | None = Field(None, ge=0)
    others_wait_ms_per_s: float | None = Field(None, ge=0)
    cores_busy: float | None = None


class ServerSoftware(_Model):
    """What the servers called themselves in their answers (hostile)."""

    server: list[str] = []
    x_powered_by: list[str] = []


class ExperimentRun(_Model):
    """The experiment that a run is part of, as number `run` of `of`, in block number `block` of its order.

    `block` is None where runs do not come in blocks; `looks` is when verdicts are given: once, at the `end`,
    or after each of the `blocks`; None where that is unknown. `levels` are the labels of all levels that it
    tries, by factor; `goal_ms` is what p99.9 must stay under.
    """

    name: str
    run: Count | None = None
    of: Count | None = None
    block: Count | None = None
    looks: Literal["end", "blocks"] | None = None
    levels: dict[str, list[str]] = {}
    goal_ms: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class TunedValue(_Model):
    """A setting of the host that the backend's tuning names: what was there, and what it was set to."""

    key: str
    was: str | None = None
    set: str


class CacheStart(_Model):
    """The caches when the run began: `cold`, `warm`, `as-is` or `default`, and the steps that saw to it."""

    state: str
    how: list[str] = []


class Preconditioned(_Model):
    """How full the volume was made before the runs, how it was overwritten, and whether it was steady."""

    fill_percent: Count | None = None
    block_bytes: Count | None = None
    threads: Count | None = None
    rounds: Count | None = None
    steady: bool | None = None


class Storage(_Model):
    """The storage under the site. `emulated` says what was imitated by slowing another disk down, else None.

    `clone` is how the site was copied there, `facts` what the lab read of the host (plimsoll/lab/facts),
    `tuning` what it set there for this run, `cache` what it did to the caches, None where it did not look
    after them. `precondition` is None for a volume that was left as it is.
    """

    emulated: str | None = None
    clone: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    tuning: list[TunedValue] = []
    cache: CacheStart | None = None
    precondition: Preconditioned | None = None


class PhaseLengths(_Model):
    """The planned length of the load before, during and after the saturator."""

    before_s: Seconds | None = None
    during_s: Seconds | None = None
    after_s: Seconds | None = None


class Companion(_Model):
    """Another run that loaded the same clone at the same time, from when to when by this run's own clock.

    `crowd`: it is what others are timed within. `load` is the digest of its load, without the instant from
    which on it plays its log, which is `log_from`.
    """

    member: str
    scenario: str
    crowd: bool = False
    speed: str | None = None
    load: str | None = None
    log_from: str | None = None
    from_s: float | None = Field(default=None, allow_inf_nan=False)
    to_s: float | None = Field(default=None, allow_inf_nan=False)


class Together(_Model):
    """The runs that loaded one clone at the same time: member `member` of entry `entry`, and the others.

    `run` is the name of the folder that holds them all. `begins_s` is when it was to begin, by the clock of
    the run, and `began_s` when it did, by its own; None where it began with the run. `stopped`: the lab ended
    this one in good order, as all others had ended.
    """

    run: str
    entry: str
    member: str
    begins_s: float | None = Field(default=None, allow_inf_nan=False)
    began_s: float | None = Field(default=None, allow_inf_nan=False)
    stopped: bool = False
    others: list[Companion] = []

    @property
    def company(self) -> str:
        """The others in words (hostile), the crowd first."""
        named = sorted(self.others, key=lambda other: not other.crowd)
        return ", ".join(f"{each.member} ({each.speed})" if each.speed else each.member for each in named)


class ClockState(_Model):
    """What the kernel says about its clock (adjtimex); None if it says nothing."""

    synchronised: bool | None = None
    max_error_ms: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Shard(_Model):
    """The share of a replay that one of several instances had: that between two bounds of `sequence`.

    `planned` is how many requests the schedule has for each instance, counted by one that went through it to
    its end; `start_at` the start that all instances share, None where each began on command.
    """

    index: int = Field(ge=0)
    of: int = Field(ge=1)
    segment: str
    sequence: list[str] = []
    planned: list[Count] | None = None
    start_at: Instant = None
    clock: ClockState | None = None

    @model_validator(mode="after")
    def _check_index(self) -> Self:
        if self.index >= self.of:
            raise ValueError(f"index {self.index} is not one of {self.of}: they count from 0")
        for name, given, wanted in (
            ("sequence", self.sequence, self.of + 1),
            ("planned", self.planned, self.of),
        ):
            if given and len(given) != wanted:
                raise ValueError(f"{name} has {len(given)} entries, where {self.of} instances have {wanted}")
        return self


class Load(_Model):
    """All that shapes the load of a run; two runs of one load have one `digest`.

    `settings` holds each setting by name, secrets as digests of themselves; `digest` is the SHA-256 of its
    canonical JSON (sorted keys, no spaces, UTF-8), in hexadecimal.
    """

    digest: str
    settings: dict[str, Any] = {}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Load":
        """Return the load of `settings`: plain JSON, in which secrets stand as their digests. Pure."""
        text = json.dumps(
            settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return cls(digest=sha256_hex(text.encode("utf-8", errors="replace")), settings=dict(settings))


class MergeFinding(_Model):
    """A sentence about a merged run."""

    level: Severity
    text: str


class Merged(_Model):
    """The parts of a merged run, and how well they fit together.

    `clock_error_ms` is how far the instances' clocks may differ, None if unknown; `placed_by` is what
    their instants were aligned by.
    """

    of: list[str]
    placed_by: Literal["start_at", "started_at"]
    clock_error_ms: float | None = None
    says: list[MergeFinding] = []


class RunFacts(_Model):
    """`run.json`: what was run, on what, by what, and how it ended."""

    format: Format = RUN_FORMAT
    scenario: Annotated[str, Field(min_length=1)]
    status: Literal["running", "complete", "interrupted", "failed"] = "running"
    backend: str | None = None
    repeat: int | str | None = None
    generator_limited: bool = False
    generator_limited_reason: str | None = None
    reason: str | None = None
    started_at: Instant = None
    ended_at: Instant = None
    target: RunTarget | None = None
    command: list[str] = []
    seed: int | None = None
    loop: Literal["open", "closed"] = "open"
    speed: str | None = None
    warmup_s: Seconds = 0.0
    logs: list[Log] = []
    clients: Clients | None = None
    log_start: Instant = None
    log_pauses: LogPauses | None = None
    program: Program = Program()
    host: GeneratorHost = GeneratorHost()
    process: RunProcess | None = None
    sender: Sender | None = None
    server_software: ServerSoftware | None = None
    scenario_settings: dict[str, Any] = {}
    load: Load | None = None
    experiment: ExperimentRun | None = None
    factors: dict[str, str] | None = None
    storage: Storage | None = None
    phases: PhaseLengths | None = None
    together: Together | None = None
    shard: Shard | None = None
    limits: list[str] | None = None
    merged: Merged | None = None

    @property
    def from_log(self) -> bool:
        """True if this is not a load test, but what an access log says was served."""
        return self.program.name == FROM_LOG

    @property
    def own_scenario(self) -> str:
        """What ran (hostile), such as `download`, where `scenario` is what an experiment calls it."""
        if self.program.name == REPLAY:
            return REPLAY
        loaded = self.load.settings.get("scenario") if self.load else None
        return loaded if isinstance(loaded, str) else self.scenario.rpartition("/")[2]

    @property
    def is_control(self) -> bool:
        """Whether it is the control experiment, alone or together with others."""
        return self.own_scenario == _CONTROL

    @property
    def timeout_us(self) -> int | None:
        """How long a request was waited for; None where that is not known, or more than records can hold."""
        given = self.load.settings.get("timeout_s") if self.load else None
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < _NEVER_S:
            return None
        return round(given * 1e6)

    @property
    def finest_us(self) -> float:
        """What all durations of an imported log are multiples of; 1 where that is not known."""
        found = self.scenario_settings.get("durations_multiple_of_us")
        known = isinstance(found, int | float) and not isinstance(found, bool) and 0 < found <= 1e6
        return float(found) if known else 1.0  # type: ignore[arg-type]


# What is absent from run.json, rather than null, where it has no meaning.
OPTIONAL_KEYS = (
    "experiment",
    "factors",
    "storage",
    "phases",
    "together",
    "clients",
    "process",
    "sender",
    "server_software",
    "load",
    "log_pauses",
    "shard",
    "limits",
    "merged",
)


class RequestCounts(_Model):
    """`summary.json`'s `requests`: also those that were never sent, which no record shows.

    `total` and `unsent` are None in a merged run if it is unknown what an instance had left to send.
    """

    total: Count | None = None
    sent: Count | None = None
    ok: Count | None = None
    errors: Count | None = None
    warmup: Count | None = None
    skipped: dict[str, Count] = {}
    unsent: Count | None = 0
    retried: Count = 0
    client_queued: Count = 0


class MeasureSummary(_Model):
    """A figure over the run that is not of a single request; absent figures are None."""

    unit: str
    count: Count = 0
    sum: float | None = None
    mean: float | None = None
    min: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class InstanceTimes(_Model):
    """Exact order statistics of one instance, in milliseconds; None of too few requests."""

    model_config = ConfigDict(populate_by_name=True)

    p50: float | None = None
    p99: float | None = None
    p999: float | None = Field(default=None, alias="p99.9")
    max: float | None = None


class Instance(_Model):
    """One instance of a merged run, or a shard without one; None is what is unknown.

    `status` is `complete`, `interrupted`, `failed`, `killed`, `running` (when it was merged), `truncated`
    (records that it wrote are gone) or `missing` (its run directory was not given).
    """

    name: str
    index: int | None = None
    segment: str | None = None
    directory: str | None = None
    host: str | None = None
    status: str
    sent: Count | None = None
    planned: Count | None = None
    unsent: Count | None = None
    errors: Count | None = None
    generator_limited: bool = False
    lag_ms: InstanceTimes = InstanceTimes()
    response_ms: InstanceTimes = InstanceTimes()
    started_at: Instant = None
    clock: ClockState | None = None


class MemberCounts(_Model):
    """What logged-in clients sent, without the warm-up; None is what is unknown."""

    clients: Count | None = None
    accounts: Count | None = None
    requests: Count = 0
    sent_to_login: Count = 0


class LimitVerdict(_Model):
    """What became of a limit that the run was to keep, and why (hostile)."""

    limit: str
    outcome: Literal["kept", "exceeded", "not judged"]
    says: str


class Summary(_Model):
    """`summary.json`: only what cannot be computed again from the records.

    `records_sha256` is the SHA-256 (hexadecimal) of all whole records of `requests.npy` without its header;
    None in runs of programs that did not write it yet.
    """

    format: Format
    records_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    requests: RequestCounts = RequestCounts()
    duration_s: Seconds | None = None
    measures: dict[str, MeasureSummary] = {}
    unqueued_ms: InstanceTimes | None = None
    members: MemberCounts | None = None
    limits: list[LimitVerdict] = []
    not_as_logged: str = ""
    instances: list[Instance] = []


def sha256_hex(text: bytes) -> str:
    """Return the SHA-256 of `text` in hexadecimal."""
    return sha256(text).hexdigest()


def ran_together(one: RunFacts, other: RunFacts) -> bool:
    """Return whether both are members of one run, so that it was meant that they overlap."""
    first, second = one.together, other.together
    if first is None or second is None:
        return False
    return (one.experiment, one.backend, first.run) == (
        other.experiment,
        other.backend,
        second.run,
    ) and first.member != second.member
