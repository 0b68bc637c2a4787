"""How far the volumes of `precondition` are, and how long they will take. Pure."""

from collections.abc import Sequence

from plimsoll.lab.experiment.precondition_settings import preconditioned_rigs
from plimsoll.lab.experiment.rounds import is_over
from plimsoll.lab.experiment.settings import Lab
from plimsoll.lab.experiment.status.forecast import Plan
from plimsoll.lab.experiment.status.model import PreconditionedVolumes
from plimsoll.lab.fileio.precondition import WINDOW, PreconditionSettings
from plimsoll.rundir.volumes import VolumeRound, last_filling

FILL_BYTES_PER_S = 200e6  # a guess
_ROUND_S = 1.0  # besides the time that is measured


def precondition_s(
    plan: Plan, every: Sequence[VolumeRound], now: tuple[str, float] | None, among: set[str] | None = None
) -> dict[str, float]:
    """Return the seconds until each volume is as it is to be, by rig; of those in `among`, if given.

    `now` is the rig that a filling or round is being done on, and for how long. How large a disk is that
    exists, nobody knows before: then its filling is not counted.
    """
    if (wanted := plan.lab.precondition) is None:
        return {}
    found = {}
    for rig in preconditioned_rigs(plan.lab):
        if among is not None and rig not in among:
            continue
        disk = plan.rigs[rig].settings.disk
        size_bytes = getattr(disk, "size_bytes", 0)
        open_s = now[1] if now and now[0] == rig else 0.0
        found[rig] = _left_s(wanted, last_filling(every, rig), size_bytes, open_s)
    return found


def preconditioned(lab: Lab, every: Sequence[VolumeRound]) -> PreconditionedVolumes | None:
    """Return how far the volumes are; None where none is to be filled."""
    if (wanted := lab.precondition) is None:
        return None
    rounds = {rig: last_filling(every, rig) for rig in preconditioned_rigs(lab)}
    return PreconditionedVolumes(
        volumes=len(rounds),
        done=sum(is_over(each, wanted) for each in rounds.values()),
        steady=sum(bool(each) and each[-1].steady is True for each in rounds.values()),
        rounds={rig: each[-1].round for rig, each in rounds.items() if each},
    )


def _left_s(
    wanted: PreconditionSettings, rounds: Sequence[VolumeRound], size_bytes: int, open_s: float
) -> float:
    if is_over(rounds, wanted):
        return 0.0
    fill_s = 0.0 if rounds else size_bytes * wanted.fill_percent / 100 / FILL_BYTES_PER_S
    round_s = wanted.round_s + _ROUND_S
    count = max(WINDOW - (rounds[-1].round if rounds else 0), 1)
    return fill_s + count * round_s - min(open_s, round_s if rounds else fill_s)
