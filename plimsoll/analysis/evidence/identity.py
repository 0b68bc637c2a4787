"""Which runs are one run: copies, and runs that disturbed each other. Pure."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import RunEvidence
from plimsoll.rundir.facts import ran_together
from plimsoll.rundir.find import run_group

_SLACK = timedelta(seconds=1)


def identity_findings(runs: Sequence[RunEvidence]) -> Iterator[Finding]:
    """Yield the copies among `runs`, of whichever side, and those that overlap on one target."""
    yield from _copies(runs)
    yield from _overlaps(runs)


def _copies(runs: Sequence[RunEvidence]) -> Iterator[Finding]:
    first: dict[str, RunEvidence] = {}
    for run in runs:
        digest = run.observation.records_sha256
        if digest is None:
            continue
        other = first.setdefault(digest, run)
        if other is not run:
            text = f"{_path(run)} holds the same records as {_path(other)}: one is a copy of the other."
            yield Finding(FindingKind.COPY, text, (other.name, run.name), run.scenario)


def _overlaps(runs: Sequence[RunEvidence]) -> Iterator[Finding]:
    targets: dict[str, list[RunEvidence]] = {}
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


def _one_run(one: RunEvidence, other: RunEvidence) -> bool:
    """Return True for copies and for shards, which have findings of their own, and for what ran together."""
    if ran_together(one.directory.facts, other.directory.facts):
        return True
    digest = one.observation.records_sha256
    return (digest is not None and digest == other.observation.records_sha256) or bool(
        one.directory.facts.shard and other.directory.facts.shard
    )


def _path(run: RunEvidence) -> str:
    return f"{run_group(run.directory.path).parent.name}/{run.name}"
