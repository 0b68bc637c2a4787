"""How long the members of an entry of `scenarios` are told to load the clone. Pure."""

from plimsoll.lab.experiment.settings import Lab, ScenarioChoice
from plimsoll.lab.experiment.together.members import UPGRADES, Member

BEGIN_APART_S = 20.0  # at most between the first member that begins and the last


def member_duration_s(lab: Lab, choice: ScenarioChoice, member: Member) -> float | None:
    """Return the seconds that `member` is told to last, warm-up included; None where it ends by itself.

    An upgrade is told nothing: it takes what it takes. A crowd begins first, and must not
    end before what is timed within it: it is told to last longer. Where the phases have no end, it is stopped
    when all others have ended.
    """
    duration_s = lab.duration_s(choice)
    if member.scenario in UPGRADES:
        return None
    if not choice.together or not member.is_crowd:
        return duration_s
    return lab.limits.run_s if duration_s is None else duration_s + BEGIN_APART_S
