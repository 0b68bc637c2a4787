"""The words in which every tool is told what to do, and in which it tells what it did."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Flood:
    """As many requests as go, over so many connections, so long: one URL, or a whole log."""

    url: str
    seconds: int
    connections: int
    scratch: Path
    log: Path  # for the tools that replay one
    as_logged: bool = False  # they send the log's headers too; else Host alone, as wrk does
    headers: tuple[str, ...] = ()  # what the others send besides
    http2: bool = False  # as the log says, too


@dataclass(frozen=True)
class Pace:
    """A constant rate; most is the cap on connections or simulated users, None for no cap."""

    url: str
    per_second: int
    seconds: int
    scratch: Path
    log: Path  # per_second × seconds lines
    most: int | None = None

    @property
    def requests(self) -> int:
        return self.per_second * self.seconds


@dataclass(frozen=True)
class OpenLoop:
    """A constant rate by so many clients, each on connections of its own."""

    url: str
    per_second: int
    clients: int
    seconds: int
    warm_up_s: int  # before these, and not counted
    scratch: Path
    log: Path  # per_second × (warm_up_s + seconds) lines

    @property
    def requests(self) -> int:
        return self.per_second * (self.warm_up_s + self.seconds)


@dataclass(frozen=True)
class Throughput:
    requests: int
    seconds: float
    errors: int = 0
    warm_up_requests: int = 0  # sent before these, and not counted
    warm_up_seconds: float = 0.0

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


@dataclass(frozen=True)
class TailTimes:
    """A tool's word on a run at a constant rate."""

    requests: int
    p99_ms: float
    errors: int = 0
    dropped: int = 0  # due, but never sent
    seen_p99_ms: float | None = None  # counted from due, as a server of ours saw it


@dataclass(frozen=True)
class OpenTimes:
    """A tool's word on a run in the open loop. Response times count from due, service times from start."""

    requests: int  # sent, those of the warm-up too
    due: int  # by its schedule in that time
    errors: int
    p50_ms: float
    p999_ms: float
    service_p999_ms: float
    lag_p999_ms: float | None = None  # of those that were not queued; None where all were
    queued: int = 0  # found their client's connections busy

    @property
    def answered(self) -> int:
        return self.requests - self.errors


class NotUnderstoodError(Exception):
    """A tool's output is not what it was when it was captured for the tests."""
