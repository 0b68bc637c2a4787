"""What `run.json` and `summary.json` hold, checked. Unknown keys are fine; wrong types are not."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

FORMAT = 1


def _is_format(value: object) -> object:
    if value != FORMAT or isinstance(value, bool):
        raise ValueError(f"must be {FORMAT}")
    return value


def _instant(value: datetime | None) -> str | None:
    """Instants are in UTC with six decimals (docs/run-format.md)."""
    return None if value is None else f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


Instant = Annotated[datetime | None, PlainSerializer(_instant)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Target(_Model):
    """Where the load went."""

    url: str
    connect_to: str | None = None
    addresses: list[str] = []


class Log(_Model):
    """One access log that was replayed, and how many of its lines parsed."""

    path: str
    format: str | None = None
    lines: int | None = None
    valid: int | None = None
    failed: int | None = None
    ignored: int | None = None
    first: str | None = None
    last: str | None = None


class Program(_Model):
    """What wrote the run directory, and further versions (`go`, `python`, `locust`, `k6`)."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = "unknown"
    version: str | None = None


class Host(_Model):
    """The machine that generated the load."""

    hostname: str | None = None
    kernel: str | None = None
    cpu: str | None = None
    cpus: int | None = None
    memory_bytes: int | None = Field(default=None, ge=0, le=1 << 60)


class Experiment(_Model):
    """Which experiment a run is part of: it is number `run` of `of`."""

    name: str
    run: int | None = None
    of: int | None = None


class Storage(_Model):
    """What the site lay on. `emulated` says what was imitated by slowing another disk down, else None.

    `clone` is how the site was copied there, `facts` what the lab read of the host (lab/facts).
    """

    emulated: str | None = None
    clone: dict[str, Any] = {}
    facts: dict[str, Any] = {}


class PhaseLengths(_Model):
    """How long the load was to last before, during and after the saturator."""

    before_s: float | None = None
    during_s: float | None = None
    after_s: float | None = None


class RunFacts(_Model):
    """`run.json`: what was run, on what, by what, and how it ended."""

    format: Annotated[int, BeforeValidator(_is_format)] = FORMAT
    scenario: str
    status: Literal["running", "complete", "interrupted", "failed"] = "running"
    backend: str | None = None
    repeat: int | str | None = None
    generator_limited: bool = False
    generator_limited_reason: str | None = None
    reason: str | None = None
    started_at: Instant = None
    ended_at: Instant = None
    target: Target | None = None
    command: list[str] = []
    seed: int | None = None
    loop: Literal["open", "closed"] = "open"
    speed: str | None = None
    warmup_s: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    logs: list[Log] = []
    log_start: Instant = None
    program: Program = Program()
    host: Host = Host()
    scenario_settings: dict[str, Any] = {}
    experiment: Experiment | None = None
    storage: Storage | None = None
    phases: PhaseLengths | None = None


# What the lab writes into run.json after a run: absent where no lab was.
LAB_KEYS = ("experiment", "storage", "phases")


class RequestCounts(_Model):
    """`summary.json`'s `requests`: also those that were never sent, which no record shows."""

    total: int | None = None
    sent: int | None = None
    skipped: dict[str, int] = {}
    unsent: int = 0
    retried: int = 0


class Measure(_Model):
    """A figure that is no single request, over the run; absent figures are None."""

    unit: str
    count: int = 0
    sum: float | None = None
    mean: float | None = None
    min: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    max: float | None = None


class Summary(_Model):
    """`summary.json`: only what cannot be computed again from the records."""

    format: Annotated[int, BeforeValidator(_is_format)]
    requests: RequestCounts = RequestCounts()
    duration_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    measures: dict[str, Measure] = {}
