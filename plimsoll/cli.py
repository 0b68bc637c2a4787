"""The command `plimsoll`: the only list of all subcommands, and what shells and editors complete.

A subcommand is loaded when it is asked for, so that each starts fast.
"""

import json
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from plimsoll import __version__
from plimsoll.common.config import WITHOUT_DEFAULTS, config_file, default_map, find_defaults, read_file
from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.hostile import printable

_COMMANDS = {
    "compare": "plimsoll.analysis.compare.compare:compare",
    "completion": "plimsoll.cli:completion",
    "config": "plimsoll.common.config:config",
    "doctor": "plimsoll.doctor:doctor",
    "export": "plimsoll.analysis.exchange.exchange:export",
    "fileio": "plimsoll.lab.fileio:fileio",
    "init": "plimsoll.init:init",
    "init-clone": "plimsoll.scenarios.init_clone:init_clone",
    "hosts": "plimsoll.lab.hosts:hosts",
    "lab": "plimsoll.lab.experiment:lab",
    "import": "plimsoll.analysis.exchange.exchange:import_",
    "merge": "plimsoll.analysis.exchange.merge:merge",
    "run": "plimsoll.lab.experiment.experiment:run",
    "regress": "plimsoll.analysis.regress.regress:regress",
    "report": "plimsoll.analysis.report.report:report",
    "scenario": "plimsoll.scenarios.scenario:scenario",
    "schedule": "plimsoll.lab.schedule:schedule",
    "schema": "plimsoll.cli:schema",
    "serve": "plimsoll.serve:serve",
    "signoff": "plimsoll.analysis.signoff.signoff:signoff",
}

# The models of all files, by the usual name of each; loaded when asked for.
FILES = {
    "gates.yml": "plimsoll.analysis.compare.gates:Gates",
    "hosts.yml": "plimsoll.lab.hosts:HostsFile",
    "lab.yml": "plimsoll.lab.experiment.labfile:Lab",
    "plimsoll.yml": "plimsoll.scenarios.running.clonelist:SiteConfig",
}


class _Refused(click.ClickException):
    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print every problem on a line of its own."""
        for line in self.message.splitlines():
            click.echo(f"Error: {printable(line, 2000)}", err=True)


class _Plimsoll(click.Group):
    """Loads subcommands, and turns what the user can put right into lines of text and exit code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and give it the defaults that plimsoll.toml and the environment set."""
        name, command, rest = super().resolve_command(ctx, args)
        if name and command and not ctx.resilient_parsing and name not in WITHOUT_DEFAULTS:
            section = read_file().get(name, {})
            if not isinstance(section, dict):
                raise SettingsError(f"{config_file()}: {name}: must be a table: [{name}]")
            ctx.default_map = {name: default_map(find_defaults(command, name, section), name)}
        return name, command, rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return names without what they do: to know that, every command would have to be loaded."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [CompletionItem(name) for name in names] or click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PlimsollError as error:
            raise _Refused(str(error)) from None


@click.group(cls=_Plimsoll, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="plimsoll")
def main() -> None:
    """See what happens to the slowest one request in a thousand.

    Exit codes: 0 done; 1 it ran and the answer is no; 2 wrong usage or unreadable input;
    3 too early to tell.
    """


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
    click.echo(kind(ctx.find_root().command, {}, "plimsoll", "_PLIMSOLL_COMPLETE").source())


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
    """Return the JSON Schema of `file`, one of FILES."""
    module, _, name = FILES[file].partition(":")
    model = getattr(import_module(module), name)
    return {**model.model_json_schema(), "$schema": "https://json-schema.org/draft/2020-12/schema"}
