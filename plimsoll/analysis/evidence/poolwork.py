"""What pools did beside a run, as host.csv has it: scans, TRIM, and how full they were."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from plimsoll.analysis.evidence.finding import FindingKind
from plimsoll.common.units import listed, significant
from plimsoll.rundir.events import spans
from plimsoll.rundir.hostfile import Column
from plimsoll.rundir.read import RunDirectory

FULL_PERCENT = 80.0
_COLUMN = re.compile(r"poolstate\.(.+)_(scrub_count|resilver_count|trim_count|full_percent)", re.DOTALL)
_SCANS = ("scrub", "resilver")  # also the names of the saturators that do them
_END_SCAN = {
    "scrub": "Wait until it has ended, or pause it (zpool scrub -p), and run it again.",
    "resilver": "Wait until it has ended, and run it again.",
}


@dataclass(frozen=True)
class PoolWork:
    """What a run's own pools did meanwhile, by pool (hostile).

    `scans` are `scrub` and `resilver`; the experiment's own saturator is none of them. `full_percent` is the
    highest of the run.
    """

    scans: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    trimmed: tuple[str, ...] = ()
    full_percent: Mapping[str, float] = field(default_factory=dict)


def named_facts(directory: RunDirectory, kind: str, key: str) -> set[str]:
    """Return what the storage's facts name (hostile), such as each `pool` of its `pools`; none if unknown."""
    storage = directory.facts.storage
    each = storage.facts.get(kind) if storage else None
    names = (one.get(key) for one in each if isinstance(one, dict)) if isinstance(each, list) else ()
    return {name for name in names if isinstance(name, str)}


def is_pool_work(name: str) -> bool:
    """Return whether `pool_work` looks at the column of that name."""
    return bool(_COLUMN.fullmatch(name))


def pool_work(directory: RunDirectory, columns: Mapping[str, Column]) -> PoolWork:
    """Return what the pools under a run did while it lasted, from the columns of host.csv. Pure.

    Of the storage's own pools, where run.json says which those are and any of them was observed, else of all.
    """
    highest: dict[tuple[str, str], float] = {}
    for name, column in columns.items():
        if found := _COLUMN.fullmatch(name):
            highest[found[1], found[2]] = _highest(column, columns["t_ns"])
    own = named_facts(directory, "pools", "pool")
    pools = dict.fromkeys(pool for pool, _ in highest)
    chosen = [pool for pool in pools if pool in own] or list(pools)
    mine = {span.name for span in spans(directory.events, float("inf"))}

    def ran(pool: str, what: str) -> bool:
        return highest.get((pool, f"{what}_count"), 0.0) >= 1

    scans = {pool: tuple(each for each in _SCANS if ran(pool, each) and each not in mine) for pool in chosen}
    full = {pool: value for pool in chosen if (value := highest.get((pool, "full_percent"), 0.0)) > 0}
    return PoolWork(
        {pool: each for pool, each in scans.items() if each},
        tuple(pool for pool in chosen if ran(pool, "trim")),
        full,
    )


def _highest(column: Column, t_ns: Column) -> float:
    """Return the highest value since the run began, 0 without any. What came after it has no rows."""
    known = column[(t_ns >= 0) & (column >= 0)]  # neither is NaN
    return float(known.max()) if len(known) else 0.0


def pool_findings(work: PoolWork) -> Iterator[tuple[FindingKind, str, str | None]]:
    """Yield what makes a run doubtful, as the rest of a sentence, and a better remedy where there is one."""
    for pool, scans in work.scans.items():
        remedy = _END_SCAN[scans[0]] if len(scans) == 1 else None
        text = f"ran at the same time as a {' and a '.join(scans)} of the pool {pool}."
        yield FindingKind.POOL_SCANNED, text, remedy
    if work.trimmed:
        text = f"ran at the same time as TRIM of {listed(work.trimmed)}."
        yield FindingKind.POOL_TRIMMED, text, None
    full = [
        f"{pool} ({significant(value)} %)"
        for pool, value in work.full_percent.items()
        if value > FULL_PERCENT
    ]
    if full:
        yield (
            FindingKind.POOL_FULL,
            f"ran while this was over {FULL_PERCENT:.0f} % full: {listed(full)}.",
            None,
        )
