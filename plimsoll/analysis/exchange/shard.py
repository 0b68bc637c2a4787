"""The shards that are to be merged, opened: each once, and all that is wrong with them told at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from plimsoll.common.errors import NoRequestsError, RunDirectoryError
from plimsoll.rundir.check import records_sha256
from plimsoll.rundir.facts import RequestCounts, RunFacts, Summary
from plimsoll.rundir.find import find_runs
from plimsoll.rundir.read import RunDirectory, is_killed, read_facts, read_summary
from plimsoll.rundir.records import RequestFile


@dataclass(frozen=True)
class ShardRun:
    """One shard's run directory. `requests` is None where it holds no record; names are hostile.

    `summary` is None where it was killed before it wrote one.
    """

    path: Path
    facts: RunFacts
    requests: RequestFile | None
    routes: list[str]
    errors: list[str]
    summary: Summary | None
    killed: bool

    @property
    def counts(self) -> RequestCounts | None:
        """What its summary.json says of its requests."""
        return self.summary.requests if self.summary else None

    @property
    def records(self) -> int:
        """The number of whole records."""
        return self.requests.count if self.requests else 0

    @cached_property
    def records_sha256(self) -> str | None:
        """The sum of its records, by which a copy is known; reads all of them."""
        return records_sha256(self.requests) if self.requests else None

    @property
    def name(self) -> str:
        """Its name: `instance 3 of 4 (1/2:3/4)`, counted from 1; or `shard` and its folder's name."""
        shard = self.facts.shard
        if shard is None:
            return f"shard {self.path.resolve().name}"
        return f"instance {shard.index + 1} of {shard.of} ({shard.segment})"

    def route_name(self, number: int) -> str:
        """Return the name of `number` in column `route`."""
        return self.routes[number] if number < len(self.routes) else f"route {number}"

    def error_name(self, number: int) -> str:
        """Return the name of `number` in column `error`."""
        return self.errors[number] if number < len(self.errors) else f"error {number}"


def open_shards(paths: Sequence[Path], now_s: float | None = None) -> list[ShardRun]:
    """Open `paths`: instances in the order of their indices, other shards as they are given.

    A folder stands for the shards in it, one level deep; links, what is hidden, and runs that were merged are
    left out there. `now_s` decides who was killed, as in RunDirectory.open. Raises RunDirectoryError, a line
    for each that cannot be read.
    """
    shards, problems = [], []
    for path in _found(paths):
        try:
            shards.append(_open(path, now_s))
        except RunDirectoryError as error:
            problems.append(str(error))
    if problems:
        raise RunDirectoryError("\n".join(problems))
    return sorted(shards, key=lambda one: one.facts.shard.index if one.facts.shard else -1)


def _found(paths: Sequence[Path]) -> list[Path]:
    found = []
    for path in paths:
        found += [one for one in find_runs(path) if not _is_merged(one)] or [path]
    return found


def _is_merged(path: Path) -> bool:
    try:
        return read_facts(path).merged is not None
    except RunDirectoryError:
        return False  # what is wrong with it is told when it is opened


def _open(path: Path, now_s: float | None) -> ShardRun:
    try:
        run = RunDirectory.open(path, now_s)
    except NoRequestsError:
        return _without_requests(path, now_s)
    return ShardRun(path, run.facts, run.requests, run.routes, run.errors, run.summary, run.killed)


def _without_requests(path: Path, now_s: float | None) -> ShardRun:
    facts = read_facts(path)
    return ShardRun(path, facts, None, [], [], read_summary(path), is_killed(path, facts, now_s))
