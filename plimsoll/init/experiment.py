"""The experiment that follows from the answers: how long runs are, how many, what is judged. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.common.units import seconds
from plimsoll.init.answers import Disk, Limits, Site
from plimsoll.init.here import Log, Under

_FEWEST_REPEATS, _MOST_REPEATS = 4, 20
_SHORTEST_RUN_S, _LONGEST_RUN_S = 60, 900
_PARTS = 4  # a run is a quarter before the saturator, two during it, a quarter after
_FEWEST = {"p99.9": 1000, "p99": 100}  # requests that a percentile takes


@dataclass(frozen=True)
class Answers:
    """The five answers, and what is known of what they name."""

    name: str
    log: Log
    site: Site
    disks: tuple[Disk, ...]
    below: tuple[Under, ...]  # what lies under each disk's folder
    lasts_s: float
    limits: Limits

    @property
    def saturator(self) -> str | None:
        """The kind of saturator for all backends alike; None where nobody knows their folders."""
        if any(disk.path is None for disk in self.disks):
            return None
        return "zfs-send" if all(under.dataset for under in self.below) else "fio"


@dataclass(frozen=True)
class Lengths:
    """How often each backend is measured, and how long each run is, after the warm-up."""

    repeats: int
    run_s: int

    @property
    def part_s(self) -> int:
        """A quarter of a run."""
        return self.run_s // _PARTS


def lengths(lasts_s: float, about_s: Callable[[Lengths], float]) -> Lengths:
    """Return the lengths that fill `lasts_s`; `about_s` says how long an experiment takes. Raises ValueError.

    Runs of up to a quarter of an hour first, then more of them: a verdict gains by runs.
    """
    shortest = Lengths(_FEWEST_REPEATS, _SHORTEST_RUN_S)
    if (least_s := about_s(shortest)) > lasts_s:
        raise ValueError(
            f"{_FEWEST_REPEATS} runs on each disk, the fewest for a verdict, take {seconds(least_s)}: "
            f"give at least {-int(-least_s // 60)}m"
        )
    for repeats in range(_FEWEST_REPEATS, _MOST_REPEATS + 1, 2):
        found = Lengths(repeats, _longest(repeats, lasts_s, about_s))
        if found.run_s < _LONGEST_RUN_S or repeats + 2 > _MOST_REPEATS:
            return found
        if about_s(Lengths(repeats + 2, _LONGEST_RUN_S // 2)) > lasts_s:
            return found
    raise AssertionError("the last number of repeats returns")


def _longest(repeats: int, lasts_s: float, about_s: Callable[[Lengths], float]) -> int:
    """Return the longest run that fits, in whole quarters."""
    shortest, longest = Lengths(repeats, _SHORTEST_RUN_S), Lengths(repeats, _LONGEST_RUN_S)
    low_s, high_s = about_s(shortest), about_s(longest)
    share = (lasts_s - low_s) / (high_s - low_s) if high_s > low_s else 1.0
    run_s = int(shortest.run_s + min(max(share, 0.0), 1.0) * (longest.run_s - shortest.run_s))
    return run_s - run_s % _PARTS


def metric(log: Log, during_s: float) -> str:
    """Return the highest percentile for which a phase of that length has the requests."""
    if log.requests_per_s is None:
        return "p99.9"
    requests = log.requests_per_s * during_s
    return next((name for name, fewest in _FEWEST.items() if requests >= fewest), "p50")
