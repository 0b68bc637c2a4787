"""Lines up the instants of shards, and says how far wrong that may be. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from plimsoll.analysis.exchange.shard import ShardRun
from plimsoll.common.errors import Severity
from plimsoll.common.units import milliseconds
from plimsoll.rundir.facts import MergeFinding, Shard

_MICROSECOND = timedelta(microseconds=1)
_SLACK = timedelta(milliseconds=100)  # between the start that was given and the clock when it had come


@dataclass(frozen=True)
class ClockAlignment:
    """The start of the merged run, the offset of each shard, and remarks on them.

    `error_ms` is what two of the clocks may differ by, None where nobody knows.
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
    starts = {_utc(one.facts.shard.start_at) if one.facts.shard else None for one in shards}
    started = [_utc(one.facts.started_at) for one in shards]
    known = [instant for instant in started if instant is not None]
    error_ms, says = _clock_errors(shards)
    if len(starts) == 1 and (shared := next(iter(starts))) is not None:
        says = [*_late(shards, started, shared), *says]
        return ClockAlignment(shared, "start_at", [0] * len(shards), error_ms, says)
    first = min(known, default=None)
    offsets_ns = [
        0 if first is None or instant is None else (instant - first) // _MICROSECOND * 1000
        for instant in started
    ]
    return ClockAlignment(
        first, "started_at", offsets_ns, error_ms, [*_apart(shards, known, len(starts) > 1), *says]
    )


def _apart(shards: Sequence[ShardRun], started: Sequence[datetime], differ: bool) -> list[MergeFinding]:
    """Say how far apart shards began that had no start in common; `differ`: each was given another."""
    if len(shards) < 2 or not started:
        return []
    apart = _ms(max(started) - min(started))
    if differ:
        return [
            MergeFinding(
                level=Severity.BAD,
                text="The instances did not all get the same start (start_at), so they did not replay "
                f"together: their starts differ by {apart}, and they are placed by their own clocks.",
            )
        ]
    if shards[0].facts.shard:
        return [
            MergeFinding(
                level=Severity.WARN,
                text=f"The instances got no common start: their starts differ by {apart} by their "
                "own clocks, by which they are placed.",
            )
        ]
    return [
        MergeFinding(
            level=Severity.NOTE,
            text=f"The shards began within {apart} by their own clocks, and are placed by them.",
        )
    ]


def _late(
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
    """Return the sum of the two largest errors, and what is said of the instances' clocks."""
    instances = [one.facts.shard for one in shards if one.facts.shard]
    if len(instances) < 2:
        return None, []
    wrong = [str(one.index + 1) for one in instances if one.clock and one.clock.synchronised is False]
    numbers = [str(one.index + 1) for one in instances if _error_ms(one) is None]
    unknown = [number for number in numbers if number not in wrong]
    says = []
    if wrong:
        text = f"{_clocks(wrong)} not synchronised: by how much {_it(wrong)} wrong nobody knows."
        says.append(MergeFinding(level=Severity.WARN, text=text))
    if unknown:
        text = (
            f"{_clocks(unknown)} of unknown quality: the system says nothing of how far {_it(unknown)} off."
        )
        says.append(MergeFinding(level=Severity.WARN, text=text))
    errors_ms = sorted(error for one in instances if (error := _error_ms(one)) is not None)
    if wrong or unknown:
        return None, says
    error_ms = round(sum(errors_ms[-2:]), 6)
    text = f"The instances' clocks may differ by up to {milliseconds(error_ms)}."
    return error_ms, [MergeFinding(level=Severity.NOTE, text=text)]


def _error_ms(one: Shard) -> float | None:
    """Return how far the instance's clock may be off; a bound counts only of a clock that is synchronised."""
    return one.clock.max_error_ms if one.clock and one.clock.synchronised else None


def _clocks(indices: Sequence[str]) -> str:
    if len(indices) == 1:
        return f"The clock of instance {indices[0]} is"
    return f"The clocks of instances {', '.join(indices[:-1])} and {indices[-1]} are"


def _it(indices: Sequence[str]) -> str:
    return "it is" if len(indices) == 1 else "they are"


def _ms(apart: timedelta) -> str:
    return milliseconds(apart / timedelta(milliseconds=1))


def _utc(instant: datetime | None) -> datetime | None:
    return instant.replace(tzinfo=UTC) if instant is not None and instant.tzinfo is None else instant
