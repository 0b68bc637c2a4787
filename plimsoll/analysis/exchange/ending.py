"""The end of each instance of a merged run, and what it had left to send. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from plimsoll.analysis.exchange.shard import ShardRun
from plimsoll.common.errors import Severity
from plimsoll.common.units import count, counted
from plimsoll.rundir.facts import MergeFinding, Shard

Status = Literal["complete", "interrupted", "failed"]
# Reasons of the engine's own: what it skips so was in the schedule, and so is in `planned`.
_BY_ENGINE = ("cap_reached", "unsendable_h2")
_VERBS = {
    "killed": "was killed",
    "running": "had not ended",
    "interrupted": "was interrupted",
    "failed": "failed",
}


@dataclass(frozen=True)
class InstanceEnding:
    """One instance's end. None is what nobody knows; `says` is why it is not complete (hostile)."""

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
    planned = _planned(shards)
    there = [_ending(one, planned) for one in shards]
    of = next((one.facts.shard for one in shards if one.facts.shard), None)
    if of is None:
        return there
    given = {each.index: each for each in there}
    return [given.get(index) or _missing(index, of, planned) for index in range(of.of)]


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
    """Return how many requests were not sent; None if of an instance nobody knows."""
    total = 0
    for each in endings:
        if each.unsent is None:
            return None
        total += each.unsent
    return total


def check_counts(endings: Sequence[InstanceEnding]) -> Iterator[MergeFinding]:
    """Yield what is not known of the counts, or contradicts itself."""
    silent = [
        each.index + 1
        for each in endings
        if each.index is not None and not (each.shard and each.shard.counts)
    ]
    if silent:
        names = _list([str(number) for number in silent])
        which = f"instance{'s' if len(silent) > 1 else ''} {names}"
        yield MergeFinding(
            level=Severity.NOTE,
            text=f"What {which} skipped is not known: the counts of what was skipped are the others'.",
        )
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


def _planned(shards: Sequence[ShardRun]) -> list[int] | None:
    """Return what each instance had to send, from any that knows; they agree (mergechecks)."""
    known = (one.facts.shard.planned for one in shards if one.facts.shard)
    return next((planned for planned in known if planned), None)


def _ending(one: ShardRun, planned: list[int] | None) -> InstanceEnding:
    shard = one.facts.shard
    own = planned[shard.index] if shard and planned else None
    sent = _sent(one)
    status: str = "killed" if one.killed else one.facts.status
    left = _left(one, own)
    says = None
    if status != "complete":
        says = _cut_short(one, _VERBS[status], own, left)
    lost = sent - one.records
    if lost > 0:
        status = "truncated" if status == "complete" else status
        gone = f"the records of {count(lost)} of the {counted(sent, 'request')} that it sent are gone"
        says = f"{says}; {gone}" if says else f"{one.name} is truncated: {gone}"
    index, segment = (shard.index, shard.segment) if shard else (None, None)
    known = None if _is_unknown(one) else sent
    return InstanceEnding(one.name, index, segment, one, status, known, own, left, says)


def _cut_short(one: ShardRun, verb: str, own: int | None, left: int | None) -> str:
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


def _is_unknown(one: ShardRun) -> bool:
    """Return whether it was killed after its start, and before anything of what it sent was on the disk."""
    return one.killed and not one.records and one.facts.started_at is not None


def _sent(one: ShardRun) -> int:
    """Return how many requests it sent: more than there are records, where records were lost."""
    said = one.counts.sent if one.counts else None
    return one.records if said is None else max(said, one.records)


def _by_engine(one: ShardRun) -> int:
    return sum(one.counts.skipped.get(reason, 0) for reason in _BY_ENGINE) if one.counts else 0


def _left(one: ShardRun, own: int | None) -> int | None:
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
