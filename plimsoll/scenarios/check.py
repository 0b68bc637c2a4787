"""Checks settings of scenarios for other programs: `python -m plimsoll.scenarios.check [NAME]`.

It takes JSON and answers in JSON: on one scenario's settings, or on many questions at once. The lab runs it
as a process of its own: some scenarios import Locust, which patches the process. It runs no scenario, and
without `--prepare` writes nothing but the answer.
"""

import argparse
import json
import re
import sys
from typing import Any

from pydantic import ValidationError

from plimsoll.common.errors import PlimsollError
from plimsoll.common.validation import Problem, problems_of
from plimsoll.scenarios import MODULES, find_scenario

# A setting that needs another names it as the option that it is on the command line.
_OPTION = re.compile(r"--([a-z0-9-]+): (.*)", re.DOTALL)


def problems(name: str, settings: dict[str, Any]) -> list[dict[str, str]]:
    """Return all problems in `settings` of scenario `name`, by key; an empty list if there are none."""
    if name not in MODULES:
        known = ", ".join(MODULES)
        return [{"key": "scenario", "problem": f"scenario {name!r} does not exist; choose one of {known}"}]
    model = find_scenario(name).settings()
    try:
        model.model_validate(settings)
    except ValidationError as error:
        return [_answer(one) for one in problems_of(error, "is not a setting of this scenario", model)]
    return []


def idle(name: str, settings: dict[str, Any]) -> list[dict[str, str]]:
    """Return the keys of `settings`, which have no other problems, that have no effect, as problems."""
    checked = find_scenario(name).settings().model_validate(settings)
    return [{"key": key, "problem": why} for key, why in checked.idle()]


def describe(name: str) -> dict[str, Any]:
    """Return the changes that scenario `name` makes to the site (None: nothing), and its keys explained."""
    scenario = find_scenario(name)
    keys = {key: field.description for key, field in scenario.settings().model_fields.items()}
    return {"changes": scenario.changes, "keys": keys}


def answers(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return all `scenarios` described, and of each question a list of `problems` and one of `idle` keys.

    A question has a `scenario`, its `settings`, and `duration_s` for them if the scenario takes it.
    """
    scenarios = {name: describe(name) for name in MODULES}
    found, without_effect = [], []
    for question in questions:
        name, given = str(question["scenario"]), question["settings"]
        settings = dict(given)
        if question.get("duration_s") is not None and "duration_s" in scenarios.get(name, {}).get("keys", ()):
            settings["duration_s"] = question["duration_s"]
        found.append(problems(name, settings))
        without_effect.append([] if found[-1] else idle(name, given))
    return {"scenarios": scenarios, "problems": found, "idle": without_effect}


def prepare(name: str, settings: dict[str, Any]) -> None:
    """Prepare on this machine what a run of scenario `name` would prepare before its clock starts.

    Its target may not be there yet. Raises PlimsollError, ValidationError.
    """
    found = find_scenario(name)
    module = found.load()
    from plimsoll.scenarios.running.locustfile import ScenarioUser

    checked = found.settings().model_validate(settings)
    for each in vars(module).values():
        if isinstance(each, type) and issubclass(each, ScenarioUser) and each.__module__ == found.module:
            each.prepare(checked, lambda text: print(text, file=sys.stderr), has_target=False)


def _answer(problem: Problem) -> dict[str, str]:
    if not problem.key and (found := _OPTION.fullmatch(problem.text)):
        return {"key": found[1].replace("-", "_"), "problem": found[2]}
    return {"key": problem.key, "problem": problem.text}


def main() -> int:
    """Answer. Exit codes: 0 no problems, 1 there are problems, 2 wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.scenarios.check",
        description="Read the settings of a scenario as JSON from standard input, and print their problems: "
        'a list of {"key", "problem"}, empty if there are none. Without NAME: read a list of {"scenario", '
        '"settings"}, and print what all scenarios change, their keys, and a list of problems for each.',
        epilog='example: echo \'{"target": "http://127.0.0.1"}\' '
        "| python -m plimsoll.scenarios.check download",
    )
    parser.add_argument("scenario", nargs="?", help="name of the scenario, from plimsoll scenario list")
    parser.add_argument(
        "--prepare",
        action="store_true",
        help="prepare what a run prepares before its clock starts: photographs",
    )
    arguments = parser.parse_args()
    name = arguments.scenario
    try:
        said = json.load(sys.stdin)
    except (ValueError, RecursionError) as error:
        parser.error(f"standard input is not JSON: {error}")
    if name is None:
        if not isinstance(said, list) or not all(
            isinstance(one, dict) and isinstance(one.get("settings"), dict) and "scenario" in one
            for one in said
        ):
            parser.error("name the scenario, or give a JSON list of objects with scenario and settings")
        print(json.dumps(answered := answers(said)))
        return 1 if any(answered["problems"]) else 0
    if not isinstance(said, dict):
        parser.error("standard input is not a JSON object of settings")
    found = problems(name, said) or ([] if arguments.prepare else idle(name, said))
    if arguments.prepare and not found:
        try:
            prepare(name, said)
        except PlimsollError as error:
            found = [{"key": "", "problem": str(error)}]
    print(json.dumps(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
