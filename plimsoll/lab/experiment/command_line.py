"""The command line of a run. Pure, but for where the programs are."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll.common.programs import replay_program
from plimsoll.lab.clones.clone import Target
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.lab.experiment.replay_options import REPLAY, replay_words
from plimsoll.lab.experiment.scenario_kinds import ScenarioTraits, TraitsByScenario
from plimsoll.lab.experiment.settings import Lab
from plimsoll.lab.experiment.together.beginning import BEGIN_FILE, Beginning, beginning_of
from plimsoll.lab.experiment.together.lasting import member_duration_s
from plimsoll.lab.experiment.together.members import Member
from plimsoll.scenarios.running.settings import BEGIN_VARIABLE


def plimsoll() -> list[str]:
    """Return the command `plimsoll` of this very installation."""
    beside = Path(sys.executable).with_name("plimsoll")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "plimsoll"]


@dataclass(frozen=True)
class PlannedLoad:
    """The command of a member of a run, whose run directory is made below `folder`.

    `begins`: when it does, None where that is with the run.
    """

    member: Member
    folder: str
    command: list[str]
    begins: Beginning | None = None

    @property
    def says(self) -> str:
        """What is done, for people."""
        return "run the scenario" + (f", which {self.begins.sentence}" if self.begins else "")


def loads_of(
    lab: Lab, run: PlannedRun, kinds: TraitsByScenario, target: Target, attempt: str, ours: bool
) -> list[PlannedLoad]:
    """Return what loads the clone in `run`, below the folder `attempt`, in the order in which it is started.

    A crowd comes first: what is timed within it begins when it is there.
    """
    choice = lab.scenario(run.scenario)
    loads = []
    for member in sorted(choice.members, key=lambda each: not each.is_crowd):
        folder = f"{attempt}/{member.called}" if choice.together else attempt
        command = run_command(lab, run, member, kinds[choice.called_in_full(member)], target, folder, ours)
        begins = beginning_of(lab, choice, member)
        waits = ["env", f"{BEGIN_VARIABLE}={folder}/{BEGIN_FILE}"] if begins else []
        loads.append(PlannedLoad(member, folder, [*waits, *command], begins))
    return loads


def run_command(
    lab: Lab, run: PlannedRun, member: Member, kind: ScenarioTraits, target: Target, out: str, ours: bool
) -> list[str]:
    """Return the command that does `member`'s part of `run`, its run directory below `out`.

    `kind`: what is to be known of its scenario. `ours`: the lab made the clone.
    """
    duration_s = member_duration_s(lab, lab.scenario(run.scenario), member) if kind.timed else None
    common = [
        *("--target", target.url),
        *(["--connect-to", target.connect_to] if target.connect_to else []),
        *("--backend", run.backend, "--repeat", str(run.repeat), "--out", out),
    ]
    if member.scenario == REPLAY:
        return [replay_program(), "run", *replay_words(lab, member.options, duration_s), *common]
    given = [word for key, value in member.options.items() for word in _option(key, value)]
    if duration_s is not None:
        given += ["--duration-s", f"{duration_s:g}"]
    if "seed" not in member.options:
        given += ["--seed", str(lab.seed)]
    leave = ["--i-may-change-this-site"] if ours and kind.changes else []
    return [*plimsoll(), "scenario", member.scenario, *common, *given, *leave, "--no-progress"]


def _option(key: str, value: Any) -> list[str]:
    flag = "--" + key.replace("_", "-")
    if isinstance(value, bool):
        return [flag] if value else []
    return [flag, ",".join(value) if isinstance(value, list) else str(value)]
