"""The contents of `summary.json`, checked."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from plimsoll.rundir.fields import UNKNOWN_IS_FINE, Count, Format, Instant, Seconds
from plimsoll.rundir.runfacts import ClockState


class _Model(BaseModel):
    model_config = UNKNOWN_IS_FINE


class RequestCounts(_Model):
    """`summary.json`'s `requests`: also those that were never sent, which no record shows.

    `total` and `unsent` are None in a merged run where nobody knows what an instance had left to send.
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
    """A figure that is no single request, over the run; absent figures are None."""

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

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    p50: float | None = None
    p99: float | None = None
    p999: float | None = Field(default=None, alias="p99.9")
    max: float | None = None


class Instance(_Model):
    """One instance of a merged run, or one of its shards that is none; None is what is not known.

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
    """What clients sent that were logged in, without the warm-up; None is what nobody knows."""

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
