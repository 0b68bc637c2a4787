"""The shards of one run: opened, checked to be of one run, their clocks lined up, the end of each found."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Literal

from plimsoll.analysis.evidence.storage import differing
from plimsoll.common.errors import NoRequestsError, RunDirectoryError, Severity
from plimsoll.common.hostile import printable
from plimsoll.common.units import count, counted, milliseconds
from plimsoll.rundir.check import check_records, records_sha256
from plimsoll.rundir.facts import MergeFinding, RequestCounts, RunFacts, Shard, Summary
from plimsoll.rundir.find import find_runs
from plimsoll.rundir.read import RunDirectory, is_killed, read_facts, read_summary
from plimsoll.rundir.records import RequestFile
from plimsoll.rundir.write import Status

_SLACK = timedelta(milliseconds=100)  # between the start that was given and the clock when it had come
# Reasons of the engine's own: what it skips so was in the schedule, and so is in `planned`.
_BY_ENGINE = ("cap_reached", "unsendable_h2")
_VERBS = {
    "killed": "was killed",
    "running": "had not ended",
    "interrupted": "was interrupted",
    "failed": "failed",
}


@dataclass(frozen=True)
class ShardRun:
    """One shard's run directory; names are hostile.

    `run` is None where it holds no record, `summary` where it was killed before it wrote one.
    """

    path: Path
    facts: RunFacts
    summary: Summary | None
    killed: bool
    run: RunDirectory | None

    @property
    def requests(self) -> RequestFile | None:
        """Its records."""
        return self.run.requests if self.run else None

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


def open_shards(paths: Sequence[Path], now_s: float | None = None) -> list[ShardRun]:
    """Open `paths`: instances in the order of their indices, other shards as they are given.

    A folder stands for the shards in it, one level deep; links, what is hidden, and runs that were merged are
    left out there. `now_s` decides who was killed, as in RunDirectory.open. Raises RunDirectoryError, a line
    for each that cannot be read.
    """
    shards, problems = [], []
    for given in paths:
        for path in [one for one in find_runs(given) if not _is_merged(one)] or [given]:
            try:
                shards.append(_open(path, now_s))
            except RunDirectoryError as error:
                problems.append(str(error))
    if problems:
        raise RunDirectoryError("\n".join(problems))
    return sorted(shards, key=lambda one: one.facts.shard.index if one.facts.shard else -1)


def _is_merged(path: Path) -> bool:
    try:
        return read_facts(path).merged is not None
    except RunDirectoryError:
        return False  # what is wrong with it is said when it is opened


def _open(path: Path, now_s: float | None) -> ShardRun:
    try:
        run = RunDirectory.open(path, now_s)
    except NoRequestsError:
        facts = read_facts(path)
        return ShardRun(path, facts, read_summary(path), is_killed(path, facts, now_s), None)
    # Events of many shards may be too many to hold at once: they are read again, one shard after the other.
    return ShardRun(path, run.facts, run.summary, run.killed, replace(run, events=[]))


_Of = Callable[[ShardRun], object]


def check(shards: Sequence[ShardRun]) -> None:
    """Return if `shards` are of one run. Raises RunDirectoryError with every problem, a line each."""
    if not shards:
        raise RunDirectoryError("there is no shard to merge")
    if problems := [*_find_repeated(shards), *_find_mixed_kinds(shards), *_find_differences(shards)]:
        raise RunDirectoryError("\n".join(problems))
    # What is merged gets a sum of its own, so theirs are checked now; last, since it reads all records.
    if problems := [
        f"{one.path}: {contradiction}: give the shard as it was written"
        for one in shards
        if one.requests and (contradiction := check_records(one.requests, one.summary))
    ]:
        raise RunDirectoryError("\n".join(problems))


def _find_repeated(shards: Sequence[ShardRun]) -> Iterator[str]:
    for one, other in combinations(shards, 2):
        if one.path.resolve() == other.path.resolve():
            yield f"{one.path} and {other.path} are one directory: give it once"
        elif one.facts.shard and other.facts.shard and one.facts.shard.index == other.facts.shard.index:
            yield f"{one.path} and {other.path} are both {one.name}: give the right one"
        elif one.records and one.records == other.records and one.records_sha256 == other.records_sha256:
            yield f"{one.path} and {other.path} hold the same records: one is a copy; leave it out"


def _find_mixed_kinds(shards: Sequence[ShardRun]) -> Iterator[str]:
    instance = next((one for one in shards if one.facts.shard), None)
    for one in shards:
        if one.facts.merged and len(shards) > 1:
            yield f"{one.path}: was itself merged: give the shards that it was merged from"
        elif instance and not one.facts.shard:
            yield (
                f"{one.path}: is not an instance of a replay, but {instance.path} is {instance.name}; "
                "leave it out"
            )


def _find_differences(shards: Sequence[ShardRun]) -> Iterator[str]:
    # Shards of older versions do not say what shaped their load.
    known = [(one.path, one.facts.load) for one in shards if one.facts.load]
    for path, load in known[1:]:
        first_path, first = known[0]
        if load and first and load.digest != first.digest:
            names = ", ".join(key for key, _ in differing([first.settings, load.settings]))
            yield (
                f"{path}: its load differs from that of {first_path} "
                f"({printable(names or 'what it is made of')}): these are not shards of one run"
            )
    instances = [one for one in shards if one.facts.shard]
    keys = _OF_ANY | _OF_INSTANCES if instances else _OF_ANY
    yield from _find_unlike(shards, keys)
    # Only who went through the log to its end has counted all of it.
    through = [one for one in instances if _shard(one).planned is not None]
    yield from _find_unlike(through, _OF_WHOLE_LOGS)
    for one in shards:
        if len(shards) > 1 and one.facts.started_at is None and one.records:
            yield f"{one.path}: it never started, so it cannot be placed; leave it out"


def _find_unlike(shards: Sequence[ShardRun], keys: dict[str, _Of]) -> Iterator[str]:
    for one in shards[1:]:
        for key, of in keys.items():
            mine, first = of(one), of(shards[0])
            if mine != first:
                yield (
                    f"{one.path}: its {key} is {printable(str(mine))}, but {printable(str(first))} in "
                    f"{shards[0].path}: these are not shards of one run"
                )


def _shard(one: ShardRun) -> Shard:
    assert one.facts.shard is not None  # noqa: S101 only instances come here
    return one.facts.shard


_OF_ANY: dict[str, _Of] = {
    "scenario": lambda one: one.facts.scenario,
    "backend": lambda one: one.facts.backend,
    "repeat": lambda one: one.facts.repeat,
    "loop": lambda one: one.facts.loop,
}
_OF_INSTANCES: dict[str, _Of] = {
    "number of instances": lambda one: _shard(one).of if one.facts.shard else None,
    "sequence of segments": lambda one: ",".join(_shard(one).sequence) if one.facts.shard else None,
    "target": lambda one: one.facts.target.url if one.facts.target else None,
    "speed": lambda one: one.facts.speed,
    "seed": lambda one: one.facts.seed,
    "warm-up (s)": lambda one: one.facts.warmup_s,
    # Their names alone: each machine may keep them in a folder of its own.
    "list of logs": lambda one: [log.path.rsplit("/", 1)[-1] for log in one.facts.logs],
}
_OF_WHOLE_LOGS: dict[str, _Of] = {
    "count of the logs' lines (lines, valid, failed, ignored, first, last)": lambda one: [
        (log.lines, log.valid, log.failed, log.ignored, log.first, log.last) for log in one.facts.logs
    ],
    "count of what each instance has to send (planned)": lambda one: _shard(one).planned,
}


@dataclass(frozen=True)
class ClockAlignment:
    """The start of the merged run, the offset of each shard, and remarks on them.

    `error_ms` is how far two of the clocks may differ, None if unknown.
    """

    started_at: datetime | None
    placed_by: Literal["start_at", "started_at"]
    offsets_ns: list[int]
    error_ms: float | None
    says: list[MergeFinding]


def align_clocks(shards: Sequence[ShardRun]) -> ClockAlignment:
    """Return how to place `shards`.

    Instances that share one `start_at` placed their due instants by it, each on its own clock: nothing is
    moved. Others are moved by what their `started_at` differ.
    """
    starts = {one.facts.shard.start_at if one.facts.shard else None for one in shards}
    started = [one.facts.started_at for one in shards]
    known = [instant for instant in started if instant is not None]
    error_ms, says = _clock_errors(shards)
    if len(starts) == 1 and (shared := next(iter(starts))) is not None:
        says = [*_note_late(shards, started, shared), *says]
        return ClockAlignment(shared, "start_at", [0] * len(shards), error_ms, says)
    first = min(known, default=None)
    offsets_ns = [
        0 if first is None or instant is None else (instant - first) // timedelta(microseconds=1) * 1000
        for instant in started
    ]
    return ClockAlignment(
        first, "started_at", offsets_ns, error_ms, [*_note_gap(shards, known, len(starts) > 1), *says]
    )


def _note_gap(shards: Sequence[ShardRun], started: Sequence[datetime], differ: bool) -> list[MergeFinding]:
    """Say how far apart shards began that had no start in common; `differ`: each was given another."""
    if len(shards) < 2 or not started:
        return []
    apart = _ms(max(started) - min(started))
    level = Severity.NOTE
    text = f"The shards began within {apart} by their own clocks, and are placed by them."
    if differ:
        level = Severity.BAD
        text = (
            "The instances did not all get the same start (start_at), so they did not replay together: their "
            f"starts differ by {apart}, and they are placed by their own clocks."
        )
    elif shards[0].facts.shard:
        level = Severity.WARN
        text = (
            f"The instances got no common start: their starts differ by {apart} by their own clocks, by "
            "which they are placed."
        )
    return [MergeFinding(level=level, text=text)]


def _note_late(
    shards: Sequence[ShardRun], started: Sequence[datetime | None], shared: datetime
) -> list[MergeFinding]:
    return [
        MergeFinding(
            level=Severity.WARN,
            text=f"{one.name[:1].upper()}{one.name[1:]} noted its start {_ms(abs(instant - shared))} "
            f"{'after' if instant > shared else 'before'} the one that all share.",
        )
        for one, instant in zip(shards, started, strict=True)
        if instant is not None and abs(instant - shared) > _SLACK
    ]


def _clock_errors(shards: Sequence[ShardRun]) -> tuple[float | None, list[MergeFinding]]:
    """Return the sum of the two largest errors, and the findings on the instances' clocks."""
    instances = [one.facts.shard for one in shards if one.facts.shard]
    if len(instances) < 2:
        return None, []
    wrong = [str(one.index + 1) for one in instances if one.clock and one.clock.synchronised is False]
    # A bound counts only of a clock that is synchronised.
    errors_ms = {
        str(one.index + 1): one.clock.max_error_ms if one.clock and one.clock.synchronised else None
        for one in instances
    }
    unknown = [number for number, error in errors_ms.items() if error is None and number not in wrong]
    says = []
    if wrong:
        text = f"{_clocks(wrong)} not synchronised: how far {_it(wrong)} off is unknown."
        says.append(MergeFinding(level=Severity.WARN, text=text))
    if unknown:
        text = f"{_clocks(unknown)} of unknown quality: the system does not say how far {_it(unknown)} off."
        says.append(MergeFinding(level=Severity.WARN, text=text))
    known_ms = sorted(error for error in errors_ms.values() if error is not None)
    if wrong or unknown:
        return None, says
    error_ms = round(sum(known_ms[-2:]), 6)
    text = f"The instances' clocks may differ by up to {milliseconds(error_ms)}."
    return error_ms, [MergeFinding(level=Severity.NOTE, text=text)]


def _clocks(numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return f"The clock of instance {numbers[0]} is"
    return f"The clocks of instances {_list(numbers)} are"


def _it(numbers: Sequence[str]) -> str:
    return "it is" if len(numbers) == 1 else "they are"


def _ms(apart: timedelta) -> str:
    return milliseconds(apart / timedelta(milliseconds=1))


@dataclass(frozen=True)
class InstanceEnding:
    """One instance's end. None is what is unknown; `says` is why it is not complete (hostile)."""

    name: str
    index: int | None
    segment: str | None
    shard: ShardRun | None
    status: str
    sent: int | None
    planned: int | None
    unsent: int | None
    says: str | None


def find_endings(shards: Sequence[ShardRun]) -> list[InstanceEnding]:
    """Return how all instances ended, by index: also those whose directory was not given."""
    # What each instance had to send, from any that knows: `check` holds that they agree.
    known = (one.facts.shard.planned for one in shards if one.facts.shard)
    planned = next((planned for planned in known if planned), None)
    there = [_ending(one, planned) for one in shards]
    of = next((one.facts.shard for one in shards if one.facts.shard), None)
    if of is None:
        return there
    given = {each.index: each for each in there}
    return [given.get(index) or _missing(index, of, planned) for index in range(of.of)]


def _ending(one: ShardRun, planned: list[int] | None) -> InstanceEnding:
    shard = one.facts.shard
    own = planned[shard.index] if shard and planned else None
    sent = _sent(one)
    status: str = "killed" if one.killed else one.facts.status
    left = _count_unsent(one, own)
    says = None
    if status != "complete":
        says = _describe_cut(one, _VERBS[status], own, left)
    lost = sent - one.records
    if lost > 0:
        status = "truncated" if status == "complete" else status
        gone = f"the records of {count(lost)} of the {counted(sent, 'request')} that it sent are gone"
        says = f"{says}; {gone}" if says else f"{one.name} is truncated: {gone}"
    index, segment = (shard.index, shard.segment) if shard else (None, None)
    known = None if _is_unknown(one) else sent
    return InstanceEnding(one.name, index, segment, one, status, known, own, left, says)


def _describe_cut(one: ShardRun, verb: str, own: int | None, left: int | None) -> str:
    sent = _sent(one)
    if _is_unknown(one):
        rest = "" if own is None else f"; all of its {counted(own, 'request')} count as unsent"
        return f"{one.name} {verb} before its first records were written out: nothing is known of it{rest}"
    done = counted(sent, "request") if own is None else f"{count(sent)} of its {counted(own, 'request')}"
    rest = "" if left is None else f"; {count(left)} unsent"
    if left is None and one.facts.shard:
        rest = "; how many it left unsent is not known, since no instance went through the log to its end"
    because = f": {one.facts.reason.rstrip('.')}" if one.facts.reason else ""
    return f"{one.name} {verb} after {done}{rest}{because}"


def _missing(index: int, of: Shard, planned: list[int] | None) -> InstanceEnding:
    segment = ":".join(of.sequence[index : index + 2]) or None
    name = f"instance {index + 1} of {of.of}" + (f" ({segment})" if segment else "")
    own = planned[index] if planned else None
    if own is None:
        rest = "how many requests it had is not known, since no instance went through the log to its end"
    else:
        rest = f"all of its {counted(own, 'request')} count as unsent"
    says = f"{name} is missing: its run directory was not given; {rest}"
    return InstanceEnding(name, index, segment, None, "missing", None, own, own, says)


def merged_status(endings: Sequence[InstanceEnding]) -> tuple[Status, str | None]:
    """Return how the whole ended, and a reason that names every instance that did not come to its end."""
    found = {each.status for each in endings}
    status: Status = "failed" if found & {"failed", "truncated"} else "interrupted"
    said = [each.says for each in endings if each.says]
    if not said:
        return "complete", None
    return status, ". ".join([said[0], *(text[:1].upper() + text[1:] for text in said[1:])])


def sum_skipped(shards: Sequence[ShardRun]) -> dict[str, int]:
    """Return how many requests were skipped, by reason, over all that said so."""
    total: Counter[str] = Counter()
    for one in shards:
        total.update(one.counts.skipped if one.counts else {})
    return dict(sorted(total.items()))


def sum_unsent(endings: Sequence[InstanceEnding]) -> int | None:
    """Return how many requests were not sent; None if that of an instance is unknown."""
    unsent = [each.unsent for each in endings if each.unsent is not None]
    return sum(unsent) if len(unsent) == len(endings) else None


def check_counts(endings: Sequence[InstanceEnding]) -> Iterator[MergeFinding]:
    """Yield what is not known of the counts, or contradicts itself."""
    silent = [
        str(each.index + 1)
        for each in endings
        if each.index is not None and not (each.shard and each.shard.counts)
    ]
    if silent:
        names = f"instance{'s' if len(silent) > 1 else ''} {_list(silent)}"
        text = f"What {names} skipped is unknown: the counts of skipped requests are the others'."
        yield MergeFinding(level=Severity.NOTE, text=text)
    for each in endings:
        if not (each.shard and each.shard.counts) or each.planned is None:
            continue
        sent, left = _sent(each.shard), each.shard.counts.unsent or 0
        by_engine = _by_engine(each.shard)
        if sent + by_engine + left != each.planned:
            yield MergeFinding(
                level=Severity.WARN,
                text=f"The counts of {each.name} do not add up: {sent:,} sent, {by_engine:,} skipped and "
                f"{left:,} unsent of {each.planned:,} planned.",
            )


def _is_unknown(one: ShardRun) -> bool:
    """Return whether it was killed after its start, and before anything of what it sent was on the disk."""
    return one.killed and not one.records and one.facts.started_at is not None


def _sent(one: ShardRun) -> int:
    """Return how many requests it sent: more than there are records, where records were lost."""
    said = one.counts.sent if one.counts else None
    return one.records if said is None else max(said, one.records)


def _by_engine(one: ShardRun) -> int:
    return sum(one.counts.skipped.get(reason, 0) for reason in _BY_ENGINE) if one.counts else 0


def _count_unsent(one: ShardRun, own: int | None) -> int | None:
    """Return what it left unsent: of what it had to send, else as it says itself.

    An instance that was interrupted before it knew the whole log does not know either.
    """
    if own is not None and one.facts.status != "complete":
        return max(own - _sent(one) - _by_engine(one), 0)
    if one.counts is None or (one.facts.shard and own is None and one.facts.status != "complete"):
        return None
    return one.counts.unsent


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
