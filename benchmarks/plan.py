"""The plan of a case: how often, how long, and with which peers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.attack import NotUnderstoodError
from benchmarks.installing import Installed
from benchmarks.measure import RunFailedError
from benchmarks.paths import SCRATCH
from benchmarks.say import say

Figure = TypeVar("Figure")


@dataclass(frozen=True)
class BenchmarkPlan:
    rounds: int
    quick: bool
    peers: Mapping[str, Installed]

    def scratch(self, *parts: str) -> Path:
        path = SCRATCH.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def missing(self, name: str) -> str | None:
        """Why this peer takes no part, or None when it does."""
        peer = self.peers[name]
        return None if peer.version is not None else peer.missing

    def taking_part(self, names: Iterable[str]) -> list[str]:
        """All peers but those that nobody asked for: another bin/replay, where none was given."""
        return [name for name in names if name in self.peers]

    def versions(self) -> dict[str, str]:
        return {name: peer.version or f"not installed: {peer.why}" for name, peer in self.peers.items()}


def attempt(what: str, failures: dict[str, str], measured: Callable[[], Figure]) -> Figure | None:
    """One measurement. One that fails is noted and the round goes on."""
    try:
        return measured()
    except (RunFailedError, NotUnderstoodError, OSError, KeyError, ValueError, ZeroDivisionError) as error:
        why = (
            str(error)
            if isinstance(error, RunFailedError | NotUnderstoodError)
            else f"{type(error).__name__}: {error}"
        )
        failures[what] = why
        say(f"{what}: failed: {why}")
        return None
