"""Whether the records of runs can be what they claim to be, alone and beside one another. Pure."""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.evidence.traits import NO_TIME, SLOT_NS, RecordTraits, ends_in_zeros
from plimsoll.common.units import counted, milliseconds, percent, significant
from plimsoll.rundir.facts import REPLAY

_MISSING = 0.001  # of what was to be sent
# Why the generator itself leaves requests out. All other reasons are the log's, and alike for all runs of it.
_LOST = ("cap_reached", "dropped_iterations")
_LEAST_S, _ENDING_S = 10.0, 10.0
_CLOCKS_APART = 0.1
_STEP_FRACTION = 0.05  # of the median response time, as for all that blurs it
_ONE_LINE = 0.5
_ALIKE = 0.97
_LEAST_ALIKE = 500  # requests
_OTHER_MIX = 0.02
_OTHER_MIX_OF_LOGS = 0.1

_Found = Iterator[tuple[FindingKind, str, str | None]]
_Values = NDArray[np.float64]


def record_findings(run: MeasuredRun) -> _Found:
    """Yield what is wrong with the records of a run by themselves.

    - Over 0.1 % of what was to be sent was not, or is marked as warm-up though it was due later: a p99.9
      rests on no more than that.
    - The sum of the records is gone. It came with `load` in run.json, so a run that has that had one.
    - A replay of 10 s or more whose clock and records differ: it cannot have ended before its last request,
      and it ends within 10 s, or a tenth of its length, after it.
    - Over 0.1 % of its records could come from no request, or took the same time to the microsecond, or over
      half come from one line of a longer log.
    - The steps of its clock are over 1 ms, and over 5 % of its median response time.
    """
    traits, facts = run.traits, run.directory.facts
    summary = run.directory.summary if run.directory.status == "complete" else None
    if traits is None:
        return
    if summary:
        yield from _find_unsent(run)
        if facts.load is not None and summary.records_sha256 is None:
            yield (
                FindingKind.NO_SUM,
                "has no sum of its records, which the program that wrote it keeps in summary.json.",
                None,
            )
    is_replay = facts.own_scenario == REPLAY and not facts.from_log
    if is_replay and traits.hidden > _MISSING * traits.records:
        text = (
            f"has {counted(traits.hidden, 'request')} ({percent(traits.hidden / traits.records)}) marked as "
            "warm-up that were due after it: no figure counts them."
        )
        yield FindingKind.HIDDEN_REQUESTS, text, None
    if is_replay and not facts.merged:
        yield from _find_wrong_clock(run, traits)
    impossible = {
        what: count for what, count in traits.impossible.items() if what != NO_TIME or not traits.has_whole_ms
    }
    if impossible and not facts.from_log and max(impossible.values()) > _MISSING * traits.records:
        what = max(impossible, key=lambda each: impossible[each])
        text = f"has {counted(impossible[what], 'record')} of requests that {what}."
        yield FindingKind.IMPOSSIBLE_RECORDS, text, None
    if is_replay and traits.commonest_line > _ONE_LINE and sum(log.valid or 0 for log in facts.logs) > 2:
        text = f"has {percent(traits.commonest_line)} of its records from one line of the log."
        yield FindingKind.IMPOSSIBLE_RECORDS, text, None
    repeated_us, times = traits.repeated
    if times and is_replay:
        took = milliseconds(repeated_us / 1000)
        text = f"has {counted(times, 'request')} that took {took} to the microsecond."
        yield FindingKind.IMPOSSIBLE_RECORDS, text, None
    step_us, usual_ms = traits.step_us, _median_ms(run)
    if step_us and usual_ms and not facts.from_log and step_us / 1000 > _STEP_FRACTION * usual_ms:
        text = f"was timed by a clock that goes in steps of {milliseconds(step_us / 1000)}."
        yield FindingKind.COARSE_CLOCK, text, None


def _find_unsent(run: MeasuredRun) -> _Found:
    facts, summary = run.directory.facts, run.directory.summary
    if summary is None or (facts.together and facts.together.stopped):
        return
    requests = summary.requests
    lost = {"unsent": requests.unsent or 0} | {name: requests.skipped.get(name, 0) for name in _LOST}
    total = requests.total or run.directory.requests.count + sum(lost.values())
    if sum(lost.values()) > _MISSING * total:
        named = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in lost.items() if count)
        text = f"left {percent(sum(lost.values()) / total)} of its {total:,} requests out ({named})."
        yield FindingKind.UNSENT, text, None


def _find_wrong_clock(run: MeasuredRun, traits: RecordTraits) -> _Found:
    facts, lasted_s = run.directory.facts, traits.end_ns / 1e9
    if not facts.started_at or not facts.ended_at or run.directory.status != "complete":
        return
    wall_s = (facts.ended_at - facts.started_at).total_seconds()
    early, late = lasted_s - wall_s, wall_s - lasted_s
    if max(lasted_s, wall_s) < _LEAST_S or lasted_s < 1 or wall_s < 0:
        return  # what ended before it began is said where the order of the runs is
    if early > 1 + _CLOCKS_APART * wall_s or (
        lasted_s >= _LEAST_S and late > max(_ENDING_S, _CLOCKS_APART * lasted_s)
    ):
        text = (
            f"took {significant(wall_s, 3)} s by the clock on the wall, and its records take "
            f"{significant(lasted_s, 3)} s."
        )
        yield FindingKind.OTHER_CLOCK, text, None


def _median_ms(run: MeasuredRun) -> float | None:
    whole = run.phases.get("whole")
    return whole.response_ms["p50"] if whole else None


def find_other_records(runs: Sequence[MeasuredRun]) -> Iterator[Finding]:
    """Yield how the records of runs of one load differ, or are alike, where they cannot.

    A load is replayed on a schedule that depends on nothing else: the same lines of the log are due at the
    same instants of every run, to its end. Where over 0.1 % are missing, they were taken out, or the run was
    cut short; where as many have others in their place, what was sent was not this load.

    Two runs do not repeat each other's noise. Compared are service times, request by request, less the
    median of requests of the same kind and logged size, so that what depends on the page does not count; and
    from each to the next, so that what depends on the time does not count. Ranks of these differences
    correlate by 0.1 to 0.3 in real runs, by up to 0.9 where one thread is so slow that requests wait for
    seconds, and by over 0.99 in a copy with 1 % of noise; over 0.97 is a doubt.
    """
    loads: dict[tuple[str, str], list[MeasuredRun]] = {}
    for run in runs:
        facts = run.directory.facts
        if run.traits is not None and run.directory.status == "complete" and not facts.shard:
            loads.setdefault((run.scenario, facts.load.digest if facts.load else ""), []).append(run)
    for (_, digest), alike in loads.items():
        if len(alike) < 2:
            continue
        facts = alike[0].directory.facts
        if digest and facts.own_scenario == REPLAY and facts.loop == "open" and not facts.from_log:
            yield from _find_other_schedules(alike)
        yield from _find_repeated_noise(alike)


def _find_other_schedules(runs: Sequence[MeasuredRun]) -> Iterator[Finding]:
    known = [(run, run.traits) for run in runs if run.traits]
    # What was stopped as all others had ended may be shorter; its last slot may have been cut short.
    stopped = any(run.directory.facts.together and run.directory.facts.together.stopped for run, _ in known)
    lengths = [len(traits.arrivals) for _, traits in known]
    length = min(lengths) - 1 if stopped else max(lengths)
    counts = [int(traits.arrivals[:length].sum()) for _, traits in known]
    most = max(counts)
    seconds = significant(length * SLOT_NS / 1e9, 3)
    for (run, _), count in zip(known, counts, strict=True):
        if most - count > _MISSING * most:
            text = (
                f"{run.name} has {counted(most - count, 'request')} ({percent((most - count) / most)}) fewer "
                f"than another run of the same load in the same {seconds} s."
            )
            yield Finding(FindingKind.MISSING_REQUESTS, text, (run.name,), run.scenario)
    (first, reference), *others = [each for each in known if not each[0].directory.facts.merged] or known
    for run, traits in others:
        if (share := _share_of_others(reference, traits)) > _MISSING:
            text = (
                f"{percent(share)} of the requests of {run.name} are not those of {first.name}, though both "
                "are of one load: they are of other lines of the log, or were due at other times."
            )
            yield Finding(FindingKind.OTHER_SCHEDULE, text, (first.name, run.name), run.scenario)
            return


def _share_of_others(one: RecordTraits, other: RecordTraits) -> float:
    """Return the share of requests in whose place another run of the same load has others."""
    bits, sides = max(one.asked_bits, other.asked_bits), []
    for asked in (one.asked, other.asked):
        here = ends_in_zeros(asked["line"], bits)
        sides.append(asked["what"][here] ^ asked["due_ns"][here])
    values, place = np.unique(np.concatenate(sides), return_inverse=True)
    found, there = (
        np.bincount(part.ravel(), minlength=len(values)) for part in np.split(place, [len(sides[0])])
    )
    more = found - there
    # What is missing on one side, and has nothing in its place on the other, is not another request.
    return float(min(more[more > 0].sum(), -more[more < 0].sum()) / max(len(sides[0]), 1))


def _find_repeated_noise(runs: Sequence[MeasuredRun]) -> Iterator[Finding]:
    samples = [(run, run.traits.sample) for run in runs if run.traits and run.traits.sample]
    samples = [(run, each) for run, each in samples if len(np.unique(each["line"])) == len(each["line"])]
    if len(samples) < 2:
        return
    lines = reduce(np.intersect1d, [each["line"] for _, each in samples])
    if len(lines) < _LEAST_ALIKE:
        return
    ranks = [(run, _noise_ranks(each, lines)) for run, each in samples]
    for (one, first), (other, second) in combinations([(run, r) for run, r in ranks if r is not None], 2):
        if one.records_sha256 is not None and one.records_sha256 == other.records_sha256:
            continue  # a copy to the last byte has a finding of its own
        alike = float(np.corrcoef(first, second)[0, 1])
        if alike > _ALIKE:
            text = (
                f"{other.name} repeats the response times of {one.name}, request by request "
                f"(correlation {significant(alike)}): two runs have no noise in common."
            )
            yield Finding(FindingKind.REPEATED_NOISE, text, (one.name, other.name), one.scenario)
            return


def _noise_ranks(sample: dict[str, NDArray[np.int64]], lines: NDArray[np.int64]) -> _Values | None:
    """Return the ranks of what `lines` took, less what is usual for their like, from each to the next.

    None where over half of them are alike, so that ranks say nothing.
    """
    order = np.argsort(sample["line"])
    at = order[np.searchsorted(sample["line"][order], lines)]
    log_us = np.log(sample["total_us"][at].astype(np.float64) + 1)
    kinds = np.stack([sample["route"][at].astype(np.int64), sample["logged_bytes"][at]])
    _, kind = np.unique(kinds, axis=1, return_inverse=True)
    kind = kind.ravel()
    by_kind = np.lexsort((log_us, kind))
    sizes = np.bincount(kind)
    middles = np.cumsum(sizes) - sizes + (sizes - 1) // 2
    noise = np.diff(
        (log_us - log_us[by_kind][middles][kind])[np.argsort(sample["due_ns"][at], kind="stable")]
    )
    _, place, counts = np.unique(noise, return_inverse=True, return_counts=True)
    if counts.max() > len(noise) / 2:
        return None
    ranks: _Values = (np.cumsum(counts) - (counts - 1) / 2)[place.ravel()]
    return ranks


def find_other_mix(
    baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun], names: tuple[str, str], scenario: str
) -> Iterator[Finding]:
    """Yield that the sides' requests are of other kinds: over 2 % of a replay's, 10 % of a log's.

    What a log has, each replay of it sends; visitors differ from week to week. In a closed loop the server
    has a part in the mix, so that it may differ.
    """
    runs = [*baseline, *candidate]
    if not baseline or not candidate or any(run.directory.facts.loop != "open" for run in runs):
        return
    of_logs = any(run.directory.facts.from_log for run in runs)
    if not of_logs and any(run.directory.facts.own_scenario != REPLAY for run in runs):
        return
    shares = [_route_shares(side) for side in (baseline, candidate)]
    apart = {name: shares[1].get(name, 0.0) - shares[0].get(name, 0.0) for name in {**shares[0], **shares[1]}}
    if sum(map(abs, apart.values())) / 2 > (_OTHER_MIX_OF_LOGS if of_logs else _OTHER_MIX):
        name = max(apart, key=lambda each: abs(apart[each]))
        text = (
            f"{scenario}: the requests of the sides are of other kinds: {percent(shares[0].get(name, 0.0))} "
            f"({names[0]}) and {percent(shares[1].get(name, 0.0))} ({names[1]}) of them are {name}."
        )
        yield Finding(FindingKind.OTHER_MIX, text, tuple(run.name for run in runs), scenario)


def _route_shares(runs: Sequence[MeasuredRun]) -> dict[str, float]:
    counts: dict[str, int] = {}
    for run in runs:
        for name, answers in run.answers.items():
            counts[name] = counts.get(name, 0) + answers.requests
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} if total else {}
