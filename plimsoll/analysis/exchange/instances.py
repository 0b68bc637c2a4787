"""The figures of each instance of a merged run, and a check that none, nor all together, sent too late."""

from collections.abc import Callable, Sequence

import numpy as np

from plimsoll.analysis.exchange.ending import InstanceEnding
from plimsoll.analysis.exchange.shard import ShardRun
from plimsoll.analysis.statistics.percentiles import Microseconds, Sample, Times, narrow
from plimsoll.analysis.statistics.requests import counted_us, failed, timeout_us
from plimsoll.analysis.statistics.summary import is_late
from plimsoll.common.units import significant
from plimsoll.rundir.facts import Instance, InstanceTimes
from plimsoll.rundir.records import QUEUED, WARMUP, RequestFile

# As the programs that generate load judge themselves (docs/run-format.md, generator_limited).

Progress = Callable[[int], None]


def measure_instance(ending: InstanceEnding, progress: Progress) -> Instance:
    """Read the records of one instance, 8 bytes of memory each, and return what `summary.json` says of it."""
    shard = ending.shard
    if shard is None:
        return Instance(
            name=ending.name,
            index=ending.index,
            segment=ending.segment,
            status=ending.status,
            planned=ending.planned,
            unsent=ending.unsent,
        )
    lag, response, errors = _times(shard.requests, timeout_us(shard.facts), progress)
    facts = shard.facts
    open_loop = facts.loop == "open"
    late = open_loop and is_late(lag.tail().least_ms("p99.9"), response.tail().least_ms("p99.9"))
    return Instance(
        name=ending.name,
        index=ending.index,
        segment=ending.segment,
        directory=str(shard.path),
        host=facts.host.hostname,
        status=ending.status,
        sent=ending.sent,
        planned=ending.planned,
        unsent=ending.unsent,
        errors=errors,
        generator_limited=facts.generator_limited or late,
        lag_ms=_figures(lag),
        response_ms=_figures(response),
        started_at=facts.started_at,
        clock=facts.shard.clock if facts.shard else None,
    )


def describe_late_instances(
    instances: Sequence[Instance],
    shards: Sequence[ShardRun],
    lag_ms: float | None,
    response_ms: float | None,
) -> str | None:
    """Return which instances were the limit, or that all together were, and what to do; None if none was.

    `lag_ms` and `response_ms` are the p99.9 of all of an open loop, None of a closed one. Texts are hostile.
    """
    told = {str(one.path): one.facts.generator_limited_reason for one in shards}
    said = [
        f"{one.name}: {told.get(one.directory or '') or _sent_late(one.lag_ms.p999, one.response_ms.p999)}"
        for one in instances
        if one.generator_limited
    ]
    if not said and is_late(lag_ms, response_ms):
        said = [f"all instances together: {_sent_late(lag_ms, response_ms)}"]
    return "; ".join(text.rstrip(".") for text in said) or None


def _sent_late(lag_ms: float | None, response_ms: float | None) -> str:
    remedy = "use a lower speed or rate, or more instances on machines of their own"
    if lag_ms is None or response_ms is None:
        return f"the generator sent late; {remedy}"
    return (
        f"the generator sent late: one request in a thousand by over {significant(lag_ms)} ms, where the "
        f"p99.9 response time is {significant(response_ms)} ms; {remedy}"
    )


def _times(
    requests: RequestFile | None, timeout_us: int | None, progress: Progress
) -> tuple[Sample, Sample, int]:
    """Return lag (of those not queued), response times and the number of errors, without the warm-up."""
    lag: list[Microseconds] = []
    response: list[Times] = []
    errors = 0
    for block in requests.blocks() if requests else ():
        progress(len(block))
        measured = block[(block["flags"] & WARMUP) == 0]
        lag_us = np.ascontiguousarray(measured["lag_us"])
        lag.append(lag_us[(measured["flags"] & QUEUED) == 0])
        took_us, failures = narrow(lag_us.astype(np.uint64) + measured["total_us"]), failed(measured)
        response.append(Times.of(counted_us(took_us, failures, timeout_us), failures))
        errors += int(np.count_nonzero(measured["error"]))
    lags = Times.joined([Times(part) for part in lag])
    return Sample.of_times(lags), Sample.of_times(Times.joined(response)), errors


def _figures(sample: Sample) -> InstanceTimes:
    return InstanceTimes.model_validate(sample.figures_ms())
