"""The stretches of a run by its plan: warm-up, before, during, after. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.lab.experiment.factors.variants import Variant
from plimsoll.lab.experiment.order import PlannedRun

OVER = "over"  # the scenario goes on after its phases


@dataclass(frozen=True)
class Stretch:
    """A stretch from `start_s` to `stop_s` of a run, None where it has no planned end."""

    name: str
    start_s: float
    stop_s: float | None


def stretches_of(variant: Variant, run: PlannedRun) -> list[Stretch]:
    """Return the stretches of `run` in order; one is called `load` where nothing saturates the disks."""
    lab = variant.lab
    phases = lab.phases_of(lab.scenario(run.scenario))
    saturated = (variant.settings.saturator or lab.saturator) is not None
    during_s = phases.during_s
    lengths: list[tuple[str, float | None]] = [("warm-up", lab.warmup_s)]
    if saturated:
        lengths += [("before", phases.before_s), ("during", during_s), ("after", phases.after_s)]
    else:
        whole_s = None if during_s is None else phases.before_s + during_s + phases.after_s
        lengths.append(("load", whole_s))
    found: list[Stretch] = []
    at_s = 0.0
    for name, length_s in lengths:
        if length_s is None:
            return [*found, Stretch(name, at_s, None)]
        if length_s > 0:
            found.append(Stretch(name, at_s, at_s + length_s))
            at_s += length_s
    return [*found, Stretch(OVER, at_s, None)]


def stretch_at(stretches: Sequence[Stretch], t_s: float) -> Stretch:
    """Return the one in which second `t_s` is."""
    return next(one for one in stretches if one.stop_s is None or t_s < one.stop_s)
