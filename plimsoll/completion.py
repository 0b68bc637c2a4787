"""What shells and editors complete: commands by `plimsoll completion`, keys of files by `plimsoll schema`."""

import json
from importlib import import_module
from typing import Any

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_PLIMSOLL_COMPLETE"  # the variable by which click knows that a shell asks
_DIALECT = "https://json-schema.org/draft/2020-12/schema"

# The models of all files, by the usual name of each; loaded when asked for.
FILES = {
    "gates.yml": "plimsoll.analysis.compare.gates:Gates",
    "hosts.yml": "plimsoll.lab.hosts:HostsFile",
    "lab.yml": "plimsoll.lab.experiment.labfile:Lab",
    "plimsoll.yml": "plimsoll.scenarios.running.clonelist:SiteConfig",
}


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and values in bash, zsh or fish.

    \b
    Examples:
        plimsoll completion bash > ~/.local/share/bash-completion/completions/plimsoll
        plimsoll completion zsh > "${fpath[1]}/_plimsoll"
        plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish
    """  # noqa: D301 \b is click's: keep these lines as they are
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 click has these three
    click.echo(kind(ctx.find_root().command, {}, "plimsoll", _VARIABLE).source())


@click.command()
@click.argument("file", type=click.Choice(list(FILES)))
def schema(file: str) -> None:
    """Print the JSON Schema of a file that you write, so that your editor completes and checks its keys.

    Begin the file with `# yaml-language-server: $schema=lab.schema.json`.

    \b
    Examples:
        plimsoll schema lab.yml > lab.schema.json
        plimsoll schema gates.yml > gates.schema.json
    """  # noqa: D301 \b is click's: keep these lines as they are
    click.echo(json.dumps(schema_of(file), indent=2))


def schema_of(file: str) -> dict[str, Any]:
    """Return the JSON Schema of the file that is called so."""
    module, _, name = FILES[file].partition(":")
    model = getattr(import_module(module), name)
    return {**model.model_json_schema(), "$schema": _DIALECT}
