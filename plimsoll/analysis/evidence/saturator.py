"""Whether saturators kept the disks busy through their phase, and as busy on both sides. Pure."""

from collections.abc import Iterator, Sequence
from statistics import median

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.common.units import counted, significant

_BUSY = 0.75  # of its phase: below, a quarter of what counts as under load was not
_FAR = 2.0  # times the other side's work each second

Found = Iterator[tuple[FindingKind, str, str | None]]


def check_saturator(run: MeasuredRun) -> Found:
    """Yield that a run's saturator gave up, or had to begin again, as the rest of a sentence."""
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


def saturator_findings(
    sides: Sequence[Sequence[MeasuredRun]], names: Sequence[str], scenario: str
) -> Iterator[Finding]:
    """Yield which runs of a scenario had idle disks, and whether the sides' disks had other work to do.

    A saturator's phase is what its run says, else as much of the run as that of the one that began first and
    of the one that ended last. It worked until its last byte; where it pauses again and again, as one does
    that works at an interval, until its stop. Below three quarters of the phase the disks were idle.
    """
    runs = [run for side in sides for run in side if run.saturation]
    first_s = min((_start_s(run) for run in runs), default=0.0)
    rest_s = min((_rest_s(run) for run in runs), default=0.0)
    for run in runs:
        phases = run.directory.facts.phases
        planned_s = phases.during_s if phases and phases.during_s is not None else None
        phase_s = run.last_due_ns / 1e9 - first_s - rest_s if planned_s is None else planned_s
        worked_s = _worked_s(run)
        if worked_s < _BUSY * phase_s:
            text = (
                f"{run.name} had idle disks: its saturator worked for {significant(worked_s, 2)} of the "
                f"{significant(phase_s, 2)} s of its phase."
            )
            yield Finding(FindingKind.SATURATOR_IDLE, text, (run.name,), scenario)
    for side, name in zip(sides[1:], names[1:], strict=True):
        if finding := find_unequal_work((sides[0], side), (names[0], name), scenario):
            yield finding


def find_unequal_work(
    sides: tuple[Sequence[MeasuredRun], Sequence[MeasuredRun]], names: tuple[str, str], scenario: str
) -> Finding | None:
    """Return that the saturator of one side moved less than half of what the other's did each second."""
    share = work_share(*sides)
    if share is None or 1 / _FAR <= share <= _FAR:
        return None
    text = (
        f"{scenario}: the saturator moved {significant(share, 2)} times as many bytes a second on {names[1]} "
        f"as on {names[0]}, so that the disks had other work beside the site's."
    )
    runs = tuple(run.name for runs in sides for run in runs)
    return Finding(FindingKind.SATURATOR_DIFFERS, text, runs, scenario)


def work_share(baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]) -> float | None:
    """Return how many times as much the candidate's saturator moved each second as the baseline's.

    Each is the median of its runs; None where one of them is not known, or 0.
    """
    rates = [
        [rate for run in side if (rate := _bytes_per_s(run)) is not None] for side in (baseline, candidate)
    ]
    first, second = (median(each) if each else 0.0 for each in rates)
    return second / first if first and second else None


def _bytes_per_s(run: MeasuredRun) -> float | None:
    """Return what a saturator moved in each second that it worked; None if that is not known."""
    busy, worked_s = run.saturation, _worked_s(run)
    if busy is None or not worked_s:
        return None
    instants = [busy.start_ns, *(t_ns for t_ns, _ in busy.bytes_per_s)]
    moved = sum(
        rate * (t_ns - before_ns) / 1e9
        for before_ns, (t_ns, rate) in zip(instants, busy.bytes_per_s, strict=False)
    )
    return moved / worked_s


def _start_s(run: MeasuredRun) -> float:
    return run.saturation.start_ns / 1e9 if run.saturation else 0.0


def _stop_ns(run: MeasuredRun) -> int:
    stop_ns = run.saturation.stop_ns if run.saturation else None
    return run.last_due_ns if stop_ns is None else stop_ns


def _rest_s(run: MeasuredRun) -> float:
    """Return how long requests were due after it had stopped."""
    return max(run.last_due_ns - _stop_ns(run), 0) / 1e9


def _worked_s(run: MeasuredRun) -> float:
    busy = run.saturation
    if busy is None:
        return 0.0
    stop_ns = _stop_ns(run)
    if busy.bytes_per_s:
        moving = [t_ns for t_ns, rate in busy.bytes_per_s if rate > 0]
        pauses = [after - before for before, after in zip([busy.start_ns, *moving], moving, strict=False)]
        last_ns = moving[-1] if moving else busy.start_ns
        if stop_ns - last_ns > 2 * max(pauses, default=0):
            stop_ns = last_ns
    return max(stop_ns - busy.start_ns, 0) / 1e9
