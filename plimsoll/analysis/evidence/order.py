"""How runs lie in time: their order, overlaps, and copies of one another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.rundir.facts import RunFacts, ran_together
from plimsoll.rundir.find import run_group

_SLACK = timedelta(seconds=1)


@dataclass(frozen=True)
class RunPlace:
    """A run's place in time, as far as it is known; its name is hostile."""

    name: str
    repeat: int | str | None
    started_at: datetime | None
    ended_at: datetime | None
    number: int | None = None

    @classmethod
    def of(cls, name: str, facts: RunFacts) -> "RunPlace":
        """Return the place of a run of that name."""
        number = facts.experiment.run if facts.experiment else None
        return cls(name, facts.repeat, facts.started_at, facts.ended_at, number)


@dataclass(frozen=True)
class Order:
    """`pairs`: (baseline's, candidate's) places in their lists, repeat by repeat; None where there are none.

    `interleaved`: the sides alternated in time. `findings` say what is wrong with the order (hostile).
    """

    pairs: list[tuple[int, int]] | None
    interleaved: bool
    findings: list[tuple[FindingKind, str]]


def find_order(baseline: Sequence[RunPlace], candidate: Sequence[RunPlace]) -> Order:
    """Return how the runs of one scenario on two sides lie in time."""
    found = [(FindingKind.CLOCK, text) for text in _clocks([*baseline, *candidate])]
    sides = [(run, 0, at) for at, run in enumerate(baseline)]
    sides += [(run, 1, at) for at, run in enumerate(candidate)]
    instants = [run.started_at for run, _, _ in sides]
    if None in instants or len(set(instants)) < len(instants):
        what = "do not all say when they began" if None in instants else "say that they began at once"
        text = (
            f"Runs {what}, so their order is not known: what drifted meanwhile may count as the candidate's."
        )
        return Order(None, False, [*found, (FindingKind.ORDER, text)])
    sides.sort(key=lambda entry: entry[0].started_at or datetime.max)
    longest = max(len(list(streak)) for _, streak in groupby(side for _, side, _ in sides))
    interleaved = longest <= max(2, -(-min(len(baseline), len(candidate)) // 2))
    if (
        len(
            {side for _, side, _ in sides[: len(baseline)]} | {side for _, side, _ in sides[: len(candidate)]}
        )
        < 2
    ):
        first = "baseline" if sides[0][1] == 0 else "candidate"
        text = f"All runs of the {first} came first: what changed meanwhile counts as the candidate's."
        return Order(None, False, [*found, (FindingKind.ORDER, text)])
    pairs = _pairs(sides)
    if pairs is None:
        if not interleaved:
            text = "The sides hardly alternated in time: drift may favour one of them."
            found.append((FindingKind.ORDER, text))
        return Order(None, interleaved, found)
    firsts = {side for _, side, _ in sides[::2]}
    if len(pairs) > 1 and len(firsts) == 1:
        always = "baseline" if firsts == {0} else "candidate"
        text = f"The {always} came first in every repeat: steady drift favours one side."
        found.append((FindingKind.ORDER, text))
    return Order(pairs, True, found)


def _pairs(sides: Sequence[tuple[RunPlace, int, int]]) -> list[tuple[int, int]] | None:
    """Return the pairs where every two runs in a row are both sides of one repeat."""
    if len(sides) % 2:
        return None
    found = []
    for (one, side, at), (other, other_side, other_at) in zip(sides[::2], sides[1::2], strict=True):
        if one.repeat is None or one.repeat != other.repeat or side == other_side:
            return None
        found.append((at, other_at) if side == 0 else (other_at, at))
    repeats = [run.repeat for run, side, _ in sides if side == 0]
    return found if len(set(repeats)) == len(repeats) else None


def _clocks(runs: Sequence[RunPlace]) -> list[str]:
    """Return what the clocks say that cannot be."""
    found = [
        f"{run.name} ended before it began: a clock was set meanwhile."
        for run in runs
        if run.started_at and run.ended_at and run.ended_at < run.started_at
    ]
    timed = sorted((run for run in runs if run.started_at), key=lambda run: run.started_at or datetime.max)
    for one, other in pairwise(timed):
        if one.ended_at and other.started_at and one.ended_at - other.started_at > timedelta(seconds=1):
            found.append(
                f"{other.name} began before {one.name} had ended: they disturbed each other, or "
                "the clocks disagree."
            )
    numbers = [run.number for run in timed if run.number is not None]
    if len(set(numbers)) == len(numbers) == len(runs) and numbers != sorted(numbers):
        found.append(
            "The runs began in another order than their experiment's: some were tried again later "
            "(--retry-set-aside), the clock was set meanwhile, or they were moved."
        )
    return found[:4]


def identity_findings(runs: Sequence[MeasuredRun]) -> Iterator[Finding]:
    """Yield the copies among `runs`, of whichever side, and those that overlap on one target."""
    yield from _copies(runs)
    yield from _overlaps(runs)


def _copies(runs: Sequence[MeasuredRun]) -> Iterator[Finding]:
    first: dict[str, MeasuredRun] = {}
    for run in runs:
        digest = run.records_sha256
        if digest is None:
            continue
        other = first.setdefault(digest, run)
        if other is not run:
            text = f"{_path(run)} holds the same records as {_path(other)}: one is a copy of the other."
            yield Finding(FindingKind.COPY, text, (other.name, run.name), run.scenario)


def _overlaps(runs: Sequence[MeasuredRun]) -> Iterator[Finding]:
    targets: dict[str, list[MeasuredRun]] = {}
    for run in runs:
        facts = run.directory.facts
        if facts.target and facts.started_at and facts.ended_at and facts.ended_at > facts.started_at:
            targets.setdefault(facts.target.connect_to or facts.target.url, []).append(run)
    for target, there in targets.items():
        there.sort(key=lambda run: str(run.directory.facts.started_at))
        for one, other in pairwise(there):
            ended, began = one.directory.facts.ended_at, other.directory.facts.started_at
            if ended and began and ended - began > _SLACK and not _one_run(one, other):
                text = (
                    f"{other.name} began while {one.name} still loaded {target}: they disturbed each other."
                )
                yield Finding(FindingKind.OVERLAP, text, (one.name, other.name), other.scenario)


def _one_run(one: MeasuredRun, other: MeasuredRun) -> bool:
    """Return True for copies and for shards, which have findings of their own, and for what ran together."""
    if ran_together(one.directory.facts, other.directory.facts):
        return True
    digest = one.records_sha256
    return (digest is not None and digest == other.records_sha256) or bool(
        one.directory.facts.shard and other.directory.facts.shard
    )


def _path(run: MeasuredRun) -> str:
    return f"{run_group(run.directory.path).parent.name}/{run.name}"
