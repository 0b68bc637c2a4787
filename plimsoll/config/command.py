"""`plimsoll config`: which defaults are set, their values, and where each came from."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace

import click

from plimsoll.common.errors import SettingsError, did_you_mean
from plimsoll.common.hostile import printable, redact
from plimsoll.config.defaults import (
    MANUAL,
    WITHOUT_DEFAULTS,
    Default,
    config_file,
    defaults,
    options,
    read_file,
    variable,
)

_BUILT_IN = "built in"


@click.command()
@click.option("--all", "with_built_in", is_flag=True, help="List all options, also those that nobody set.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")
@click.pass_context
def config(ctx: click.Context, with_built_in: bool, as_json: bool) -> None:
    """Show the defaults of options that plimsoll.toml and the environment set, and where each came from.

    A flag of the command line wins over the environment, the environment over the file.

    \b
    Examples:
        plimsoll config --json
        PLIMSOLL_COMPARE_GATES=gates.yml plimsoll config --all

    Exit codes: 0 they can be used; 2 something is wrong with them: all of it is said.
    """  # noqa: D301 \b is click's: keep these lines as they are
    root = ctx.find_root().command
    assert isinstance(root, click.Group)  # noqa: S101 it has this command
    found = sorted(_found(root), key=lambda one: (one.command, one.option))
    if with_built_in:
        said = {(one.command, one.option) for one in found}
        others = [one for one in _built_in(root) if (one.command, one.option) not in said]
        found = sorted([*found, *others], key=lambda one: (one.command, one.option))
    if as_json:
        shown = [
            {key: value for key, value in asdict(_shown(one)).items() if key != "parameter"} for one in found
        ]
        path = config_file()
        data = {"file": str(path), "exists": path.exists(), "defaults": shown}
        click.echo(json.dumps(data, indent=2, default=str))
        return
    for one in found:
        value = json.dumps(_shown(one).value, ensure_ascii=False, default=str)
        click.echo(printable(f"{one.command} --{one.option}  {value}  ({one.source})", 2000))
    if not found:
        click.echo(
            f"Nothing is set: there is no {config_file()}, and no variable of the environment ({MANUAL})."
        )


def _shown(one: Default) -> Default:
    """Return it without what looks like a secret: the environment may hold anything."""
    return replace(one, value=redact(one.value)) if isinstance(one.value, str) else one


def _found(root: click.Group) -> list[Default]:
    """Return all that is set. Raises SettingsError with all problems."""
    told, found, problems = read_file(), [], []
    names = _names(root)
    problems += [
        f"{config_file()}: {printable(key)}: takes no defaults (see {MANUAL})"
        if key in WITHOUT_DEFAULTS
        else f"{config_file()}: {printable(key)}: is no command{did_you_mean(key, names)} (see {MANUAL})"
        for key in told
        if key not in names
    ]
    problems += [
        f"{config_file()}: {key}: must be a table: [{key}]"
        for key in names
        if not isinstance(told.get(key, {}), dict)
    ]
    for name in names:
        section = told.get(name, {})
        if not isinstance(section, dict) or not (section or _in_environment(name)):
            continue
        command = root.get_command(click.Context(root), name)
        assert command is not None  # noqa: S101 it is listed
        try:
            found += defaults(command, name, section)
        except SettingsError as error:
            problems += str(error).splitlines()
    if problems:
        raise SettingsError("\n".join(problems))
    return found


def _names(root: click.Group) -> list[str]:
    """Return the commands whose options may have defaults."""
    return [name for name in root.list_commands(click.Context(root)) if name not in WITHOUT_DEFAULTS]


def _in_environment(name: str) -> bool:
    return any(one.startswith(variable(name, "")) for one in os.environ)


def _built_in(root: click.Group) -> Iterator[Default]:
    for name in _names(root):
        command = root.get_command(click.Context(root), name)
        assert command is not None  # noqa: S101 it is listed
        yield from _own(command, name)


def _own(command: click.Command, name: str) -> Iterator[Default]:
    context = click.Context(command)
    for option, parameter in options(command).items():
        value = parameter.get_default(context, call=False)
        plain = value if isinstance(value, str | int | float | bool | list | tuple) else None
        yield Default(name, option, parameter.name or "", plain, _BUILT_IN)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            child = command.get_command(context, below)
            assert child is not None  # noqa: S101 it is listed
            yield from _own(child, f"{name} {below}")
