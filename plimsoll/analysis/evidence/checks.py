"""All checks of runs as evidence, by themselves and side by side: the gatekeeper. Pure.

`report`, `compare`, `signoff`, `regress` and `merge` have no rules of their own. docs/evidence.md lists all
findings.
"""

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from plimsoll.analysis.evidence.answers import log_findings, side_findings
from plimsoll.analysis.evidence.facts import fact_findings
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.generator import (
    find_lateness,
    find_shared_machine,
    find_slice,
    lag_findings,
    load_findings,
    match_slices,
    percentiles_out_of_reach,
)
from plimsoll.analysis.evidence.host_load import find_busier_side
from plimsoll.analysis.evidence.poolwork import pool_findings
from plimsoll.analysis.evidence.records import find_other_mix, find_other_records, record_findings
from plimsoll.analysis.evidence.run import WHOLE, MeasuredRun
from plimsoll.analysis.evidence.saturator import check_saturator, saturator_findings
from plimsoll.analysis.evidence.sides import SLACK, Side
from plimsoll.analysis.evidence.storage import drive_findings, steadiness_findings
from plimsoll.common.errors import Severity
from plimsoll.common.units import counted, milliseconds, share
from plimsoll.rundir.facts import ran_together
from plimsoll.rundir.find import run_group
from plimsoll.rundir.records import HEADER_BYTES

# A figure in a sentence, with its unit: no part of a name, a date or a version.
_FIGURE = re.compile(r"(?<![\w.,:/+-])\d[\d,]*(?:\.\d+)?(?: (?:ms|s|%)\b)?(?![\w:/-]|[.,]\d| min| h\b)")
_UNITS = {"ms": 1e-3}
_MOST_NAMED = 3
_OF_DEATH = (FindingKind.TARGET_DIED, FindingKind.INCOMPLETE)
# What `answers: false` in gates.yml turns into doubts.
ANSWERS = frozenset(
    {
        FindingKind.MORE_FAILURES,
        FindingKind.EMPTY_ANSWERS,
        FindingKind.OTHER_ANSWERS,
        FindingKind.NOT_AS_LOGGED,
        FindingKind.CACHE_IN_FRONT,
    }
)
_LOADS_DIFFER = 1.05
_UNREAD_FRACTION = 0.01
_RETRIED_FRACTION = 0.01
_CLOCKS_APART_MS = 1000.0  # an hour after its last correction, NTP itself says hundreds
_WAITED = 1.05  # times the p99.9 without waiting for one's own client, past which that wait is a doubt

_Found = Iterator[tuple[FindingKind, str, str | None]]


def run_findings(run: MeasuredRun) -> Iterator[Finding]:
    """Yield what is wrong with a run by itself."""
    again = "Import its log again." if run.directory.facts.from_log else None
    for kind, text, remedy in (
        *_check_ending(run),
        *_check_records(run),
        *record_findings(run),
        *find_lateness(run),
        *find_shared_machine(run),
        *check_saturator(run),
        *([(FindingKind.TARGET_DIED, f"lost its target: {run.silence}.", None)] if run.silence else []),
        *_check_connections(run),
        *_check_parts(run),
        *pool_findings(run.pool_work),
    ):
        spares = percentiles_out_of_reach(run) if kind is FindingKind.GENERATOR_LIMITED else frozenset[str]()
        remedy = remedy or (again if kind.level is Severity.BAD else None)
        yield Finding(kind, f"{run.name} {text}", (run.name,), run.scenario, own_remedy=remedy, spares=spares)


def unfit(run: MeasuredRun) -> list[str]:
    """Return why nothing can be decided by a run, without its name, with remedies (hostile)."""
    bad = [finding for finding in run_findings(run) if finding.disqualifies]
    return [finding.sentence.removeprefix(f"{run.name} ") for finding in bad]


def findings_of_sides(
    baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun], names: tuple[str, str]
) -> list[Finding]:
    """Return all findings on the runs of one scenario on two sides that are called `names`, except copies.

    Where only the candidate lost its target, that, and that its run then failed, shows it to be worse.
    """
    scenario = (*baseline, *candidate)[0].scenario if baseline or candidate else ""
    found = [finding for run in baseline for finding in run_findings(run)]
    alive = not any(run.silence for run in baseline)
    for run in candidate:
        died = alive and run.silence is not None
        found += [replace(finding, worse=died and finding.kind in _OF_DEATH) for finding in run_findings(run)]
    for side, runs in zip(names, (baseline, candidate), strict=True):
        found += log_findings(runs, side, scenario)
    return [*found, *findings_between((baseline, candidate), names, scenario)]


def findings_between(
    sides: Sequence[Sequence[MeasuredRun]], names: Sequence[str], scenario: str
) -> Iterator[Finding]:
    """Yield in what the runs of one scenario differ, on sides that are called `names` (hostile).

    Each side is held against the first.
    """
    runs = [run for side in sides for run in side]
    yield from load_findings(runs, scenario)
    yield from fact_findings(sides, names, scenario)
    yield from saturator_findings(sides, names, scenario)
    yield from steadiness_findings(runs, scenario)
    yield from drive_findings(runs, scenario)
    for side, name in zip(sides[1:], names[1:], strict=True):
        called = (names[0], name)
        matched = match_slices(sides[0], side)
        yield from side_findings(*matched, called, scenario)
        yield from lag_findings(sides[0], side, called, scenario)
        yield from find_other_mix(*matched, called, scenario)
        yield from find_busier_side(sides[0], side, called, scenario)
    yield from _find_unequal_requests(runs, scenario)


def _find_unequal_requests(runs: Sequence[MeasuredRun], scenario: str) -> Iterator[Finding]:
    if not runs or any(run.directory.facts.loop != "open" for run in runs):
        return
    for part in dict.fromkeys(map(find_slice, runs)):
        alike = [run for run in runs if find_slice(run) == part]
        few, many = (pick(alike, key=lambda run: run.phases[WHOLE].requests) for pick in (min, max))
        counts = [run.phases[WHOLE].requests for run in (few, many)]
        if counts[1] <= _LOADS_DIFFER * counts[0]:
            continue
        text = f"{scenario}: the runs have between {counts[0]:,} and {counts[1]:,} requests."
        yield Finding(FindingKind.UNEQUAL_REQUESTS, text, (few.name, many.name), scenario)
        return


def identity_findings(runs: Sequence[MeasuredRun]) -> Iterator[Finding]:
    """Yield the copies among `runs`, of whichever side, that overlap on one target, or are altered."""
    yield from _find_copies(runs)
    yield from _find_overlaps(runs)
    yield from find_other_records(runs)


class RunGroup(NamedTuple):
    """Runs that a sentence may be about, by name, and what to say behind `runs`: ` of nvme`."""

    label: str
    names: Collection[str]


def group_runs(sides: Sequence[Side]) -> list[RunGroup]:
    """Return the runs of each scenario, on each side and on all."""
    scenarios = list(dict.fromkeys(name for side in sides for name in side.scenarios))
    found = []
    for scenario in scenarios:
        of = scenario if len(scenarios) > 1 else ""
        parts = [
            (f" of {of} on {side.name}" if of else f" of {side.name}", side.of(scenario)) for side in sides
        ]
        every = [run for side in sides for run in side.of(scenario)]
        parts.append((f" of {of}" if of else "", every))
        found += [RunGroup(label, [run.name for run in runs]) for label, runs in parts]
    return found


def merge_alike(findings: Iterable[Finding], groups: Sequence[RunGroup]) -> list[Finding]:
    """Return the findings, those on single runs that say the same except for figures as one. Pure.

    It stands where the first of them stood, and says of how many runs of the first of the `groups` that they
    are all in, with the ranges of the figures. Those that disqualify name the runs, unless they are all.
    """

    def subject(finding: Finding) -> str:
        name = finding.runs[0] if len(finding.runs) == 1 else ""
        return name if finding.text.startswith(name) else ""

    found = [(name := subject(one), replace(one, text=one.text.removeprefix(name))) for one in findings]
    return [
        replace(one, text=f"{name}: {one.text}" if len(one.runs) > 1 and name else f"{name}{one.text}")
        for name, one in merge_subjects(found, groups)
    ]


def merge_subjects(
    found: Iterable[tuple[str, Finding]], groups: Sequence[RunGroup]
) -> list[tuple[str, Finding]]:
    """Return the same of findings whose text does not name its run, each with that name (or none). Pure."""
    alike: dict[Hashable, list[tuple[str, Finding]]] = {}
    for number, (name, one) in enumerate(found):
        words = (_FIGURE.sub("#", one.text), _FIGURE.sub("#", one.remedy))
        rest = (one.kind, one.scenario, one.worse, one.demoted, one.spares)
        alike.setdefault((*words, *rest) if name else number, []).append((name, one))
    return [each[0] if len(each) == 1 else _merge(each, groups) for each in alike.values()]


def _merge(alike: Sequence[tuple[str, Finding]], groups: Sequence[RunGroup]) -> tuple[str, Finding]:
    names, findings = [name for name, _ in alike], [finding for _, finding in alike]
    holding = (each for each in groups if {*names} <= {*each.names} and len(names) <= len(each.names))
    label, all_names = next(holding, RunGroup("", names))
    named = ""
    if findings[0].disqualifies and len(names) < len(all_names):
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        named = f" ({', '.join(names[:_MOST_NAMED])}{more})"
    text = merge_figures([one.text for one in findings])
    return f"{len(names)} of {len(all_names)} runs{label}{named}", replace(
        findings[0],
        text=re.sub("^(?:The run)? ", "each ", text).removeprefix(": "),
        runs=tuple(run for one in findings for run in one.runs),
        own_remedy=findings[0].own_remedy and merge_figures([one.remedy for one in findings]),
    )


def merge_figures(texts: Sequence[str]) -> str:
    """Return sentences that differ by figures only as one, with the range of each: `4.96–16.7 ms`. Pure."""
    columns = zip(*(_FIGURE.findall(text) for text in texts), strict=True)
    ranges = iter([_range_text(each) for each in columns])
    return _FIGURE.sub(lambda _: next(ranges), texts[0])


def _range_text(figures: Sequence[str]) -> str:
    least, most = (choose(figures, key=_magnitude) for choose in (min, max))
    if _magnitude(least) == _magnitude(most):
        return least
    number, _, unit = least.partition(" ")
    return f"{number if unit == most.partition(' ')[2] else least}–{most}"


def _magnitude(figure: str) -> float:
    number, _, unit = figure.partition(" ")
    return float(number.replace(",", "")) * _UNITS.get(unit, 1.0)


def _find_copies(runs: Sequence[MeasuredRun]) -> Iterator[Finding]:
    first: dict[str, MeasuredRun] = {}
    for run in runs:
        digest = run.records_sha256
        if digest is None:
            continue
        other = first.setdefault(digest, run)
        if other is not run:
            path, other_path = (
                f"{run_group(each.directory.path).parent.name}/{each.name}" for each in (run, other)
            )
            text = f"{path} holds the same records as {other_path}: one is a copy of the other."
            yield Finding(FindingKind.COPY, text, (other.name, run.name), run.scenario)


def _find_overlaps(runs: Sequence[MeasuredRun]) -> Iterator[Finding]:
    targets: dict[str, list[MeasuredRun]] = {}
    for run in runs:
        facts = run.directory.facts
        if facts.from_log or facts.target is None:
            continue  # visitors come anyway
        if facts.started_at and facts.ended_at and facts.ended_at > facts.started_at:
            targets.setdefault(facts.target.connect_to or facts.target.url, []).append(run)
    for target, there in targets.items():
        there.sort(key=lambda run: str(run.directory.facts.started_at))
        for one, other in pairwise(there):
            ended, began = one.directory.facts.ended_at, other.directory.facts.started_at
            if ended and began and ended - began > SLACK and not _is_one_run(one, other):
                text = (
                    f"{other.name} began while {one.name} still loaded {target}: they disturbed each other."
                )
                yield Finding(FindingKind.OVERLAP, text, (one.name, other.name), other.scenario)


def _is_one_run(one: MeasuredRun, other: MeasuredRun) -> bool:
    """Return True for copies and for shards, which have findings of their own, and for what ran together."""
    if ran_together(one.directory.facts, other.directory.facts):
        return True
    digest = one.records_sha256
    return (digest is not None and digest == other.records_sha256) or bool(
        one.directory.facts.shard and other.directory.facts.shard
    )


def _check_ending(run: MeasuredRun) -> _Found:
    directory, reason = run.directory, run.directory.facts.reason
    if directory.killed:
        yield FindingKind.KILLED, "was killed.", None
    elif directory.status == "running":
        yield FindingKind.RUNNING, "has not ended yet.", None
    elif directory.status != "complete":
        because = f" ({reason.rstrip('.')})" if reason else ""
        how = "failed" if directory.status == "failed" else "was interrupted"
        yield FindingKind.INCOMPLETE, f"{how}{because}.", None
    elif directory.summary is None:
        text = "says that it is complete, but summary.json is missing, so it is unknown whether all is there."
        yield FindingKind.TRUNCATED, text, None


def _check_records(run: MeasuredRun) -> _Found:
    directory, summary = run.directory, run.directory.summary
    if summary is None or directory.status != "complete":
        return
    sent, there = summary.requests.sent, directory.requests.count
    if sent is not None and sent != there:
        text = f"is truncated: {sent:,} requests were sent, and requests.npy holds {there:,}."
        yield FindingKind.TRUNCATED, text, None
    elif (directory.requests.path.stat().st_size - HEADER_BYTES) % directory.requests.layout.itemsize:
        yield FindingKind.TRUNCATED, "is truncated: the last record of requests.npy is cut off.", None
    found = run.records_sha256
    if summary.records_sha256 and found and summary.records_sha256 != found:
        text = "holds other records in requests.npy than those that its summary.json was written for."
        yield FindingKind.OTHER_RECORDS, text, None


def _check_connections(run: MeasuredRun) -> _Found:
    summary, sent = run.directory.summary, run.directory.requests.count
    if summary and summary.requests.retried > _RETRIED_FRACTION * sent:
        retried = counted(summary.requests.retried, "request")
        part = share(summary.requests.retried, sent)
        text = f"had to send {retried} ({part}) again, since the server had closed their connections."
        yield FindingKind.CLOSED_CONNECTIONS, text, None
    unqueued_ms = summary.unqueued_ms.p999 if summary and summary.unqueued_ms else None
    whole = run.phases.get(WHOLE)
    whole_ms = whole.response_ms.least_ms("p99.9") if whole else None
    if summary and unqueued_ms is not None and (whole_ms is None or whole_ms > _WAITED * unqueued_ms):
        waiting = summary.requests.client_queued
        waited = f"{counted(waiting, 'request')} ({share(waiting, sent)})"
        with_wait = milliseconds(whole_ms) if whole_ms is not None else "that of failures"
        text = f"had {waited} wait for connections of their own clients: its p99.9 is {with_wait}, and "
        yield FindingKind.CLIENT_QUEUED, f"{text}{milliseconds(unqueued_ms)} without that.", None


def _check_parts(run: MeasuredRun) -> _Found:
    facts = run.directory.facts
    if facts.shard and not facts.merged:
        text = f"is one share of a run ({facts.shard.index + 1} of {facts.shard.of})."
        yield FindingKind.SHARD, text, None
    if facts.merged:
        for remark in facts.merged.says:
            if remark.level is Severity.BAD:
                yield FindingKind.MERGED_BADLY, f"was merged from shards that do not fit: {remark.text}", None
                break
        doubts = [remark.text for remark in facts.merged.says if remark.level is Severity.WARN]
        if (apart_ms := facts.merged.clock_error_ms or 0) > _CLOCKS_APART_MS:
            doubts.append(f"The instances' clocks may differ by up to {milliseconds(apart_ms)}.")
        if doubts:
            text = f"was merged from shards that may not fit: {' '.join(doubts)}"
            yield FindingKind.MERGED_DOUBTFULLY, text, None
    if facts.from_log:
        yield FindingKind.FROM_LOG, "is not a load test: an access log says that this was served.", None
    unread, lines = (sum(getattr(log, key) or 0 for log in facts.logs) for key in ("failed", "lines"))
    if lines and unread > _UNREAD_FRACTION * lines:
        part = f"a log of which {share(unread, lines)} of the lines could not be read."
        text = f"{'is of' if facts.from_log else 'replayed'} {part}"
        yield FindingKind.UNREAD_LOG, text, None
