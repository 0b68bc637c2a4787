"""The command line of a run. Pure, but for where the programs are."""

import sys
from pathlib import Path
from typing import Any

from lab.clones.clone import Target
from lab.experiment.order import PlannedRun
from lab.experiment.replay_options import REPLAY, replay_words
from lab.experiment.scenario_kinds import ScenarioTraits
from lab.experiment.settings import Lab

_ROOT = Path(__file__).parents[2]


def plimsoll() -> list[str]:
    """Return the command `plimsoll` of this very installation."""
    beside = Path(sys.executable).with_name("plimsoll")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "plimsoll"]


def replay_program() -> str:
    """Return the replay binary of this checkout."""
    return str(_ROOT / "bin" / "replay")


def run_command(
    lab: Lab, run: PlannedRun, kind: ScenarioTraits, target: Target, out: str, ours: bool
) -> list[str]:
    """Return the command that does `run`, its run directory below `out`. `ours`: the lab made the clone."""
    choice = lab.scenario(run.scenario)
    duration_s = lab.duration_s(choice) if kind.timed else None
    common = [
        *("--target", target.url),
        *(["--connect-to", target.connect_to] if target.connect_to else []),
        *("--backend", run.backend, "--repeat", str(run.repeat), "--out", out),
    ]
    if choice.scenario == REPLAY:
        return [replay_program(), "run", *replay_words(lab, choice.options, duration_s), *common]
    given = [word for key, value in choice.options.items() for word in _option(key, value)]
    if duration_s is not None:
        given += ["--duration-s", f"{duration_s:g}"]
    if "seed" not in choice.options:
        given += ["--seed", str(lab.seed)]
    leave = ["--i-may-change-this-site"] if ours and kind.changes else []
    return [*plimsoll(), "scenario", choice.scenario, *common, *given, *leave, "--no-progress"]


def _option(key: str, value: Any) -> list[str]:
    flag = "--" + key.replace("_", "-")
    if isinstance(value, bool):
        return [flag] if value else []
    return [flag, ",".join(value) if isinstance(value, list) else str(value)]
