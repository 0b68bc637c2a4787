"""The traits of scenarios, read in a process of their own: Locust patches the process that it is in."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pydantic import ValidationError

from lab.experiment.replay_options import REPLAY, ReplayOptions
from lab.experiment.settings import Lab, ScenarioChoice
from lab.experiment.variants import variants
from plimsoll.common.errors import SettingsError
from plimsoll.common.hints import did_you_mean
from plimsoll.common.problems import problems_of

_NOWHERE = "http://127.0.0.1"  # a stand-in for the target, which is the clone's
_OURS = {"target", "connect_to", "out", "backend", "repeat", "i_may_change_this_site", "duration_s"}


@dataclass(frozen=True)
class ScenarioTraits:
    """The traits of a scenario: `changes` the site, is `timed` (takes `duration_s`)."""

    changes: bool
    timed: bool


TraitsByScenario = dict[str, ScenarioTraits]  # by the scenarios' names in lab.yml


def traits_of(lab: Lab, path: str) -> TraitsByScenario:
    """Return the traits of the scenarios of `lab`, all of whose options are right.

    `path` is the file's, for messages. Raises SettingsError with all problems.
    """
    described = json.loads(_ask("--describe"))
    kinds, problems = TraitsByScenario(), []
    for i, choice, lasts_s in _choices(lab):
        at = f"{path}: scenarios.{i}.options"
        if choice.scenario == REPLAY:
            kinds[choice.called] = ScenarioTraits(changes=False, timed=True)
            problems += [f"{at}.{what}" for what in _replay_problems(choice)]
        elif choice.scenario not in described:
            there = ", ".join([REPLAY, *described])
            problems.append(
                f"{path}: scenarios.{i}.scenario: there is no scenario {choice.scenario}; choose one of "
                f"{there}{did_you_mean(choice.scenario, [REPLAY, *described])}"
            )
        else:
            about = described[choice.scenario]
            kind = ScenarioTraits(changes=about["changes"] is not None, timed="duration_s" in about["keys"])
            kinds[choice.called] = kind
            problems += [f"{at}.{what}" for what in _problems(choice, lasts_s if kind.timed else None)]
    if problems:
        raise SettingsError("\n".join(dict.fromkeys(problems)))
    return kinds


def _choices(lab: Lab) -> Iterator[tuple[int, ScenarioChoice, float | None]]:
    """Yield each scenario as any variant has it, once: its number, itself, and its length in seconds."""
    seen: list[tuple[int, ScenarioChoice, float | None]] = []
    for variant in variants(lab):
        for i, choice in enumerate(variant.lab.scenarios):
            found = (i, choice, variant.lab.duration_s(choice))
            if found not in seen:
                seen.append(found)
                yield found


def _problems(choice: ScenarioChoice, duration_s: float | None) -> list[str]:
    given = {key: value for key, value in choice.options.items() if key not in _OURS}
    ours = [f"{key}: the lab sets this; leave it out" for key in choice.options if key in _OURS]
    given |= {"target": _NOWHERE} | ({} if duration_s is None else {"duration_s": duration_s})
    found: list[dict[str, str]] = json.loads(_ask(choice.scenario, said=json.dumps(given)))
    return ours + [f"{one['key']}: {one['problem']}" for one in found]


def _replay_problems(choice: ScenarioChoice) -> list[str]:
    try:
        ReplayOptions.model_validate(choice.options)
    except ValidationError as error:
        return [
            f"{one.key or 'options'}: {one.text}"
            for one in problems_of(error, "is not an option of a replay", ReplayOptions)
        ]
    return []


@cache  # a process that imports Locust takes a second, and says the same each time
def _ask(*words: str, said: str = "") -> str:
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
