"""The defaults that a user sets: read from plimsoll.toml and the environment, and checked. Effects: reading.

A flag of the command line wins over the environment, the environment over the file.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from plimsoll.common.errors import SettingsError, did_you_mean
from plimsoll.common.hostile import printable, redact

FILE = Path("plimsoll.toml")
FILE_VARIABLE = "PLIMSOLL_CONFIG"
MANUAL = "docs/config.md"
_LARGEST_BYTES = 1 << 20
# Said each time or not at all: they allow what cannot be taken back.
CONSENT = frozenset({"i-may-change-this-site", "public", "yes", "force", "accept", "drop", "set-baseline"})
# Scenarios are what an experiment runs: those do what lab.yml says, whatever lies in the folder. The others
# work whatever the file says.
WITHOUT_DEFAULTS = frozenset({"completion", "config", "doctor", "scenario", "schema"})
_ABOUT = frozenset({"help", "version"})


@dataclass(frozen=True)
class Default:
    """A default that is set: of which option of which command, its value, and where that was said."""

    command: str  # compare, lab check
    option: str  # gates
    parameter: str  # click's name of it
    value: Any
    source: str  # plimsoll.toml, or a variable of the environment


def config_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the file, whether it is there or not."""
    return Path(environment.get(FILE_VARIABLE) or FILE)


def read_file(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return what the file holds, nothing where there is none. Raises SettingsError."""
    path = config_file(environment)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if environment.get(FILE_VARIABLE):
            raise SettingsError(f"{path}: is not there: correct or unset {FILE_VARIABLE}") from None
        return {}
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST_BYTES:
        raise SettingsError(f"{path}: is larger than 1 MiB: is it the right file?")
    try:
        told = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: is not TOML: {printable(str(error))} (see {MANUAL})") from None
    if problems := list(_secrets(told, "")):
        raise SettingsError("\n".join(f"{path}: {what}" for what in problems))
    return told


def defaults(
    command: click.Command,
    name: str,
    told: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
) -> list[Default]:
    """Return the defaults set for a command and those below it. Raises SettingsError with all problems.

    `told` is the section of the file about it.
    """
    problems: list[str] = []
    found = list(_of(command, name, told, environment, problems))
    if problems:
        raise SettingsError("\n".join(problems))
    return found


def default_map(found: list[Default], name: str) -> dict[str, Any]:
    """Return them as click takes them, for the command `name` and those below it. Pure."""
    values: dict[str, Any] = {}
    for default in found:
        at = values
        for word in default.command.split()[len(name.split()) :]:
            at = at.setdefault(word, {})
        at[default.parameter] = default.value
    return values


def variable(command: str, option: str) -> str:
    """Return the variable of the environment that sets the default of an option. Pure."""
    return f"PLIMSOLL_{command} {option}".upper().replace(" ", "_").replace("-", "_")


def options(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command that may have a default, by their long names. Pure."""
    return {
        opt.removeprefix("--"): parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for opt in parameter.opts
        if opt.startswith("--") and opt.removeprefix("--") not in _ABOUT
    }


def _of(
    command: click.Command,
    name: str,
    told: Mapping[str, Any],
    environment: Mapping[str, str],
    problems: list[str],
) -> Iterator[Default]:
    known = options(command)
    below = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
    spelled = {option.replace("-", "_"): option for option in known}
    for key, value in told.items():
        where = f"{config_file(environment)}: {name.replace(' ', '.')}.{printable(key)}"
        option = spelled.get(key.replace("-", "_"))
        if key in below:
            continue
        if option is None:
            problems.append(f"{where}: is no option{did_you_mean(key, [*known, *below])} (see {MANUAL})")
        elif option in CONSENT:
            problems.append(f"{where}: cannot be a default: say --{option} each time that you mean it")
        elif what := _unfit(known[option], value):
            problems.append(f"{where}: {what}")
    for option, parameter in known.items():
        said = variable(name, option)
        if said in environment and option in CONSENT:
            problems.append(f"{said}: cannot be a default: say --{option} each time that you mean it")
        elif said in environment:
            text = environment[said]
            value = text.split() if parameter.multiple else text
            yield Default(name, option, parameter.name or "", value, said)
        else:
            keys = [key for key in told if spelled.get(key.replace("-", "_")) == option]
            yield from (
                Default(name, option, parameter.name or "", told[key], str(config_file(environment)))
                for key in keys
                if option not in CONSENT
            )
    for key in below:
        section = told.get(key, {})
        if not isinstance(section, dict):
            problems.append(
                f"{config_file(environment)}: {name}.{key}: must be a table: [{name.replace(' ', '.')}.{key}]"
            )
        elif section or any(one.startswith(variable(f"{name} {key}", "")) for one in environment):
            assert isinstance(command, click.Group)  # noqa: S101 only such have some below
            child = command.get_command(click.Context(command), key)
            if child is not None:
                yield from _of(child, f"{name} {key}", section, environment, problems)


def _unfit(option: click.Option, value: Any) -> str:
    """Return why a value of TOML cannot be that of an option, empty where it can."""
    if option.multiple != isinstance(value, list):
        return "must be a list: [one, another]" if option.multiple else "must be one value"
    for one in value if isinstance(value, list) else [value]:
        if option.is_flag and option.is_bool_flag and not isinstance(one, bool):
            return "must be true or false"
        if not isinstance(one, str | int | float | bool):
            return "must be text, a number, or true or false"
    return ""


def _secrets(told: Mapping[str, Any], at: str) -> Iterator[str]:
    """Yield what looks like a secret, without its value. Names of files that hold some are none."""
    for key, value in told.items():
        where = f"{at}{printable(key)}"
        if isinstance(value, dict):
            yield from _secrets(value, f"{where}.")
            continue
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, str):
                continue
            is_file = key.replace("-", "_").endswith("_file") or key == "key"
            named = redact(f"{key}: x") != f"{key}: x" and not is_file
            if named or redact(one) != one:
                yield (
                    f"{where}: looks like a secret, and this file is no place for one: put it into a file "
                    "that only you can read, and name that"
                )
