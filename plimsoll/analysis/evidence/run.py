"""One run as evidence: its facts, what was observed in its records, and what is wrong with it by itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from plimsoll.analysis.evidence.answers import AnswerCounter, RouteAnswers
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.poolwork import PoolWork, pool_findings, pool_work, read_pool_work
from plimsoll.analysis.statistics.percentiles import MILLION, P999, PERCENTILES
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.analysis.statistics.summary import is_late
from plimsoll.common.errors import Severity
from plimsoll.common.units import counted, milliseconds, share, significant
from plimsoll.rundir.check import RecordSum, Silence
from plimsoll.rundir.events import Saturation, saturation
from plimsoll.rundir.find import relative_name
from plimsoll.rundir.hostfile import Column
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import HEADER_BYTES, RECORD, Records

JUDGED = tuple(name for name, parts in PERCENTILES.items() if parts <= P999)  # no gate can limit those above
_UNREAD_FRACTION = 0.01
_RETRIED_FRACTION = 0.01
# Of all cores' time, and of each second: with more, who is slow is not known.
_MUCH_BUSY = 0.9
MUCH_TAKEN_MS = 100
SENT_LATE = "the generator sent late"  # so begins the reason in run.json where that is all
_WAITED = 1.05  # times the p99.9 without waiting for one's own client, past which that wait is a doubt

Times = Mapping[str, float | None]


@dataclass(frozen=True)
class Observation:
    """What one pass over the records shows.

    `routes` are the answers by route name (hostile). `silence` says why the target counts as dead; None where
    it lives. `records_sha256` is None where it was not computed.
    """

    routes: dict[str, RouteAnswers] = field(default_factory=dict)
    silence: str | None = None
    records_sha256: str | None = None

    @cached_property
    def total(self) -> RouteAnswers:
        """The answers of all routes."""
        whole = RouteAnswers()
        for each in self.routes.values():
            whole.add(each)
        return whole


class Observer:
    """Watches the records of a run while others read them, so that they are read once.

    `summed`: they are summed too, which tells the run from all others and takes as long again.
    """

    def __init__(self, run: RunDirectory, *, summed: bool = False) -> None:
        self._run, self._counter, self._silence = run, AnswerCounter(), Silence()
        self._sum = RecordSum() if summed else None

    def watch(self, block: Records) -> None:
        """Take the next block of records."""
        self._counter.add(CountedRequests.of(block, None))
        self._silence.take_all(block)
        if self._sum:
            self._sum.add(block)

    def observation(self) -> Observation:
        """Return what the records showed."""
        routes: dict[str, RouteAnswers] = {}
        for number, answers in self._counter.routes().items():
            routes.setdefault(self._run.route_name(number), RouteAnswers()).add(answers)
        return Observation(routes, self._silence.finding(), self._sum.hexdigest() if self._sum else None)


@dataclass(frozen=True)
class RunEvidence:
    """One run: its facts, its observation, and its lag and response times by phase, in ms.

    `host` has the columns of its host.csv, where somebody has read them already.
    """

    directory: RunDirectory
    observation: Observation
    lag_ms: Mapping[str, Times]
    response_ms: Mapping[str, Times]
    host: Mapping[str, Column] | None = None

    @cached_property
    def name(self) -> str:
        """Its directory's name, which alone tells two runs of one backend apart (hostile)."""
        return relative_name(self.directory.path)

    @property
    def scenario(self) -> str:
        """The scenario's name (hostile)."""
        return self.directory.facts.scenario

    @cached_property
    def saturation(self) -> Saturation | None:
        """The saturator that kept its disks busy."""
        return saturation(self.directory.events)

    @cached_property
    def pool_work(self) -> PoolWork:
        """What the pools under it did meanwhile."""
        return read_pool_work(self.directory) if self.host is None else pool_work(self.directory, self.host)


def run_findings(run: RunEvidence) -> Iterator[Finding]:
    """Yield what is wrong with a run by itself. Pure."""
    for kind, text, remedy in (
        *_ending(run),
        *_records(run),
        *_generator(run),
        *_shared(run),
        *_saturator(run),
        *_target(run),
        *_connections(run),
        *_parts(run),
        *pool_findings(run.pool_work),
    ):
        spares = _out_of_reach(run) if kind is FindingKind.GENERATOR_LIMITED else frozenset[str]()
        yield Finding(kind, f"{run.name} {text}", (run.name,), run.scenario, own_remedy=remedy, spares=spares)


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
    return [name for name, lag in lag_ms.items() if is_late(lag, response_ms.get(name))]


def _out_of_reach(run: RunEvidence) -> frozenset[str]:
    """Return the percentiles that the generator's lag does not reach, where only lag was its limit.

    Of the slowest requests, those from such a percentile on, no more than a tenth were sent later than the
    rule allows at it. The p50 is one if the lag's p95 is short beside it.
    """
    facts = run.directory.facts
    otherwise = facts.generator_limited and not (facts.generator_limited_reason or "").startswith(SENT_LATE)
    if facts.loop != "open" or facts.merged or otherwise:
        return frozenset()

    def is_reached(name: str, lag_ms: Times, response_ms: Times) -> bool:
        tenth = (MILLION - PERCENTILES[name]) / 10
        lags_ms = (lag_ms.get(deeper) for deeper in JUDGED if MILLION - PERCENTILES[deeper] <= tenth)
        lag, response = next(lags_ms, None), response_ms.get(name)
        return response is not None and (lag is None or is_late(lag, response))

    return frozenset(
        name
        for name in JUDGED
        if not any(is_reached(name, lag, run.response_ms.get(phase, {})) for phase, lag in run.lag_ms.items())
    )


def _generator(run: RunEvidence) -> _Found:
    facts = run.directory.facts
    reason = facts.generator_limited_reason or ""
    if reason.startswith(SENT_LATE):  # by how much is said once
        reason = reason.partition("; ")[2]
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


def taken_ms_per_s(run: RunDirectory) -> float | None:
    """Return for how many ms of each second the generator may have kept other programs from a processor.

    Nobody can wait for it while it does not run, nor for longer than all waits together. None where the
    server has another machine, or none of this is known. Pure.
    """
    sender = run.facts.sender
    if sender is None or sender.ran_ms_per_s is None or sender.others_wait_ms_per_s is None:
        return None
    return min(sender.ran_ms_per_s, sender.others_wait_ms_per_s)


def _shared(run: RunEvidence) -> _Found:
    sender, cpus = run.directory.facts.sender, run.directory.facts.host.cpus
    if sender is None or not sender.beside_server:
        return
    taken_ms, busy = taken_ms_per_s(run.directory), sender.cores_busy or 0
    if (taken_ms or 0) < MUCH_TAKEN_MS and busy < _MUCH_BUSY:
        return
    text = f"had generator and server share {counted(cpus, 'core') if cpus else 'a machine'}"
    if taken_ms is not None:
        text += (
            f", of which the generator had one for {sender.ran_ms_per_s:,.0f} ms of each second, and other "
            f"programs waited for one for {sender.others_wait_ms_per_s:,.0f} ms"
        )
    text += f"; the cores were busy for {share(round(1000 * busy), 1000)} of the time" if busy else ""
    text += ". Part of what was measured may be the generator's doing."
    yield FindingKind.SHARED_MACHINE, text, None


def _saturator(run: RunEvidence) -> _Found:
    busy, phases = run.saturation, run.directory.facts.phases
    if busy and busy.error:
        text = f"had idle disks from then on when {busy.name} gave up ({busy.error.rstrip('.')})."
        yield FindingKind.SATURATOR_GAVE_UP, text, None
    elif busy and busy.stop_ns is None and phases and phases.during_s is not None:
        text = f"has no end of {busy.name}, though its phase had one."
        yield FindingKind.SATURATOR_GAVE_UP, text, None
    if busy and busy.retries:
        why = busy.retries[0].rstrip(".")
        text = (
            f"had {busy.name} fail and begin again {counted(len(busy.retries), 'time')} "
            f"({significant(busy.idle_s, 2)} of {significant(busy.length_s, 2)} s without load): {why}."
        )
        yield FindingKind.SATURATOR_RETRIED, text, None


def _target(run: RunEvidence) -> _Found:
    if run.observation.silence:
        yield FindingKind.TARGET_DIED, f"lost its target: {run.observation.silence}.", None


def _connections(run: RunEvidence) -> _Found:
    summary, sent = run.directory.summary, run.directory.requests.count
    if summary and summary.requests.retried > _RETRIED_FRACTION * sent:
        retried = counted(summary.requests.retried, "request")
        part = share(summary.requests.retried, sent)
        text = f"had to send {retried} ({part}) again, since the server had closed their connections."
        yield FindingKind.CLOSED_CONNECTIONS, text, None
    unqueued_ms = summary.unqueued_ms.p999 if summary and summary.unqueued_ms else None
    whole_ms = run.response_ms.get("whole", {}).get("p99.9")
    if summary and unqueued_ms is not None and (whole_ms is None or whole_ms > _WAITED * unqueued_ms):
        waiting = summary.requests.client_queued
        waited = f"{counted(waiting, 'request')} ({share(waiting, sent)})"
        with_wait = milliseconds(whole_ms) if whole_ms is not None else "that of failures"
        text = f"had {waited} wait for connections of their own clients: its p99.9 is {with_wait}, and "
        yield FindingKind.CLIENT_QUEUED, f"{text}{milliseconds(unqueued_ms)} without that.", None


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
    if facts.from_log:
        yield FindingKind.FROM_LOG, "is no load test: an access log says that this was served.", None
    unread, lines = (sum(getattr(log, key) or 0 for log in facts.logs) for key in ("failed", "lines"))
    if lines and unread > _UNREAD_FRACTION * lines:
        part = f"a log of which {share(unread, lines)} of the lines could not be read."
        text = f"{'is of' if facts.from_log else 'replayed'} {part}"
        yield FindingKind.UNREAD_LOG, text, None
