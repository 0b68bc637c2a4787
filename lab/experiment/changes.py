"""Asks the scenarios about their settings, in a process of their own: Locust patches the one that it is in."""

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from analysis.errors import SettingsError
from lab.experiment.scenario import REPLAY, ReplayOptions
from lab.experiment.settings import Lab, ScenarioChoice

_NOWHERE = "http://127.0.0.1"  # stands for the target, which is the clone's
_OURS = {"target", "connect_to", "out", "backend", "repeat", "i_may_change_this_site"}


@dataclass(frozen=True)
class Answer:
    """What a scenario says: its problems, whether it changes the site, whether it logs in."""

    problems: tuple[str, ...]
    changes: bool


def ask(lab: Lab) -> dict[str, Answer]:
    """Return the answer to each scenario of `lab`, by what it is called there."""
    return {choice.called: _ask(lab, choice) for choice in lab.scenarios}


def checked(lab: Lab, path: str) -> set[str]:
    """Return the scenarios that change the site. Raises SettingsError with all problems of all scenarios."""
    answers = ask(lab)
    problems = [
        f"{path}: scenarios.{i}.options: {choice.called}: {problem}"
        for i, choice in enumerate(lab.scenarios)
        for problem in answers[choice.called].problems
    ]
    if problems:
        raise SettingsError("\n".join(problems))
    return {name for name, answer in answers.items() if answer.changes}


def _ask(lab: Lab, choice: ScenarioChoice) -> Answer:
    if choice.scenario == REPLAY:
        try:
            ReplayOptions.model_validate(choice.options)
        except ValidationError as error:
            return Answer(tuple(_told(error.errors(include_url=False, include_input=False))), False)
        return Answer((), False)
    ours = tuple(f"{key}: is the lab's to say; leave it out" for key in choice.options if key in _OURS)
    given = {key: value for key, value in choice.options.items() if key not in _OURS}
    duration_s = lab.duration_s(choice)
    given |= {"target": _NOWHERE} | ({} if duration_s is None else {"duration_s": duration_s})
    done = subprocess.run(  # noqa: S603 our own module, by a list of words
        [sys.executable, "-m", "scenarios.check", choice.scenario],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    try:
        answer = json.loads(done.stdout)
        problems = tuple(f"{one['key']}: {one['problem']}" for one in answer["problems"])
        return Answer(ours + problems, bool(answer["changes"]))
    except (ValueError, KeyError, TypeError):
        raise SettingsError(f"{choice.called}: cannot be checked: {done.stderr.strip()[-500:]}") from None


def _told(errors: Iterable[object]) -> list[str]:
    told = []
    for error in errors:
        assert isinstance(error, dict)  # noqa: S101 pydantic's own
        where = ".".join(str(part) for part in error["loc"]) or "options"
        told.append(f"{where}: {str(error['msg']).removeprefix('Value error, ')}")
    return told
