"""When the members of an entry of `scenarios` begin, by the clock of their run. Pure."""

from dataclasses import dataclass

from plimsoll.lab.experiment.settings import Lab, ScenarioChoice
from plimsoll.lab.experiment.together.members import ON_K6, UPGRADES, Member

BEGIN_FILE = "begin"  # in the folder of a member: it waits with its first iteration until this is there


@dataclass(frozen=True)
class Beginning:
    """The second of the run, warm-up included, at which a member begins.

    `with_saturator`: as soon as the saturator works, which takes it a moment; at `at_s` where none does.
    """

    at_s: float
    with_saturator: bool = False

    @property
    def sentence(self) -> str:
        """It as people read it."""
        return f"begins at {self.at_s:g} s" + (", with the saturator" if self.with_saturator else "")


def beginning_of(lab: Lab, choice: ScenarioChoice, member: Member) -> Beginning | None:
    """Return when `member` begins; None where that is with the run.

    What ends by itself is there to be timed under the saturator: begun with the run, it could be over before
    that works, or have its first part in the warm-up, which no figure shows.
    """
    if member.begin_s is not None:
        return Beginning(member.begin_s) if member.begin_s else None
    if not choice.together or member.is_crowd or member.scenario in ON_K6:
        return None
    if not _ends_by_itself(lab, choice, member):
        return None
    return Beginning(lab.warmup_s + lab.phases_of(choice).before_s, with_saturator=True)


def beginnings(lab: Lab, called: str) -> dict[str, float]:
    """Return the second at which each member of entry `called` begins, by its name, if not with the run."""
    choice = lab.scenario(called)
    found = {member.called: beginning_of(lab, choice, member) for member in choice.members}
    return {name: begins.at_s for name, begins in found.items() if begins}


def _ends_by_itself(lab: Lab, choice: ScenarioChoice, member: Member) -> bool:
    return member.scenario in UPGRADES or "iterations" in member.options or lab.duration_s(choice) is None
