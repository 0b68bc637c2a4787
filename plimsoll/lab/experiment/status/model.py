"""The status of an experiment, as `plimsoll lab status --json` prints it. What is absent is null."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

State = Literal["not begun", "running", "stopped", "finished", "unfinished"]


class LoadFigures(BaseModel):
    """The requests of a run, or of one member of it, so far; `p999_ms` is without the warm-up.

    `waits_s` are the seconds until it is to begin, null where it has, or began with the run.
    """

    scenario: str | None
    directory: str
    requests: int
    failures: int
    requests_per_s: float | None
    p999_ms: float | None = Field(serialization_alias="p99.9_ms")
    phase_p999_ms: float | None = Field(serialization_alias="phase_p99.9_ms")
    waits_s: float | None = None


class SendFigures(BaseModel):
    """A saturator: whether it works, its throughput in the last second, and how often it began again."""

    kind: str
    works: bool
    bytes_per_s: float | None
    retries: int


class DiskFigures(BaseModel):
    """The mean latencies of a disk in the last seconds."""

    device: str
    read_ms: float | None
    write_ms: float | None


class Doing(BaseModel):
    """What is being done: a backend is made, its volume filled or measured, a run prepared or measured."""

    what: Literal[
        "starting",
        "making",
        "preconditioning",
        "fileio",
        "preparing",
        "measuring",
        "ending",
        "waiting",
        "removing",
    ]
    since_s: float
    backend: str | None = None
    step: str | None = None
    run: str | None = None
    number: int | None = None
    scenario: str | None = None
    repeat: int | None = None
    try_: int | None = Field(None, serialization_alias="try")
    phase: str | None = None
    phase_s: float | None = None
    phase_of_s: float | None = None
    run_s: float | None = None
    run_of_s: float | None = None
    load: list[LoadFigures] = []
    send: SendFigures | None = None
    disks: list[DiskFigures] = []


class Failure(BaseModel):
    """A try of a run that failed."""

    run: str
    backend: str
    at: datetime
    why: str
    output: str | None = None


class Runs(BaseModel):
    """How many runs there are, are finished, left, and set aside; and how many tries failed."""

    total: int
    finished: int
    left: int
    set_aside: int
    failed_tries: int


class VolumeCells(BaseModel):
    """The cells of fileio on all volumes, and the volumes on which it failed this time, with the reason."""

    total: int
    finished: int
    failed: dict[str, str]


class PreconditionedVolumes(BaseModel):
    """The volumes that are to be full and used: how many, on how many that is done, and which are steady.

    `rounds`: the last round on each, by volume; 0 is the filling.
    """

    volumes: int
    done: int
    steady: int
    rounds: dict[str, int]


class Status(BaseModel):
    """The whole. `resume` is the command that goes on, null where nothing is left or it runs already."""

    experiment: str
    directory: str
    state: State
    begun_at: datetime | None
    ended_at: datetime | None
    runs: Runs
    precondition: PreconditionedVolumes | None = None
    fileio: VolumeCells | None = None
    now: Doing | None
    last_failure: Failure | None
    set_aside: dict[str, str]
    ends_at: datetime | None
    left_s: float | None
    resume: str | None
    report: str | None
