"""Checks a scenario's settings for other programs: `python -m scenarios.check NAME`, JSON in and out.

The lab asks in a process of its own, since Locust patches whatever process imports it. Nothing is run, and
nothing is written but the answer.
"""

import argparse
import json
import re
import sys
from importlib import import_module
from typing import Any

from pydantic import BaseModel, ValidationError

from scenarios.catalog import CATALOG

# A setting that needs another names it as the option that it is on the command line.
_OPTION = re.compile(r"--([a-z0-9-]+): (.*)", re.DOTALL)

Problem = dict[str, str]


def problems(name: str, given: dict[str, Any]) -> list[Problem]:
    """Return all that is wrong with settings `given` to scenario `name`, by key; none where all is right."""
    if name not in CATALOG:
        return [{"key": "scenario", "problem": f"{name!r} is none; there are {', '.join(CATALOG)}"}]
    try:
        _settings(name).model_validate(given)
    except ValidationError as error:
        return [_problem(one) for one in error.errors(include_url=False, include_input=False)]
    return []


def described(name: str) -> dict[str, Any]:
    """Return what scenario `name` changes on the site (None: nothing), and its keys with their meanings."""
    fields = _settings(name).model_fields
    keys = {key: field.description for key, field in fields.items()}
    return {"changes": CATALOG[name].changes, "keys": keys}


def _settings(name: str) -> type[BaseModel]:
    model: type[BaseModel] = import_module(CATALOG[name].module).Settings
    return model


def _problem(error: Any) -> Problem:
    key = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = "is no setting of this scenario"
    elif error["type"] == "missing":
        message = "is missing"
    elif not key and (found := _OPTION.fullmatch(message)):
        key, message = found[1].replace("-", "_"), found[2]
    return {"key": key, "problem": message}


def main() -> int:
    """Answer one question; 0: all is right, 1: there are problems, 2: it was no question."""
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.check",
        description="Reads settings of a scenario as JSON from standard input, and prints what is wrong with "
        'them: a list of {"key", "problem"}, empty where all is right.',
        epilog="""example: echo '{"target": "http://127.0.0.1"}' | python -m scenarios.check download""",
    )
    parser.add_argument("scenario", nargs="?", help="name of the scenario, as plimsoll scenario list has it")
    parser.add_argument(
        "--describe", action="store_true", help="print what each scenario changes, and its keys, instead"
    )
    asked = parser.parse_args()
    if asked.describe:
        if asked.scenario not in (None, *CATALOG):
            parser.error(problems(asked.scenario, {})[0]["problem"])
        names = [asked.scenario] if asked.scenario else list(CATALOG)
        print(json.dumps({name: described(name) for name in names}))
        return 0
    if asked.scenario is None:
        parser.error("say which scenario")
    try:
        given = json.load(sys.stdin)
    except (ValueError, RecursionError) as error:
        parser.error(f"standard input is no JSON: {error}")
    if not isinstance(given, dict):
        parser.error("standard input is no JSON object of settings")
    found = problems(asked.scenario, given)
    print(json.dumps(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
