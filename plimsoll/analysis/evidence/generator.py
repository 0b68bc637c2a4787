"""Whether the generator sent all runs the same load, on time, and kept no server waiting. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from statistics import median
from typing import Any

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import JUDGED, WHOLE, MeasuredRun, RunPhase
from plimsoll.analysis.evidence.storage import differing
from plimsoll.analysis.statistics.percentiles import MILLION, PERCENTILES
from plimsoll.common.units import counted, milliseconds, percent, share
from plimsoll.rundir.read import RunDirectory

_OF_THE_PLACE = {"target", "connect_to", "backend", "repeat", "user", "imported_from"}
_SLICE = "from"  # in the settings of a load: the instant of the log from which on it is played
_MOST_NAMED = 3
_DIGITS = 12  # of a digest that is shown
_LIMIT_LAG_MS = 1.0
_LIMIT_FRACTION = 0.05
MOST_MOVED = 0.02
_MUCH_LATER = 1.5
_LAG_APART_MS = 0.5
_LAG_APART_FRACTION = 0.025
# Of all cores' time, and of each second: with more, who is slow is not known.
_MUCH_BUSY = 0.9
MUCH_TAKEN_MS = 100
SENT_LATE = "the generator sent late"  # so begins the reason in run.json where that is all

_Found = Iterator[tuple[FindingKind, str, str | None]]


def load_findings(runs: Sequence[MeasuredRun], scenario: str) -> Iterator[Finding]:
    """Yield what differs in the load of the runs of one scenario, of both sides."""
    said = [run.directory.facts.load for run in runs]
    known = [_load_settings(run) for run in runs if run.directory.facts.load is not None]
    names = tuple(run.name for run in runs)
    if known and len(known) < len(runs):
        without = [run.name for run, load in zip(runs, said, strict=True) if load is None]
        text = f"{without[0]} does not say what shaped its load, as other runs of {scenario} do."
        yield Finding(FindingKind.UNKNOWN_LOAD, text, tuple(without), scenario)
    found = dict(differing(known))
    found |= {
        key: values
        for key, values in differing([_load_circumstances(run) for run in runs])
        if key not in found
    }
    blocks: dict[object, list[dict[str, str | None]]] = {}
    for run in runs:
        part = run.directory.facts.experiment
        blocks.setdefault(part and (part.name, part.block), []).append({_SLICE: find_slice(run)})
    found |= {key: values for each in blocks.values() for key, values in differing(each)}
    # Versions may matter, but need not: they are facts (evidence/facts.py).
    if different := {key: values for key, values in found.items() if not key.endswith("version")}:
        text = f"The runs of {scenario} are not of one load: {_differences_text(different)} differ."
        yield Finding(FindingKind.OTHER_LOAD, text, names, scenario)


def load_facts(run: MeasuredRun) -> dict[str, Any]:
    """Return all that is known to have shaped the load of `run` (hostile), but not which slice of a log."""
    return _load_circumstances(run) | _load_settings(run)


def find_slice(run: MeasuredRun) -> str | None:
    """Return from which instant of a log on its block plays it, and what runs together with it (hostile).

    Blocks of an experiment may have slices of their own; None where the run is in no block, or has no slice.
    """
    facts = run.directory.facts
    if facts.experiment is None or facts.experiment.block is None:
        return None
    own = facts.load.settings.get(_SLICE) if facts.load else None
    others = [other.log_from for other in facts.together.others] if facts.together else []
    return ", ".join(str(at) for at in (own, *others) if at is not None) or None


def are_slices_alike(baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]) -> bool:
    """Return whether both sides played the same slices of their logs, each as often for as many runs."""
    one, other = (Counter(map(find_slice, side)) for side in (baseline, candidate))
    return all(one[each] * len(candidate) == other[each] * len(baseline) for each in one | other)


def match_slices(
    baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]
) -> tuple[Sequence[MeasuredRun], Sequence[MeasuredRun]]:
    """Return as many runs of each slice of a log on both sides: what is asked differs between slices.

    All runs, where the slices are alike, or none is on both sides.
    """
    common = Counter(map(find_slice, baseline)) & Counter(map(find_slice, candidate))
    if not common or are_slices_alike(baseline, candidate):
        return baseline, candidate

    def first_of_common(runs: Sequence[MeasuredRun]) -> list[MeasuredRun]:
        seen: Counter[str | None] = Counter()
        kept = []
        for run in runs:
            seen[each := find_slice(run)] += 1
            if seen[each] <= common[each]:
                kept.append(run)
        return kept

    return first_of_common(baseline), first_of_common(candidate)


def late_percentiles(phase: RunPhase) -> list[str]:
    """Return the percentiles at which the generator's lateness is too long to measure by.

    It is the distance of both ends of the response time where these are known, else the generator's lag.
    """
    return [name for name in JUDGED if is_late(lateness_ms(phase, name), phase.response_ms.least_ms(name))]


def lateness_ms(phase: RunPhase, name: str) -> float | None:
    """Return how much of a percentile may be the generator's own; None where that is not known."""
    if phase.prompt is None:
        return phase.lag_ms.get(name)
    late, prompt = (each.response_ms.least_ms(name) for each in (phase, phase.prompt))
    return None if late is None or prompt is None else late - prompt


def percentiles_out_of_reach(run: MeasuredRun) -> frozenset[str]:
    """Return the percentiles that the generator's lag does not reach, where only lag was its limit.

    Of the slowest requests, those from such a percentile on, no more than a tenth were sent later than the
    rule allows at it. The p50 is one if the lag's p95 is short beside it.
    """
    if not _sent_by_schedule(run):
        return frozenset()

    def is_reached(name: str, phase: RunPhase) -> bool:
        tenth = (MILLION - PERCENTILES[name]) / 10
        lags_ms = (phase.lag_ms.get(deeper) for deeper in JUDGED if MILLION - PERCENTILES[deeper] <= tenth)
        lag, response = next(lags_ms, None), phase.response_ms.least_ms(name)
        return response is not None and (lag is None or is_late(lag, response))

    phases = [phase for phase in run.phases.values() if phase.lag_ms]
    return frozenset(name for name in JUDGED if not any(is_reached(name, phase) for phase in phases))


def is_lateness_known(run: MeasuredRun) -> bool:
    """Return whether the response times of a run are known at both ends, in spite of its lateness.

    That holds while lateness is all that limited the generator, and while it sent the log's own load: no more
    than 2 % of the requests went out in another 100 ms than that in which they were due. More make bursts
    that the log does not have, and a server that waits for nothing else serves a burst late.
    """
    return _sent_by_schedule(run) and run.traits is not None and run.traits.moved <= MOST_MOVED


def _sent_by_schedule(run: MeasuredRun) -> bool:
    """Return whether nothing but lateness kept the generator from its schedule."""
    facts = run.directory.facts
    otherwise = facts.generator_limited and not (facts.generator_limited_reason or "").startswith(SENT_LATE)
    return facts.loop == "open" and not facts.merged and not otherwise


def are_alike_late(
    baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun], gated: Collection[str]
) -> bool:
    """Return whether both sides may have had the same load, in spite of lateness.

    They had not where, at a gated percentile, every run of one side was later than each of the other, by half
    in the medians.
    """
    for name in {*JUDGED} & {*gated} or {JUDGED[0]}:
        lags = [
            [lag for run in side if (lag := run.phases[WHOLE].lag_ms.get(name)) is not None]
            for side in (baseline, candidate)
        ]
        if all(lags):
            early, late = sorted(lags, key=max)
            if max(early) < min(late) and median(late) > _MUCH_LATER * median(early) + _LIMIT_LAG_MS:
                return False
    return True


def find_lateness(run: MeasuredRun) -> _Found:
    """Yield that the generator limited a run or was late, and by how much."""
    facts = run.directory.facts
    reason = facts.generator_limited_reason or ""
    if reason.startswith(SENT_LATE):  # by how much is said once
        reason = reason.partition("; ")[2]
    remedy = f"{reason[:1].upper()}{reason[1:].rstrip('.')}." if reason else None
    for name, phase in run.phases.items() if facts.loop == "open" else ():
        metric = [each for each in JUDGED if lateness_ms(phase, each) is not None][-1:]
        if phase.prompt is not None and {*metric} & {*late_percentiles(phase)}:
            yield FindingKind.GENERATOR_LATE, describe_lateness(name, phase, metric[0]), None
            return
        if phase.prompt is None and late_percentiles(phase):
            where = "" if name == WHOLE else f" {name} the saturator"
            text = f"was limited by the load generator{where}: its own lag is {_describe_lag(phase)}"
            if run.traits and run.traits.moved > MOST_MOVED:
                moved = percent(run.traits.moved, 2)
                text += f", and {moved} of its requests left in another 100 ms than due"
            yield FindingKind.GENERATOR_LIMITED, f"{text}.", remedy
            return
    if facts.generator_limited and not _sent_by_schedule(run):
        yield FindingKind.GENERATOR_LIMITED, "was limited by the load generator.", remedy


def describe_lateness(name: str, phase: RunPhase, metric: str) -> str:
    """Return both ends of a percentile of a phase whose lateness is known."""
    assert phase.prompt is not None  # noqa: S101 of such phases only
    least, most = (each.response_ms.least_ms(metric) for each in (phase.prompt, phase))
    where = "" if name == WHOLE else f" {name} the saturator"
    return (
        f"was sent late{where}: its {metric} is between {milliseconds(least)} and {milliseconds(most)}, of "
        f"which up to {milliseconds(lateness_ms(phase, metric))} may be the load generator's own."
    )


def _describe_lag(phase: RunPhase) -> str:
    """Return by how much a phase was sent late at its last two late percentiles."""
    return ", ".join(
        f"{milliseconds(phase.lag_ms[each])} of {milliseconds(phase.response_ms.least_ms(each))} at {each}"
        for each in late_percentiles(phase)[-2:]
    )


def is_late(lag_ms: float | None, response_ms: float | None) -> bool:
    """Return whether a generator with this lag limits a response time, both being the same percentile.

    Its lag is then too long both in itself and beside what it measured (docs/run-format.md).
    """
    if lag_ms is None or response_ms is None:
        return False
    return lag_ms > max(_LIMIT_LAG_MS, _LIMIT_FRACTION * response_ms)


def taken_ms_per_s(run: RunDirectory) -> float | None:
    """Return for how many ms of each second the generator may have kept other programs from a processor.

    Nobody can wait for it while it does not run, nor for longer than all waits together. None where the
    server has another machine, or none of this is known. Pure.
    """
    sender = run.facts.sender
    if sender is None or sender.ran_ms_per_s is None or sender.others_wait_ms_per_s is None:
        return None
    return min(sender.ran_ms_per_s, sender.others_wait_ms_per_s)


def find_shared_machine(run: MeasuredRun) -> _Found:
    """Yield that generator and server were on one machine, where that is felt."""
    sender, cpus = run.directory.facts.sender, run.directory.facts.host.cpus
    if sender is None or not sender.beside_server:
        return
    taken_ms, busy = taken_ms_per_s(run.directory), sender.cores_busy or 0
    if (taken_ms or 0) < MUCH_TAKEN_MS and busy < _MUCH_BUSY:
        return
    text = "was sent from the server's own machine"
    text += f" with {counted(cpus, 'core')}" if cpus else ""
    if taken_ms is not None:
        text += (
            f": in each second the generator took {sender.ran_ms_per_s:,.0f} ms of a core, and other "
            f"programs waited {sender.others_wait_ms_per_s:,.0f} ms for one"
        )
    text += f"; the cores were busy for {share(round(1000 * busy), 1000)} of the time" if busy else ""
    text += ". Part of what was measured may be the generator's doing."
    yield FindingKind.SHARED_MACHINE, text, None


def lag_findings(
    baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun], names: tuple[str, str], scenario: str
) -> Iterator[Finding]:
    """Yield at which percentile the generator's lag is not the same on both sides.

    Medians differ by chance wherever the machine does other work now and then, so it also takes that all runs
    of one side were later than each of the other: of four a side, that is 3 in 100 by chance.
    """
    sides = [[run for run in side if run.directory.facts.loop == "open"] for side in (baseline, candidate)]
    if not all(sides):
        return
    for phase in sorted(set.intersection(*(set(run.phases) for side in sides for run in side))):
        phases = [[run.phases[phase] for run in side] for side in sides]
        for name in JUDGED:
            lags = [_known([each.lag_ms.get(name) for each in side]) for side in phases]
            times = [_known([each.response_ms.least_ms(name) for each in side]) for side in phases]
            if not all(lags) or not all(times):
                continue
            (one, other), (first, second) = map(_upper_medians, (lags, times))
            early, late = sorted(lags, key=max)
            much = max(_LAG_APART_MS, _LAG_APART_FRACTION * min(first, second))
            if abs(one - other) > much and max(early) < min(late):
                text = (
                    f"{scenario}: the load generator's own lag at {name} is {milliseconds(one)} ({names[0]}) "
                    f"and {milliseconds(other)} ({names[1]})."
                )
                runs = tuple(run.name for side in sides for run in side)
                yield Finding(FindingKind.LAG_DIFFERS, text, runs, scenario)
                return


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _upper_medians(sides: Sequence[Sequence[float]]) -> list[float]:
    return [sorted(each)[len(each) // 2] for each in sides]


def _load_settings(run: MeasuredRun) -> dict[str, Any]:
    load = run.directory.facts.load
    settings = dict(load.settings) if load else {}
    if settings.get(_SLICE) is not None and find_slice(run):
        settings[_SLICE] = "a slice a block"
    return settings


def _load_circumstances(run: MeasuredRun) -> dict[str, Any]:
    """Return what the lab and older versions say of the load (hostile)."""
    facts = run.directory.facts
    said: dict[str, Any] = {
        "phases": facts.phases.model_dump() if facts.phases else None,
        "saturator": run.saturation.name if run.saturation else "none",
        "loop": facts.loop,
        "speed": facts.speed,
        "warmup_s": facts.warmup_s,
        "seed": facts.seed,
    }
    if facts.together:
        # who else loaded the clone, each with the digest of its load: part of what a run went through
        others = sorted(facts.together.others, key=lambda each: each.member)
        said["together_with"] = ", ".join(f"{each.member} {(each.load or '–')[:_DIGITS]}" for each in others)
        said["begins_s"] = facts.together.begins_s
    if facts.load is None:
        said["logs"] = [
            {"log": log.path.rsplit("/", 1)[-1], "lines": log.lines, "first": log.first, "last": log.last}
            for log in facts.logs
        ]
        settings = facts.scenario_settings.items()
        said["settings"] = {key: value for key, value in settings if key not in _OF_THE_PLACE}
        program = facts.program
        said["program"] = program.name
        said["program_version"] = program.version
    return said


def _differences_text(different: dict[str, tuple[Any, ...]]) -> str:
    named = [
        f"{key} ({' / '.join(dict.fromkeys('–' if value is None else str(value) for value in values))})"
        for key, values in list(different.items())[:_MOST_NAMED]
    ]
    more = f" and {len(different) - len(named)} more" if len(different) > len(named) else ""
    return ", ".join(named) + more
