"""One run as evidence: its facts, what was observed in its records, and what is wrong with it by itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from analysis.evidence.answers import AnswerCounter, RouteAnswers
from analysis.evidence.finding import Finding, FindingKind
from analysis.statistics.sample import P999, PERCENTILES
from plimsoll.common.severity import Severity
from plimsoll.common.units import counted, milliseconds, seconds, share
from plimsoll.rundir.directory import RunDirectory
from plimsoll.rundir.events import Saturation, saturation
from plimsoll.rundir.requestfile import HEADER_BYTES, RECORD

# The generator is limited where its lag is too long both in itself and beside what it measured.
LIMIT_LAG_MS = 1.0
LIMIT_FRACTION = 0.05
JUDGED = tuple(name for name, parts in PERCENTILES.items() if parts <= P999)  # no gate can limit those above
_DEAD_REQUESTS = 10
_DEAD_S = 2.0
_DEAD_FRACTION = 0.01
_UNREAD_FRACTION = 0.01

Times = Mapping[str, float | None]


@dataclass(frozen=True)
class Observation:
    """What one pass over the records shows. `dead_ns` is since when the target answered nothing any more.

    `routes` are the answers by route name (hostile); `records_sha256` is None where it was not computed.
    """

    routes: dict[str, RouteAnswers] = field(default_factory=dict)
    dead_ns: int | None = None
    dead_requests: int = 0
    records_sha256: str | None = None

    @cached_property
    def total(self) -> RouteAnswers:
        """The answers of all routes."""
        whole = RouteAnswers()
        for each in self.routes.values():
            whole.add(each)
        return whole


def observe(
    run: RunDirectory, records_sha256: str | None = None, progress: Callable[[int], None] = lambda _: None
) -> Observation:
    """Read every record of `run` once. Raises RunDirectoryError."""
    counter = AnswerCounter()
    for block in run.requests.blocks():
        counter.add(block)
        progress(len(block))
    routes: dict[str, RouteAnswers] = {}
    for number, answers in counter.routes().items():
        routes.setdefault(run.route_name(number), RouteAnswers()).add(answers)
    silent = counter.failures_since()
    since_ns = int(silent[0]) if len(silent) else 0
    lasted_s = (int(silent[-1]) - since_ns) / 1e9 if len(silent) else 0.0
    whole_s = (int(silent[-1]) - (counter.first_due_ns or 0)) / 1e9 if len(silent) else 0.0
    died = len(silent) >= _DEAD_REQUESTS and lasted_s >= max(_DEAD_S, _DEAD_FRACTION * whole_s)
    never = len(silent) > 0 and counter.last_answer_ns < 0
    return Observation(routes, since_ns if died or never else None, len(silent), records_sha256)


@dataclass(frozen=True)
class RunEvidence:
    """One run: its facts, its observation, and its lag and response times by phase, in ms."""

    directory: RunDirectory
    observation: Observation
    lag_ms: Mapping[str, Times]
    response_ms: Mapping[str, Times]

    @property
    def name(self) -> str:
        """Its directory's name, which alone tells two runs of one backend apart (hostile)."""
        return self.directory.path.resolve().name

    @property
    def scenario(self) -> str:
        """The scenario's name (hostile)."""
        return self.directory.facts.scenario

    @cached_property
    def saturation(self) -> Saturation | None:
        """The saturator that kept its disks busy."""
        return saturation(self.directory.events)


def run_findings(run: RunEvidence) -> Iterator[Finding]:
    """Yield what is wrong with a run by itself. Pure."""
    for kind, text, remedy in (
        *_ending(run),
        *_records(run),
        *_generator(run),
        *_saturator(run),
        *_target(run),
        *_parts(run),
    ):
        yield Finding(kind, f"{run.name} {text}", (run.name,), run.scenario, own_remedy=remedy)


def unfit(run: RunEvidence) -> list[str]:
    """Return why nothing can be decided by a run, without its name, with remedies (hostile). Pure."""
    bad = [finding for finding in run_findings(run) if finding.disqualifies]
    return [finding.sentence.removeprefix(f"{run.name} ") for finding in bad]


_Found = Iterator[tuple[FindingKind, str, str | None]]


def _ending(run: RunEvidence) -> _Found:
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
        text = "says that it is complete, but summary.json is missing, so nobody knows whether all is there."
        yield FindingKind.TRUNCATED, text, None


def _records(run: RunEvidence) -> _Found:
    directory, summary = run.directory, run.directory.summary
    if summary is None or directory.status != "complete":
        return
    sent, there = summary.requests.sent, directory.requests.count
    if sent is not None and sent != there:
        text = f"is truncated: {sent:,} requests were sent, and requests.npy holds {there:,}."
        yield FindingKind.TRUNCATED, text, None
    elif (directory.requests.path.stat().st_size - HEADER_BYTES) % RECORD.itemsize:
        yield FindingKind.TRUNCATED, "is truncated: the last record of requests.npy is cut off.", None
    found = run.observation.records_sha256
    if summary.records_sha256 and found and summary.records_sha256 != found:
        text = "holds other records in requests.npy than those that its summary.json was written for."
        yield FindingKind.OTHER_RECORDS, text, None


def late_percentiles(lag_ms: Times, response_ms: Times) -> list[str]:
    """Return the percentiles at which the generator's own lag is too long to measure by. Pure."""
    return [
        name
        for name, lag in lag_ms.items()
        if lag is not None
        and (response := response_ms.get(name)) is not None
        and lag > max(LIMIT_LAG_MS, LIMIT_FRACTION * response)
    ]


def _generator(run: RunEvidence) -> _Found:
    facts = run.directory.facts
    reason = facts.generator_limited_reason
    remedy = f"{reason[:1].upper()}{reason[1:].rstrip('.')}." if reason else None
    if facts.loop == "open":
        for phase, lag_ms in run.lag_ms.items():
            late = late_percentiles(lag_ms, run.response_ms.get(phase, {}))
            if late:
                shown = ", ".join(
                    f"{milliseconds(lag_ms[name])} of {milliseconds(run.response_ms[phase][name])} at {name}"
                    for name in late[-2:]
                )
                where = "" if phase == "whole" else f" {phase} the saturator"
                text = f"was limited by the load generator{where}: its own lag is {shown}."
                yield FindingKind.GENERATOR_LIMITED, text, remedy
                return
    if facts.generator_limited:
        yield FindingKind.GENERATOR_LIMITED, "was limited by the load generator.", remedy


def _saturator(run: RunEvidence) -> _Found:
    busy, phases = run.saturation, run.directory.facts.phases
    if busy and busy.error:
        text = f"had idle disks from then on when {busy.name} gave up ({busy.error.rstrip('.')})."
        yield FindingKind.SATURATOR_GAVE_UP, text, None
    elif busy and busy.stop_ns is None and phases and phases.during_s is not None:
        text = f"has no end of {busy.name}, though its phase had one."
        yield FindingKind.SATURATOR_GAVE_UP, text, None


def _target(run: RunEvidence) -> _Found:
    seen = run.observation
    if seen.dead_ns is not None:
        since = (
            "at all"
            if seen.dead_ns <= 0 and seen.total.failures == seen.total.requests
            else (f"from {seconds(seen.dead_ns / 1e9)} on")
        )
        text = f"got no answer {since}: the last {counted(seen.dead_requests, 'request')} failed."
        yield FindingKind.TARGET_DIED, text, None


def _parts(run: RunEvidence) -> _Found:
    facts = run.directory.facts
    if facts.shard and not facts.merged:
        text = f"is one share of a run ({facts.shard.index + 1} of {facts.shard.of})."
        yield FindingKind.SHARD, text, None
    if facts.merged:
        for remark in facts.merged.says:
            if remark.level is Severity.BAD:
                yield FindingKind.MERGED_BADLY, f"was merged from shards that do not fit: {remark.text}", None
                break
    unread, lines = (sum(getattr(log, key) or 0 for log in facts.logs) for key in ("failed", "lines"))
    if lines and unread > _UNREAD_FRACTION * lines:
        text = f"replayed a log of which {share(unread, lines)} of the lines could not be read."
        yield FindingKind.UNREAD_LOG, text, None
