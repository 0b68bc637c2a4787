"""From measured runs and gates to questions: the values of every gate, and what stands against a verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from plimsoll.analysis.compare.decision import ALONE, Question, level_of
from plimsoll.analysis.compare.gates import (
    LIMITS,
    CensoredError,
    Gate,
    Gates,
    Limit,
    NoFigureError,
    Reading,
    ResponseTime,
)
from plimsoll.analysis.compare.routes import find_slower_routes
from plimsoll.analysis.evidence.answers import Tries, find_odd_answers, measure_finding
from plimsoll.analysis.evidence.checks import (
    ANSWERS,
    findings_of_sides,
    group_runs,
    identity_findings,
    merge_alike,
)
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.generator import (
    MUCH_TAKEN_MS,
    are_alike_late,
    are_slices_alike,
    describe_lateness,
    find_slice,
    is_late,
    late_percentiles,
    lateness_ms,
    percentiles_out_of_reach,
    taken_ms_per_s,
)
from plimsoll.analysis.evidence.run import JUDGED, MeasuredRun, RunPhase
from plimsoll.analysis.evidence.saturator import find_unequal_work, work_share
from plimsoll.analysis.evidence.sides import (
    OpenedSide,
    Order,
    Side,
    find_experiments,
    find_other_spellings,
)
from plimsoll.analysis.statistics.measures import StepFigures
from plimsoll.analysis.statistics.percentiles import MILLION, PERCENTILES
from plimsoll.analysis.statistics.stalls import IN_A_ROW, find_far_worse
from plimsoll.common.errors import gravest_first
from plimsoll.common.units import counted, milliseconds, percent

_MOST_NAMED = 3
_MOST_MISSING = 6
_LEAST_MS = 0.001  # what a record can tell: a time of 0 counts as this against a limit in ms
_CONTROL_DIFFERS = 1.05
# Above, a limit is rather a slip: 110 for 110 %, 5 for 5 %.
_LENIENT: dict[Limit, float] = {
    "at_most_ratio": 2.0,
    "at_most_more": 0.05,
    "at_most_share": 0.05,
    "at_most_share_of_runs": 0.5,
}

_Runs = Sequence[MeasuredRun]
_NO_STEP = StepFigures(None, "", measure=True)


@dataclass(frozen=True)
class GateQuestion:
    """One gate's limit as a question; the unit (hostile) of its figures, empty for a share.

    `stops` are the findings after which it cannot be decided; `findings` are what was found on the way.
    """

    gate: Gate
    question: Question
    unit: str
    stops: tuple[Finding, ...] = ()
    findings: tuple[Finding, ...] = ()

    def judged_by(self, gates: Gates) -> "GateQuestion":
        """Return it with what all gates of the file have in common."""
        return replace(self, question=replace(self.question, bad_runs=gates.bad_runs))


def build_questions(
    baseline: Side, candidate: Side, gates: Gates, orders: dict[str, Order], stops: dict[str, list[Finding]]
) -> list[GateQuestion]:
    """Return a question for every limit of every gate, in their order.

    `stops` has the disqualifying findings of each scenario.
    """
    return [
        _build_question(
            baseline,
            candidate,
            gate,
            limit,
            stops.get(gate.scenario, []),
            orders.get(gate.scenario),
            has_answers=gates.answers,
        ).judged_by(gates)
        for gate in gates.gates
        for limit in LIMITS
        if getattr(gate, limit) is not None
    ]


def value_of(run: MeasuredRun, gate: Gate, cut: RunPhase | None = None, limit: Limit | None = None) -> float:
    """Return a gate's figure of one run, or of its phase that was cut, for one of its limits.

    A time of 0, such as an outage that there was not, keeps any limit in ms, but has no ratio. Raises
    NoFigureError.
    """
    phase = cut or run.phases.get(gate.phase)
    if phase is None:
        raise NoFigureError(f"{run.name} has no phase `{gate.phase}`: nothing kept its disks busy")
    metric = gate.metric_type
    value = metric.value(Reading(run, phase, gate.metric, _describe_phase(gate)))
    unit = metric.unit(phase, gate.metric)
    if gate.at_most_ms is not None and unit != "ms":
        raise NoFigureError(
            f"{run.name}: {metric.subject(gate.metric)} is in {unit}, not in ms, so at_most_ms cannot "
            "limit it"
        )
    alone = limit == "at_most_ms" or (limit is None and gate.at_most_ratio is None)
    if value == 0 and gate.at_most_ms is not None and alone:
        return _LEAST_MS
    if not metric.is_share and not value > 0:
        raise NoFigureError(f"{run.name}: {gate.metric} is {value:g}, which has no ratio to anything")
    return value


def is_censored(run: MeasuredRun, gate: Gate) -> bool:
    """Return whether a gate's figure of a run is a failure's: no more than its lower bound is known."""
    try:
        value_of(run, gate)
    except CensoredError:
        return True
    except NoFigureError:
        pass
    return False


def _describe_phase(gate: Gate) -> str:
    return "in the whole run" if gate.phase == "whole" else f"{gate.phase} the saturator"


def _build_question(
    baseline: Side,
    candidate: Side,
    gate: Gate,
    limit: Limit,
    found_bad: list[Finding],
    order: Order | None,
    *,
    has_answers: bool,
) -> GateQuestion:
    runs = baseline.of(gate.scenario), candidate.of(gate.scenario)
    values, missing, notes = _read_values(runs, gate, limit)
    in_time = without_lateness(runs[0]), without_lateness(runs[1])
    prompt = None if missing else _read_values(in_time, gate, limit)[0]
    stops = tuple(each for each in found_bad if each.bars(gate.metric))
    problems = [*sentences([each.sentence for each in stops]), *sentences(missing)]
    ends = [values, *([prompt] if prompt and prompt != values and not problems else [])]
    pairs, blocks = (order.pairs, order.blocks) if order and not problems else (None, None)
    if pairs is not None:
        ends = [([one[at] for at, _ in pairs], [other[at] for _, at in pairs]) for one, other in ends]
    if blocks is not None:
        ends = [([one[at] for at in blocks[0]], [other[at] for at in blocks[1]]) for one, other in ends]
    unit = _find_unit(gate, [*runs[0], *runs[1]])
    doubts = list(_find_stalls(runs, gate, (values[0], values[1]), unit))
    failures, bars = _find_failing((baseline.name, candidate.name), runs, gate)
    found_out = [*doubts, *([failures] if failures else [])]
    doubts += [failures] if failures and bars else []
    slower = find_slower_routes(runs, gate) if limit == "at_most_ratio" and _is_kept(values, gate) else None
    if slower:
        found_out.append(slower)
        doubts.append(slower)
    contention, excuses = _find_contention(
        (baseline.name, candidate.name), runs, gate, unit, alone=limit in ALONE
    )
    if contention:
        found_out.append(contention)
        doubts += [] if excuses else [contention]
    odd, of_candidate = _find_odd_answers((baseline.name, candidate.name), runs, gate, alone=limit in ALONE)
    if odd:
        found_out.append(odd)
        doubts += [odd] if of_candidate and has_answers else []
    unequal, is_less = _find_unequal_work(
        (baseline.name, candidate.name), runs, gate, unit, alone=limit in ALONE
    )
    question = Question(
        limit=limit,
        at_most=getattr(gate, limit),
        baseline=ends[0][0],
        candidate=ends[0][1],
        prompt=ends[1] if len(ends) > 1 else None,
        is_paired=pairs is not None,
        in_blocks=blocks is not None,
        blocked=problems,
        notes=notes,
        doubts=[each.sentence for each in doubts] + (unequal if is_less else []),
        excuses=([contention.sentence] if contention and excuses else [])
        + ([odd.sentence] if odd and not of_candidate and has_answers else [])
        + ([] if is_less else unequal),
        runs_of=gate.scenario,
    )
    return GateQuestion(gate, question, unit, stops, tuple(found_out))


def _read_values(
    runs: tuple[_Runs, _Runs], gate: Gate, limit: Limit
) -> tuple[tuple[list[float], list[float]], list[str], tuple[str, ...]]:
    """Return both sides' figures, why those that are missing are, and what to say of how they were cut."""
    values: tuple[list[float], list[float]] = ([], [])
    missing: list[str] = []
    cut, notes = cut_alike([*runs[0], *runs[1]], gate, limit)
    for side, found in zip(runs, values, strict=True):
        for run in side:
            try:
                found.append(value_of(run, gate, cut.get(id(run)), limit))
            except NoFigureError as error:
                missing.append(str(error))
    return values, missing, notes


def without_lateness(runs: _Runs) -> _Runs:
    """Return the runs as if their generator had sent every request when it was due."""
    return [
        replace(run, phases={name: phase.prompt or phase for name, phase in run.phases.items()})
        for run in runs
    ]


def _is_kept(values: Sequence[Sequence[float]], gate: Gate) -> bool:
    """Return whether the runs keep the gate's ratio as measured, however sure that is."""
    baseline, candidate = (level_of(side, logs=True) for side in values)
    if baseline is None or candidate is None or gate.at_most_ratio is None:
        return False
    return candidate <= gate.at_most_ratio * baseline


def cut_alike(
    runs: Sequence[MeasuredRun], gate: Gate, limit: Limit
) -> tuple[dict[int, RunPhase], tuple[str, ...]]:
    """Return the phases of all runs, those of a slice cut alike for a ratio, and what to say of it."""
    phases = [(run, phase) for run in runs if (phase := run.phases.get(gate.phase))]
    if limit != "at_most_ratio" or not phases:
        return {}, ()
    cut: dict[int, RunPhase] = {}
    for part in dict.fromkeys(find_slice(run) for run, _ in phases):
        mine = [(run, phase) for run, phase in phases if find_slice(run) == part]
        alike = gate.metric_type.cut_alike([phase for _, phase in mine], gate.metric)
        cut |= {id(run): each for (run, _), each in zip(mine, alike, strict=True)}
    counts = [phase.requests for _, phase in phases]
    note = (
        f"Compared at {min(each.requests for each in cut.values()):,} requests of each run, of the "
        f"{min(counts):,} to {max(counts):,} that they have."
    )
    fewer = [cut[id(run)].requests for run, _ in phases] != counts
    return cut, (note,) if fewer else ()


def _find_unit(gate: Gate, runs: Sequence[MeasuredRun]) -> str:
    phases = [phase for run in runs if (phase := run.phases.get(gate.phase))]
    units = (gate.metric_type.unit(phase, gate.metric) for phase in phases)
    usual = "" if gate.metric_type.is_share else "ms"
    return next((unit for unit in units if unit is not None), usual)


def sentences(problems: Sequence[str]) -> Iterator[str]:
    """Yield the first of `problems`, and how many more there are."""
    for problem in problems[:_MOST_NAMED]:
        yield f"{problem.rstrip('.')}."
    if len(problems) > _MOST_NAMED:
        yield f"And {counted(len(problems) - _MOST_NAMED, 'more problem')} of this kind."


def _find_stalls(
    runs: tuple[_Runs, _Runs], gate: Gate, values: tuple[Sequence[float], Sequence[float]], unit: str
) -> Iterator[Finding]:
    """Yield which of the candidate's runs stalled, by the gate's own figure or by their slowest row.

    Both are compared from run to run: the figure, as far as it is a time, and of response times also the
    slowest ten requests in a row, which a percentile of a long run looks past.
    """
    if gate.metric_type.is_share or unit != "ms":
        return
    if all(len(side) == len(found) for side, found in zip(runs, values, strict=True)):
        yield from _find_stalled(runs, values, gate, gate.metric_type.label(gate.metric))
    if isinstance(gate.metric_type, ResponseTime):
        worst = tuple([ms for run in side if (ms := _worst_ms(run, gate)) is not None] for side in runs)
        if [len(side) for side in worst] == [len(side) for side in runs]:
            what = f"median of the slowest {IN_A_ROW} requests in a row"
            yield from _find_stalled(runs, (worst[0], worst[1]), gate, what)


def _find_contention(
    sides: tuple[str, str], runs: tuple[_Runs, _Runs], gate: Gate, unit: str, *, alone: bool
) -> tuple[Finding | None, bool]:
    """Return that one side may be slower by the generator's doing, and whether that is the candidate.

    The generator takes processor time from a server on its machine. So where the candidate had to wait for it
    more, its FAIL may be the generator's doing, and where the baseline had to, the candidate's PASS.
    What is held to a limit `alone` is not held against the baseline.
    """
    if gate.metric_type.is_share or unit != "ms":
        return None, False
    taken_ms = [[ms for run in each if (ms := taken_ms_per_s(run.directory)) is not None] for each in runs]
    baseline_ms, candidate_ms = (median(each) if each else None for each in taken_ms)
    baseline_ms = 0 if alone else baseline_ms
    if baseline_ms is None or candidate_ms is None or abs(candidate_ms - baseline_ms) < MUCH_TAKEN_MS:
        return None, False
    slower = candidate_ms > baseline_ms
    text = (
        f"{sides[slower]} may be slower by the load generator's doing: on the machine that they share, it "
        f"kept other programs from a processor for {max(baseline_ms, candidate_ms):,.0f} ms of each second"
        + ("." if alone else f", and for {min(baseline_ms, candidate_ms):,.0f} ms on {sides[not slower]}.")
    )
    names = tuple(run.name for run in runs[slower])
    return Finding(FindingKind.SHARED_MACHINE, text, names, gate.scenario), slower


def _find_odd_answers(
    sides: tuple[str, str], runs: tuple[_Runs, _Runs], gate: Gate, *, alone: bool
) -> tuple[Finding | None, bool]:
    """Return that a side's figure may come of other answers than the log's, and if the candidate's does."""
    if not isinstance(gate.metric_type, ResponseTime):
        return None, False
    passed_over = 1 - PERCENTILES.get(gate.metric, PERCENTILES["p50"]) / MILLION
    found, of_candidate = find_odd_answers(runs, sides, gate.scenario, passed_over)
    return (found, of_candidate) if of_candidate or not alone else (None, False)


def _find_unequal_work(
    sides: tuple[str, str], runs: tuple[_Runs, _Runs], gate: Gate, unit: str, *, alone: bool
) -> tuple[list[str], bool]:
    """Return what to say of saturators that did not work alike, and whether the candidate's did less.

    Disks with less to do beside the site serve it sooner: that may be a PASS of the candidate's, or a FAIL
    beside the baseline's. A candidate that is slower with less, or as fast with more, is so by itself.
    """
    if alone or gate.metric_type.is_share or unit != "ms" or gate.phase in ("before", "after"):
        return [], False
    found = find_unequal_work(runs, sides, gate.scenario)
    return ([found.sentence] if found else []), (work_share(*runs) or 1) < 1


def _find_failing(
    sides: tuple[str, str], runs: tuple[_Runs, _Runs], gate: Gate
) -> tuple[Finding | None, bool]:
    """Return what is to be known of failures of the gate's measure, and whether they allow no PASS.

    They allow none where the candidate failed: its median looks past failures that are fewer than half.
    """
    tries = []
    for side, each in zip(sides, runs, strict=True):
        steps = [_find_step(run, gate) for run in each]
        tries.append(
            Tries(side, sum(step.tries for step in steps), sum(len(step.failed_ms) for step in steps))
        )
    names = tuple(run.name for each in runs for run in each if _find_step(run, gate).failed_ms)
    found = measure_finding(
        gate.scenario, gate.metric_type.subject(gate.metric), _describe_phase(gate), tries, names
    )
    return found, found is not None and tries[1].is_many


def _find_step(run: MeasuredRun, gate: Gate) -> StepFigures:
    phase = run.phases.get(gate.phase)
    step = phase.steps.get(gate.metric_type.subject(gate.metric)) if phase else None
    return step if step and step.measure else _NO_STEP


def _find_stalled(
    runs: tuple[_Runs, _Runs], values: tuple[Sequence[float], Sequence[float]], gate: Gate, what: str
) -> Iterator[Finding]:
    baseline_ms, candidate_ms = values
    which = find_far_worse(baseline_ms, candidate_ms)
    if not which:
        return
    names = tuple(runs[1][at].name for at in which)
    worst = max(which, key=lambda at: candidate_ms[at])
    yield Finding(
        FindingKind.RARE_STALLS,
        f"{len(which)} of the candidate's {len(candidate_ms)} runs stalled: in {runs[1][worst].name} the "
        f"{what} is {milliseconds(candidate_ms[worst])}, and {milliseconds(max(baseline_ms))} at most in the "
        f"baseline's runs, {gate.phase if gate.phase != 'whole' else 'over the whole run'}.",
        runs=names,
        scenario=gate.scenario,
    )


def _worst_ms(run: MeasuredRun, gate: Gate) -> float | None:
    phase = run.phases.get(gate.phase)
    return None if phase is None or phase.kept is None else phase.kept.worst_ms


def find_comparison_findings(
    opened: tuple[OpenedSide, OpenedSide], sides: tuple[Side, Side], gates: Gates, orders: dict[str, Order]
) -> list[Finding]:
    """Return all findings, each once, the gravest first."""
    judged = list(dict.fromkeys(gate.scenario for gate in gates.gates))
    found: list[Finding] = []
    for scenario in judged:
        found += _find_of_scenario(sides, gates, orders.get(scenario), scenario)
    found += identity_findings([run for side in sides for run in side.runs])
    found += _find_controls_apart(*sides)
    found += _find_without_gate(sides, judged)
    found += _find_lenient(gates)
    found += _find_circumstances(opened, sides)
    return merge_alike(gravest_first(dict.fromkeys(found)), group_runs(sides))


def _find_of_scenario(
    sides: tuple[Side, Side], gates: Gates, order: Order | None, scenario: str
) -> Iterator[Finding]:
    baseline, candidate = (side.of(scenario) for side in sides)
    for each in dict.fromkeys([*sides[0].unreadable, *sides[1].unreadable]):
        if each.scenario in (None, scenario):
            text = f"A run cannot be read, and leaving it out could favour one side: {each.why.rstrip('.')}."
            yield Finding(FindingKind.UNREADABLE, text, (), scenario)
    names = (sides[0].name, sides[1].name)
    gated = {gate.metric for gate in gates.gates if gate.scenario == scenario}
    found = [
        finding
        for finding in findings_of_sides(baseline, candidate, names)
        if finding.kind is not FindingKind.GENERATOR_LATE
    ]
    found += _find_late(baseline, candidate, gates)
    for finding in found:
        idle = (finding.kind in ANSWERS and not gates.answers) or gated <= finding.spares
        yield replace(finding, demoted=True) if idle else finding
    yield from _find_censored(sides, gates, scenario)
    yield from _find_few_runs(sides, gates, scenario, order)
    yield from _find_unequal_slices(sides, scenario, order)
    if order is not None:
        for kind, text in order.findings:
            yield Finding(kind, text, (), scenario)
        if gates.interleaved and not order.interleaved:
            text = "The sides' runs do not alternate in time, which the gates ask for."
            yield Finding(FindingKind.NOT_INTERLEAVED, text, (), scenario)


def _find_late(baseline: _Runs, candidate: _Runs, gates: Gates) -> Iterator[Finding]:
    """Yield which runs were late by much of what a gate limits, or all, where one side was later."""
    runs = [*baseline, *candidate]
    mine = [each for each in gates.gates if runs and each.scenario == runs[0].scenario]
    is_one_load = are_alike_late(baseline, candidate, {gate.metric for gate in mine})
    for run in runs:
        known = {name: phase for name, phase in run.phases.items() if phase.prompt is not None}
        if not is_one_load and any(map(late_percentiles, known.values())):
            text = f"{run.name} was sent late, and the runs of one side later than those of the other."
            spares = percentiles_out_of_reach(run)
            yield Finding(FindingKind.GENERATOR_LIMITED, text, (run.name,), run.scenario, spares=spares)
            continue
        for gate in (each for each in mine if each.metric in JUDGED and each.phase in known):
            phase, is_ratio = known[gate.phase], gate.at_most_ratio is not None
            limited_ms = phase.response_ms.least_ms(gate.metric) if is_ratio else gate.at_most_ms
            if is_late(lateness_ms(phase, gate.metric), limited_ms):
                text = f"{run.name} {describe_lateness(gate.phase, phase, gate.metric)}"
                yield Finding(FindingKind.GENERATOR_LATE, text, (run.name,), run.scenario)


def _find_censored(sides: tuple[Side, Side], gates: Gates, scenario: str) -> Iterator[Finding]:
    """Yield which gates have runs in which so many requests failed that the figure is a failure's."""
    for gate in (gate for gate in gates.gates if gate.scenario == scenario):
        failing = [[run.name for run in side.of(scenario) if is_censored(run, gate)] for side in sides]
        if any(failing):
            baseline, candidate = failing
            where = sides[1 if candidate else 0].name
            text = (
                f"{gate.name}: so many requests failed on {where} that the figure is a failure's: it is at "
                "least the time-out, and has no ratio."
            )
            runs, worse = tuple(candidate or baseline), bool(candidate) and not baseline
            yield Finding(FindingKind.CENSORED, text, runs, scenario, worse=worse)


def _find_few_runs(
    sides: tuple[Side, Side], gates: Gates, scenario: str, order: Order | None
) -> Iterator[Finding]:
    judged = order and order.blocks
    counts = [len(places) for places in judged] if judged else [len(side.of(scenario)) for side in sides]
    for side, runs in zip(sides, counts, strict=True):
        if not runs:
            has = ", ".join(side.scenarios) or "nothing"
            text = f"{scenario} did not run on {side.name} (it ran {has})."
            yield Finding(FindingKind.NOT_RUN, text, (), scenario)
        elif runs < gates.least_runs:
            has, least = counted(runs, "run"), gates.least_runs
            text = f"{side.name} has {has} of {scenario}, and a verdict takes {least}: {least - runs} more."
            yield Finding(FindingKind.FEW_RUNS, text, (), scenario)
    baseline, candidate = sides
    if counts[0] != counts[1] and baseline.experiment and baseline.experiment == candidate.experiment:
        text = (
            f"The experiment has {counts[0]} runs of {scenario} on {baseline.name} and {counts[1]} on "
            f"{candidate.name}; what is missing may be what went wrong."
        )
        yield Finding(FindingKind.UNEQUAL_RUNS, text, (), scenario)


def _find_unequal_slices(sides: tuple[Side, Side], scenario: str, order: Order | None) -> Iterator[Finding]:
    """Yield that the sides played other slices of the log, or not equally often, without whole blocks.

    In an experiment that lacks runs of one side, that is what is to be said of it.
    """
    baseline, candidate = (side.of(scenario) for side in sides)
    lacks = len(baseline) != len(candidate) and sides[0].experiment == sides[1].experiment is not None
    if lacks or not baseline or not candidate or (order and order.blocks):
        return
    if not are_slices_alike(baseline, candidate):
        text = f"{scenario}: the sides played other slices of the log, or not equally often."
        runs = tuple(run.name for run in (*baseline, *candidate))
        yield Finding(FindingKind.OTHER_LOAD, text, runs, scenario)


def _find_controls_apart(baseline: Side, candidate: Side) -> Iterator[Finding]:
    for scenario in sorted(baseline.controls | candidate.controls):
        first, second = (
            level_of([ms for run in side.of(scenario) if (ms := run.service_p50_ms)], logs=True)
            for side in (baseline, candidate)
        )
        if not first or not second or max(first, second) <= _CONTROL_DIFFERS * min(first, second):
            continue
        slower = percent(max(first, second) / min(first, second) - 1, 2)
        text = (
            f"The control experiment differs: the {scenario} takes {milliseconds(first)} on {baseline.name} "
            f"and {milliseconds(second)} on {candidate.name}, {slower} apart. It should not depend on the "
            "storage: network or processors differ too, or the file is read from the disks."
        )
        yield Finding(FindingKind.CONTROL_DIFFERS, text, (), scenario)


def _find_without_gate(sides: tuple[Side, Side], judged: Sequence[str]) -> Iterator[Finding]:
    controls = {name for side in sides for name in side.controls}
    ran = dict.fromkeys(name for side in sides for name in side.scenarios)
    if left := [name for name in ran if name not in judged and name not in controls]:
        yield Finding(FindingKind.NO_GATE, f"No gate looks at {', '.join(left)}.")


def _find_lenient(gates: Gates) -> Iterator[Finding]:
    """Yield which gates keep hardly anything out, mostly as percent were given for a ratio or share."""
    found = [
        f"{gate.name}, {limit}: {given:g}"
        for gate in gates.gates
        for limit, most in _LENIENT.items()
        if (given := getattr(gate, limit)) is not None and given > most
    ]
    if gates.bad_runs > _LENIENT["at_most_share_of_runs"]:
        found.append(f"bad_runs: {gates.bad_runs:g}")
    if found:
        more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        text = f"Almost everything keeps these limits: {'; '.join(found[:_MOST_NAMED])}{more}."
        yield Finding(FindingKind.LENIENT_GATE, text)


def _find_circumstances(opened: tuple[OpenedSide, OpenedSide], sides: tuple[Side, Side]) -> Iterator[Finding]:
    """Yield that runs are not here, or are called otherwise, and that a side is emulated."""
    for part in find_experiments(opened):
        if missing := part.missing:
            which = ", ".join(map(str, missing[:_MOST_MISSING]))
            more = f" and {len(missing) - _MOST_MISSING} more" if len(missing) > _MOST_MISSING else ""
            text = (
                f"{' and '.join(map(str, part.paths))}: the experiment {part.name} has "
                f"{part.planned - len(missing)} of its {part.planned} runs here; it lacks {which}{more}. "
                "To look early, to stop when it pleases, or to leave runs out, makes false verdicts likelier."
            )
            yield Finding(FindingKind.UNFINISHED, text)
    for left_out, backend, side in find_other_spellings(opened):
        text = (
            f"{', '.join(left_out[:_MOST_NAMED])}: of “{backend}”, which is almost “{side}”, and left out: "
            "that may make a side look better than it is."
        )
        yield Finding(FindingKind.OTHER_SPELLING, text, tuple(left_out))
    for each in sides:
        if what := next((run.emulated for run in each.runs if run.emulated), None):
            text = f"{each.name} is emulated ({what}): verdicts are on that, not on what it imitates."
            yield Finding(FindingKind.EMULATED, text)
