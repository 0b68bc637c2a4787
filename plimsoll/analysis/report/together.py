"""What the report says of a run that others ran together with: who, and when they were not there."""

from collections.abc import Iterator, Sequence

from plimsoll.analysis.report.cautions import Caution
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.common.errors import Severity
from plimsoll.common.units import seconds
from plimsoll.rundir.runfacts import Companion, Together

_SLACK_S = 1.0


def together_of(together: Together | None) -> str | None:
    """Return the others, and from when to when they were there by this run's own clock (hostile)."""
    if together is None:
        return None
    ended = ["this one was stopped when the others had ended"] if together.stopped else []
    return "; ".join([*_began(together), *map(_shown, together.others), *ended])


def company_of(runs: Sequence[MeasuredRun]) -> str:
    """Return what else loaded the clone, in a sentence (hostile); empty where nothing did."""
    known = [together for run in runs if (together := run.directory.facts.together) and together.others]
    others = dict.fromkeys(together.company for together in known)
    if not others:
        return ""
    begins = dict.fromkeys(f"at {each.begins_s:g} s" for each in known if each.begins_s is not None)
    when = f" It was to begin {' or '.join(begins)} of the run." if begins else ""
    return f"At the same time on the same clone: {'; or '.join(others)}.{when}"


def together_cautions(run: MeasuredRun) -> list[Caution]:
    """Return when a run was without what it was to be together with."""
    together = run.directory.facts.together
    return list(_cautions(run, together)) if together else []


def _cautions(run: MeasuredRun, together: Together) -> Iterator[Caution]:
    crowd = [(each, each.to_s) for each in together.others if each.crowd and each.to_s is not None]
    if crowd:
        last, left_s = max(crowd, key=lambda each: each[1])
        if run.elapsed_s > left_s + _SLACK_S:
            text = (
                f"It went on for {seconds(run.elapsed_s - left_s)} after {last.member}, its crowd, had left, "
                "and was without it then. Make its phases longer, or set during_s: null."
            )
            yield Caution(Severity.WARN, text)
    busy = run.saturation
    if busy is None:
        return
    if run.elapsed_s < busy.start_ns / 1e9:
        text = (
            f"It had ended before {busy.name} began, so nothing of it met that: give it a later begin_s, or "
            "make before_s shorter."
        )
        yield Caution(Severity.WARN, text)
    elif busy.stop_ns is not None and run.elapsed_s + _SLACK_S < busy.stop_ns / 1e9:
        early = seconds(busy.stop_ns / 1e9 - run.elapsed_s)
        text = f"It ended by itself {early} before {busy.name} did: there was no more for it to do."
        yield Caution(Severity.NOTE, text)


def _began(together: Together) -> list[str]:
    return [] if together.began_s is None else [f"this one began at {together.began_s:.1f} s"]


def _shown(other: Companion) -> str:
    what = f"{other.member}{' (the crowd)' if other.crowd else ''}{f', {other.speed}' if other.speed else ''}"
    if other.from_s is None or other.to_s is None:
        return what
    return f"{what}, from {other.from_s:.1f} to {other.to_s:.1f} s"
