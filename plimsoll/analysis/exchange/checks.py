"""Checks that shards are of one run, by what they say of themselves and what their records are."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from plimsoll.analysis.exchange.shard import ShardRun
from plimsoll.common.differences import differing
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.hostile import printable
from plimsoll.rundir.check import check_records
from plimsoll.rundir.facts import Shard

_Of = Callable[[ShardRun], object]


def check(shards: Sequence[ShardRun]) -> None:
    """Return if `shards` are of one run. Raises RunDirectoryError with every problem, a line each."""
    if not shards:
        raise RunDirectoryError("there is no shard to merge")
    if problems := [*_twice(shards), *_kinds(shards), *_different(shards), *_unplaced(shards)]:
        raise RunDirectoryError("\n".join(problems))
    if problems := [*_of_other_records(shards)]:
        raise RunDirectoryError("\n".join(problems))


def _twice(shards: Sequence[ShardRun]) -> Iterator[str]:
    for one, other in combinations(shards, 2):
        if one.path.resolve() == other.path.resolve():
            yield f"{one.path} and {other.path} are one directory: give it once"
        elif one.facts.shard and other.facts.shard and one.facts.shard.index == other.facts.shard.index:
            yield f"{one.path} and {other.path} are both {one.name}: give the right one"
        elif one.records and one.records == other.records and one.records_sha256 == other.records_sha256:
            yield f"{one.path} and {other.path} hold the same records: one is a copy; leave it out"


def _of_other_records(shards: Sequence[ShardRun]) -> Iterator[str]:
    """Read all records, and so come last: what is merged would be signed anew."""
    for one in shards:
        if one.requests and (contradiction := check_records(one.requests, one.summary)):
            yield f"{one.path}: {contradiction}: give the shard as it was written"


def _kinds(shards: Sequence[ShardRun]) -> Iterator[str]:
    instance = next((one for one in shards if one.facts.shard), None)
    for one in shards:
        if one.facts.merged and len(shards) > 1:
            yield f"{one.path}: was itself merged: give the shards that it was merged from"
        elif instance and not one.facts.shard:
            yield (
                f"{one.path}: is no instance of a replay, but {instance.path} is {instance.name}; "
                "leave it out"
            )


def _different(shards: Sequence[ShardRun]) -> Iterator[str]:
    yield from _loads(shards)
    instances = [one for one in shards if one.facts.shard]
    keys = _OF_ANY | _OF_INSTANCES if instances else _OF_ANY
    yield from _unlike(shards, keys)
    # Only who went through the log to its end has counted all of it.
    through = [one for one in instances if _shard(one).planned is not None]
    yield from _unlike(through, _OF_WHOLE_LOGS)


def _loads(shards: Sequence[ShardRun]) -> Iterator[str]:
    """Shards of older versions do not say what shaped their load."""
    known = [(one.path, one.facts.load) for one in shards if one.facts.load]
    for path, load in known[1:]:
        first_path, first = known[0]
        if load and first and load.digest != first.digest:
            names = (
                ", ".join(key for key, _ in differing([first.settings, load.settings]))
                or "what it is made of"
            )
            yield (
                f"{path}: its load is another one than that of {first_path} ({printable(names)}): "
                "these are no shards of one run"
            )


def _unlike(shards: Sequence[ShardRun], keys: dict[str, _Of]) -> Iterator[str]:
    for one in shards[1:]:
        for key, of in keys.items():
            mine, first = of(one), of(shards[0])
            if mine != first:
                yield (
                    f"{one.path}: its {key} is {printable(str(mine))}, but {printable(str(first))} in "
                    f"{shards[0].path}: these are no shards of one run"
                )


def _unplaced(shards: Sequence[ShardRun]) -> Iterator[str]:
    for one in shards:
        if len(shards) > 1 and one.facts.started_at is None and one.records:
            yield f"{one.path}: it never started, so it cannot be placed; leave it out"


def _shard(one: ShardRun) -> Shard:
    assert one.facts.shard is not None  # noqa: S101 only instances come here
    return one.facts.shard


def _target(one: ShardRun) -> str | None:
    return one.facts.target.url if one.facts.target else None


def _logs(one: ShardRun) -> list[str]:
    """The logs' names: each machine may keep them in a folder of its own."""
    return [log.path.rsplit("/", 1)[-1] for log in one.facts.logs]


def _lines(one: ShardRun) -> list[tuple[object, ...]]:
    return [(log.lines, log.valid, log.failed, log.ignored, log.first, log.last) for log in one.facts.logs]


_OF_ANY: dict[str, _Of] = {
    "scenario": lambda one: one.facts.scenario,
    "backend": lambda one: one.facts.backend,
    "repeat": lambda one: one.facts.repeat,
    "loop": lambda one: one.facts.loop,
}
_OF_INSTANCES: dict[str, _Of] = {
    "number of instances": lambda one: _shard(one).of if one.facts.shard else None,
    "sequence of segments": lambda one: ",".join(_shard(one).sequence) if one.facts.shard else None,
    "target": _target,
    "speed": lambda one: one.facts.speed,
    "seed": lambda one: one.facts.seed,
    "warm-up (s)": lambda one: one.facts.warmup_s,
    "list of logs": _logs,
}
_OF_WHOLE_LOGS: dict[str, _Of] = {
    "count of the logs' lines (lines, valid, failed, ignored, first, last)": _lines,
    "count of what each instance has to send (planned)": lambda one: _shard(one).planned,
}
