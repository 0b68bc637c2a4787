"""What the lab has to know of a scenario; asked in a process of its own: Locust patches the one it is in."""

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from analysis.errors import SettingsError
from lab.experiment.replaying import REPLAY, ReplayOptions
from lab.experiment.settings import Lab, ScenarioChoice

_NOWHERE = "http://127.0.0.1"  # stands for the target, which is the clone's
_OURS = {"target", "connect_to", "out", "backend", "repeat", "i_may_change_this_site", "duration_s"}


@dataclass(frozen=True)
class Kind:
    """Whether a scenario changes the site, and whether it can be told how long to last."""

    changes: bool
    timed: bool


Kinds = dict[str, Kind]  # by what scenarios are called in lab.yml


def kinds_of(lab: Lab, path: str) -> Kinds:
    """Return what is to be known of the scenarios of `lab`, all of whose options are right.

    `path` is the file's, for messages. Raises SettingsError with all problems.
    """
    described = json.loads(_ask(["--describe"]))
    kinds, problems = Kinds(), []
    for i, choice in enumerate(lab.scenarios):
        at = f"{path}: scenarios.{i}.options"
        if choice.scenario == REPLAY:
            kinds[choice.called] = Kind(changes=False, timed=True)
            problems += [f"{at}.{what}" for what in _replay_problems(choice)]
        elif choice.scenario not in described:
            there = ", ".join([REPLAY, *described])
            problems.append(f"{path}: scenarios.{i}.scenario: {choice.scenario} is none; there are {there}")
        else:
            about = described[choice.scenario]
            kind = Kind(changes=about["changes"] is not None, timed="duration_s" in about["keys"])
            kinds[choice.called] = kind
            problems += [
                f"{at}.{what}" for what in _problems(choice, lab.duration_s(choice) if kind.timed else None)
            ]
    if problems:
        raise SettingsError("\n".join(problems))
    return kinds


def _problems(choice: ScenarioChoice, duration_s: float | None) -> list[str]:
    given = {key: value for key, value in choice.options.items() if key not in _OURS}
    ours = [f"{key}: is the lab's to say; leave it out" for key in choice.options if key in _OURS]
    given |= {"target": _NOWHERE} | ({} if duration_s is None else {"duration_s": duration_s})
    told: list[dict[str, str]] = json.loads(_ask([choice.scenario], json.dumps(given)))
    return ours + [f"{one['key']}: {one['problem']}" for one in told]


def _replay_problems(choice: ScenarioChoice) -> list[str]:
    try:
        ReplayOptions.model_validate(choice.options)
    except ValidationError as error:
        return [_told(one) for one in error.errors(include_url=False, include_input=False)]
    return []


def _told(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "options"
    what = {"missing": "is missing", "extra_forbidden": "is no option of a replay"}.get(error["type"])
    return f"{where}: {what or str(error['msg']).removeprefix('Value error, ')}"


def _ask(words: list[str], said: str = "") -> str:
    done = subprocess.run(  # noqa: S603 our own module, by a list of words
        [sys.executable, "-m", "scenarios.check", *words],
        input=said,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode not in (0, 1) or not done.stdout:
        raise SettingsError(f"scenarios cannot be checked: {done.stderr.strip()[-500:]}")
    return done.stdout
