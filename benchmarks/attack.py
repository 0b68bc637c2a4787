"""The words in which every tool is told what to do, and in which it tells what it did."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Flood:
    """As many requests as go: one URL, so many connections, so long."""

    url: str
    seconds: int
    connections: int
    scratch: Path
    log: Path  # the same URL as an access log, for the tools that replay one


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


class NotUnderstoodError(Exception):
    """A tool's output is not what it was when it was captured for the tests."""
