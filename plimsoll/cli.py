"""The command `plimsoll`: the only list of all subcommands, and what shells and editors complete.

A subcommand is loaded when it is asked for, so that each starts fast.
"""

import json
import os
import subprocess
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem, get_completion_class

from plimsoll import __version__
from plimsoll.common.commands import present_name
from plimsoll.common.config import WITHOUT_DEFAULTS, config_file, default_map, find_defaults, read_file
from plimsoll.common.errors import PlimsollError, SettingsError, did_you_mean
from plimsoll.common.hostile import printable
from plimsoll.common.programs import built_replay_program

_ENGINE = "bin/replay carries it out"

# All commands, in the order of the help: where each is, and what it does in a line of it.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Replay": {
        "replay": (_ENGINE, "Replay access logs against a server; measure response times."),
        "parse": (_ENGINE, "Print the requests of access logs, or their totals."),
        "same": (_ENGINE, "Compare two sites page by page over the requests of a log."),
        "origin": (_ENGINE, "Serve the targets of a log: files of the logged sizes."),
        "watch": (_ENGINE, "Serve live figures of a folder to Prometheus."),
        "lag": (_ENGINE, "Measure how late this machine wakes a thread that sends."),
    },
    "Experiment": {
        "init": ("plimsoll.init:init", "Ask five questions; write a lab.yml and a gates.yml."),
        "check": (
            "plimsoll.lab.experiment.commands:check",
            "Check lab.yml and its machines, or print each step.",
        ),
        "run": (
            "plimsoll.lab.experiment.commands:run",
            "Run an experiment: each scenario on each backend.",
        ),
        "status": (
            "plimsoll.lab.experiment.commands:status",
            "Show what an experiment does now, and when it ends.",
        ),
        "clean": (
            "plimsoll.lab.experiment.commands:clean",
            "Remove what a killed experiment left behind.",
        ),
        "schedule": (
            "plimsoll.lab.schedule:schedule",
            "Run an experiment every night, and judge the nights.",
        ),
        "serve": ("plimsoll.serve:serve", "Show a results folder in the browser."),
        "hosts": ("plimsoll.lab.hosts:hosts", "Run commands on the machines of a lab."),
        "fileio": ("plimsoll.lab.fileio:fileio", "Measure a volume with sysbench and fio."),
        "scenario": (
            "plimsoll.scenarios.scenario:scenario",
            "Use a site as people do, and record every request.",
        ),
        "clone": (
            "plimsoll.scenarios.clone:clone",
            "Register clones that scenarios may change.",
        ),
    },
    "Judge": {
        "report": (
            "plimsoll.analysis.report.report:report",
            "Write a report on one or more runs: one HTML file.",
        ),
        "ab": ("plimsoll.ab:ab", "Replay a log against two servers in turns, and judge them."),
        "rehearse": (
            "plimsoll.ab:rehearse",
            "Say what such an experiment would find, before anything is moved.",
        ),
        "compare": ("plimsoll.analysis.compare.compare:compare", "Say whether a candidate keeps its limits."),
        "signoff": (
            "plimsoll.analysis.signoff.signoff:signoff",
            "Write a document to sign, with its evidence.",
        ),
        "regress": ("plimsoll.analysis.regress.regress:regress", "Judge the last night by those before it."),
    },
    "Exchange": {
        "import": (
            "plimsoll.analysis.exchange.exchange:import_",
            "Read results of k6, Locust, The Grinder, and logs.",
        ),
        "export": (
            "plimsoll.analysis.exchange.exchange:export",
            "Write a run's records or figures as another format.",
        ),
        "merge": (
            "plimsoll.analysis.exchange.exchange:merge",
            "Join run directories of several processes or machines.",
        ),
    },
    "Set-up": {
        "doctor": (
            "plimsoll.doctor:doctor",
            "Show what is installed, and what is missing for which command.",
        ),
        "config": (
            "plimsoll.common.config:config",
            "Show the defaults that plimsoll.toml and variables set.",
        ),
        "schema": ("plimsoll.cli:schema", "Print the JSON Schema of a file that you write."),
        "completion": ("plimsoll.cli:completion", "Print the script that completes commands and options."),
    },
}
_COMMANDS = {name: entry for commands in GROUPS.values() for name, entry in commands.items()}

# The models of all files, by the usual name of each; loaded when asked for.
FILES = {
    "gates.yml": "plimsoll.analysis.compare.gates:Gates",
    "hosts.yml": "plimsoll.lab.hosts.hostsfile:HostsFile",
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
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        where, summary = _COMMANDS[cmd_name]
        if where == _ENGINE:
            return EngineCommand(cmd_name, summary)
        module, _, name = where.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their groups, without loading any."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:10}", summary) for name, (_, summary) in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and give it the defaults that plimsoll.toml and the environment set."""
        if not ctx.resilient_parsing:
            if former := present_name(args):
                raise click.UsageError(former, ctx)
            if args[0] not in _COMMANDS and not args[0].startswith("-"):
                near = did_you_mean(args[0], _COMMANDS)
                raise click.UsageError(f"{args[0]!r} is not a command{near}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if name and command and not ctx.resilient_parsing and name not in WITHOUT_DEFAULTS:
            section = read_file().get(name, {})
            if not isinstance(section, dict):
                raise SettingsError(f"{config_file()}: {name}: must be a table: [{name}]")
            ctx.default_map = {name: default_map(find_defaults(command, name, section), name)}
        return name, command, rest

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return names and what they do, without loading any command."""
        found = [(name, about) for name, (_, about) in _COMMANDS.items() if name.startswith(incomplete)]
        return [CompletionItem(name, help=about) for name, about in found] or click.Command.shell_complete(
            self, ctx, incomplete
        )

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PlimsollError as error:
            raise _Refused(str(error)) from None


@click.group(cls=_Plimsoll, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="plimsoll")
def main() -> None:
    """See what happens to the slowest one request in a thousand.

    \b
    Examples:
        plimsoll replay examples/access.log --target http://127.0.0.1:8080 --speed 20

    Exit codes: 0 done; 1 the answer is no; 2 wrong usage; 3 cannot be judged.
    """  # noqa: D301 \b is click's: keep these lines as they are


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and values in bash, zsh or fish.

    \b
    Examples:
        plimsoll completion bash > plimsoll.bash   # in ~/.bashrc: source plimsoll.bash
        plimsoll completion zsh > plimsoll.zsh     # in ~/.zshrc: source plimsoll.zsh
        plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish

    Exit codes: 0 done; 2 wrong usage.
    """  # noqa: D301 \b is click's: keep these lines as they are
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 click has these three
    click.echo(kind(ctx.find_root().command, {}, "plimsoll", "_PLIMSOLL_COMPLETE").source())


@click.command()
@click.argument("file", type=click.Choice(list(FILES)))
def schema(file: str) -> None:
    """Print the JSON Schema of a file that you write, so that your editor completes and checks its keys.

    \b
    Examples:
        plimsoll schema lab.yml > lab.schema.json
        plimsoll schema gates.yml > gates.schema.json

    Begin the file with `# yaml-language-server: $schema=lab.schema.json`.

    Exit codes: 0 done; 2 wrong usage.
    """  # noqa: D301 \b is click's: keep these lines as they are
    click.echo(json.dumps(schema_of(file), indent=2))


def schema_of(file: str) -> dict[str, Any]:
    """Return the JSON Schema of `file`, one of FILES."""
    module, _, name = FILES[file].partition(":")
    model = getattr(import_module(module), name)
    return {**model.model_json_schema(), "$schema": "https://json-schema.org/draft/2020-12/schema"}


class EngineCommand(click.Command):
    """A command that becomes the engine: the words, the help and the exit codes are the engine's own.

    Started under the name of plimsoll, the engine calls its commands as plimsoll does. The options are read
    from it where a shell completes them and where a manual lists them.
    """

    def __init__(self, name: str, summary: str) -> None:
        super().__init__(name, help=summary, add_help_option=False)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave the words to the engine, unless a shell completes them."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        ctx.args = args
        return args

    def invoke(self, ctx: click.Context) -> NoReturn:
        """Become the engine. Raises PlimsollError if it is missing."""
        program = built_replay_program()
        os.execv(program, ["plimsoll", ctx.info_name or "", *ctx.args])  # noqa: S606 its own words, without a shell

    def get_help(self, ctx: click.Context) -> str:
        """Return what the engine prints. Raises PlimsollError if it is missing."""
        return _ask_engine(ctx.info_name or "", "--help")

    def describe(self) -> dict[str, Any]:
        """Return its help, detail, usage and flags. Raises PlimsollError if the engine is missing."""
        return _read_commands()[self.name or ""]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its options and its argument. Raises PlimsollError if the engine is missing."""
        found = self.describe()
        words = click.Choice(found["words"]) if found["words"] else click.Path()
        return [*map(_option, found["flags"]), click.Argument(["arguments"], nargs=-1, type=words)]


@cache
def _read_commands() -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(_ask_engine("reference"))["commands"]}


def _option(flag: dict[str, Any]) -> click.Option:
    kind = click.Choice(flag["words"]) if flag["words"] else click.Path()
    return click.Option([f"--{flag['name']}"], help=flag["help"], metavar=flag["value"] or None,
                        is_flag=not flag["value"], type=None if not flag["value"] else kind)  # fmt: skip


def _ask_engine(*words: str) -> str:
    asked = ["plimsoll", *words]
    ran = subprocess.run(asked, executable=built_replay_program(), capture_output=True, text=True, check=True)  # noqa: S603
    return ran.stdout
