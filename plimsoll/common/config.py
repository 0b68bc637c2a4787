"""Defaults of options from `plimsoll.toml` and the environment, and `plimsoll config`, which shows them.

A flag of the command line wins over the environment, the environment over the file.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from plimsoll.common.commands import json_option, present_name
from plimsoll.common.errors import SettingsError, did_you_mean
from plimsoll.common.hostile import printable, redact

_FILE = Path("plimsoll.toml")
_FILE_VARIABLE = "PLIMSOLL_CONFIG"
MANUAL = "docs/config.md"
_LARGEST_BYTES = 1 << 20
# Said each time or not at all: they allow what cannot be taken back.
CONSENT = frozenset({"i-may-change-this-site", "public", "yes", "force", "accept", "drop", "set-baseline"})
# Scenarios are what an experiment runs: those do what lab.yml says, whatever lies in the folder. The others
# work whatever the file says, and those of the engine do as bin/replay does.
ENGINE = frozenset({"replay", "parse", "same", "origin", "watch", "lag"})
WITHOUT_DEFAULTS = ENGINE | {"completion", "config", "doctor", "scenario", "schema"}
_ABOUT = frozenset({"help", "version"})


@dataclass(frozen=True)
class Default:
    """A default that is set: of which option of which command, its value, and where it was set."""

    command: str  # compare, hosts exec
    option: str  # gates
    parameter: str  # click's name of it
    value: Any
    source: str  # plimsoll.toml, or a variable of the environment


def config_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the file, which need not exist."""
    return Path(environment.get(_FILE_VARIABLE) or _FILE)


def read_file(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return what the file holds, nothing where there is none. Raises SettingsError."""
    path = config_file(environment)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if environment.get(_FILE_VARIABLE):
            raise SettingsError(f"{path}: does not exist: correct or unset {_FILE_VARIABLE}") from None
        return {}
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST_BYTES:
        raise SettingsError(f"{path}: is larger than 1 MiB: is it the right file?")
    import tomllib

    try:
        content = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: is not TOML: {printable(str(error))} (see {MANUAL})") from None
    problems = list(_secrets(content, ""))
    for key, section in content.items():
        if former := present_name([key, *section] if isinstance(section, dict) else [key]):
            problems.append(f"{printable(key)}: {former}")
    if problems:
        raise SettingsError("\n".join(f"{path}: {what}" for what in problems))
    return content


def find_defaults(
    command: click.Command,
    name: str,
    section: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
) -> list[Default]:
    """Return the defaults set for a command and those below it. Raises SettingsError with all problems.

    `section` is its part of the file.
    """
    problems: list[str] = []
    found = list(_find_in(command, name, section, environment, problems))
    if problems:
        raise SettingsError("\n".join(problems))
    return found


def default_map(found: list[Default], name: str) -> dict[str, Any]:
    """Return them in click's form, for the command `name` and those below it. Pure."""
    values: dict[str, Any] = {}
    for default in found:
        at = values
        for word in default.command.split()[len(name.split()) :]:
            at = at.setdefault(word, {})
        at[default.parameter] = default.value
    return values


def environment_variable(command: str, option: str) -> str:
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


def _find_in(
    command: click.Command,
    name: str,
    section: Mapping[str, Any],
    environment: Mapping[str, str],
    problems: list[str],
) -> Iterator[Default]:
    known = options(command)
    below = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
    spelled = {option.replace("-", "_"): option for option in known}
    for key, value in section.items():
        where = f"{config_file(environment)}: {name.replace(' ', '.')}.{printable(key)}"
        option = spelled.get(key.replace("-", "_"))
        if key in below:
            continue
        if option is None:
            problems.append(f"{where}: is not an option{did_you_mean(key, [*known, *below])} (see {MANUAL})")
        elif option in CONSENT:
            problems.append(f"{where}: cannot be a default: give --{option} each time you want it")
        elif what := _explain_misfit(known[option], value):
            problems.append(f"{where}: {what}")
    for option, parameter in known.items():
        said = environment_variable(name, option)
        if said in environment and option in CONSENT:
            problems.append(f"{said}: cannot be a default: give --{option} each time that you mean it")
        elif said in environment:
            text = environment[said]
            value = text.split() if parameter.multiple else text
            yield Default(name, option, parameter.name or "", value, said)
        else:
            keys = [key for key in section if spelled.get(key.replace("-", "_")) == option]
            yield from (
                Default(name, option, parameter.name or "", section[key], str(config_file(environment)))
                for key in keys
                if option not in CONSENT
            )
    for key in below:
        subsection = section.get(key, {})
        if not isinstance(subsection, dict):
            problems.append(
                f"{config_file(environment)}: {name}.{key}: must be a table: [{name.replace(' ', '.')}.{key}]"
            )
        elif subsection or any(
            one.startswith(environment_variable(f"{name} {key}", "")) for one in environment
        ):
            assert isinstance(command, click.Group)  # noqa: S101 only such have some below
            child = command.get_command(click.Context(command), key)
            if child is not None:
                yield from _find_in(child, f"{name} {key}", subsection, environment, problems)


def _explain_misfit(option: click.Option, value: Any) -> str:
    """Return why a TOML value does not fit an option; empty if it does."""
    if option.multiple != isinstance(value, list):
        return "must be a list: [one, another]" if option.multiple else "must be one value"
    for one in value if isinstance(value, list) else [value]:
        if option.is_flag and option.is_bool_flag and not isinstance(one, bool):
            return "must be true or false"
        if not isinstance(one, str | int | float | bool):
            return "must be text, a number, or true or false"
    return ""


def _secrets(section: Mapping[str, Any], at: str) -> Iterator[str]:
    """Yield what looks like a secret, without its value. Names of files with secrets do not count."""
    for key, value in section.items():
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
                    f"{where}: looks like a secret, which must not be in this file: put it into a file "
                    "that only you can read, and name that file"
                )


_BUILT_IN = "built in"


@click.command()
@click.option("--all", "with_built_in", is_flag=True, help="List all options, including those not set.")
@json_option
@click.pass_context
def config(ctx: click.Context, with_built_in: bool, as_json: bool) -> None:
    """Show the defaults of options that plimsoll.toml and the environment set, and where each came from.

    \b
    Examples:
        plimsoll config --json
        PLIMSOLL_COMPARE_GATES=examples/gates.yml plimsoll config --all

    A flag of the command line wins over the environment, the environment over the file.

    Exit codes: 0 they are valid; 2 something is wrong with them; every problem is listed.
    """  # noqa: D301 \b is click's: keep these lines as they are
    root = ctx.find_root().command
    assert isinstance(root, click.Group)  # noqa: S101 it has this command
    found = sorted(_find_all(root), key=lambda one: (one.command, one.option))
    if with_built_in:
        said = {(one.command, one.option) for one in found}
        others = [one for one in _find_program_defaults(root) if (one.command, one.option) not in said]
        found = sorted([*found, *others], key=lambda one: (one.command, one.option))
    if as_json:
        shown = [
            {key: value for key, value in asdict(_redact(one)).items() if key != "parameter"} for one in found
        ]
        path = config_file()
        data = {"file": str(path), "exists": path.exists(), "defaults": shown}
        click.echo(json.dumps(data, indent=2, default=str))
        return
    for one in found:
        value = json.dumps(_redact(one).value, ensure_ascii=False, default=str)
        click.echo(printable(f"{one.command} --{one.option}  {value}  ({one.source})", 2000))
    if not found:
        click.echo(f"No default is set, neither in {config_file()} nor by the environment ({MANUAL}).")


def _redact(one: Default) -> Default:
    """Return it with secrets removed: the environment may hold anything."""
    return replace(one, value=redact(one.value)) if isinstance(one.value, str) else one


def _find_all(root: click.Group) -> list[Default]:
    """Return all that is set. Raises SettingsError with all problems."""
    content, found, problems = read_file(), [], []
    names = _names(root)
    problems += [
        f"{config_file()}: {printable(key)}: takes no defaults (see {MANUAL})"
        if key in WITHOUT_DEFAULTS
        else f"{config_file()}: {printable(key)}: is not a command{did_you_mean(key, names)} (see {MANUAL})"
        for key in content
        if key not in names
    ]
    problems += [
        f"{config_file()}: {key}: must be a table: [{key}]"
        for key in names
        if not isinstance(content.get(key, {}), dict)
    ]
    for name in names:
        section, prefix = content.get(name, {}), environment_variable(name, "")
        if not isinstance(section, dict) or not (section or any(k.startswith(prefix) for k in os.environ)):
            continue
        command = root.get_command(click.Context(root), name)
        assert command is not None  # noqa: S101 it is listed
        try:
            found += find_defaults(command, name, section)
        except SettingsError as error:
            problems += str(error).splitlines()
    if problems:
        raise SettingsError("\n".join(problems))
    return found


def _names(root: click.Group) -> list[str]:
    """Return the commands whose options may have defaults."""
    return [name for name in root.list_commands(click.Context(root)) if name not in WITHOUT_DEFAULTS]


def _find_program_defaults(root: click.Group) -> Iterator[Default]:
    for name in _names(root):
        command = root.get_command(click.Context(root), name)
        assert command is not None  # noqa: S101 it is listed
        yield from _find_command_defaults(command, name)


def _find_command_defaults(command: click.Command, name: str) -> Iterator[Default]:
    context = click.Context(command)
    for option, parameter in options(command).items():
        value = parameter.get_default(context, call=False)
        plain = value if isinstance(value, str | int | float | bool | list | tuple) else None
        yield Default(name, option, parameter.name or "", plain, _BUILT_IN)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            child = command.get_command(context, below)
            assert child is not None  # noqa: S101 it is listed
            yield from _find_command_defaults(child, f"{name} {below}")
