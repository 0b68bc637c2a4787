"""The things that become parts of a run directory when results of another program are imported."""

from dataclasses import dataclass

from plimsoll.rundir.records import Request


@dataclass(frozen=True)
class MeasureValue:
    """A value of a metric that is no single request; `t_ns` since the start of the run."""

    name: str
    value: float
    unit: str
    t_ns: int
    iteration: int


@dataclass(frozen=True)
class DroppedIterations:
    """Iterations that k6 had no free visitor for when they were due."""

    count: int


@dataclass(frozen=True)
class FailedCheck:
    """A check() of the script that did not hold. `kind`: MISSING_FILE, or another word."""

    step: str
    name: str
    kind: str
    t_ns: int
    iteration: int
    client: int


@dataclass(frozen=True)
class CachedRequest:
    """A request of the browser's that never left it."""


ImportedItem = Request | MeasureValue | DroppedIterations | FailedCheck | CachedRequest
