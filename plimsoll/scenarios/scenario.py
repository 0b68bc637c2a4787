"""`plimsoll scenario`: one subcommand a scenario, made from its settings."""

import json
import sys
from typing import Any

import click

from plimsoll.common.commands import CommandGroup, json_option, progress_option
from plimsoll.common.progress import LiveFigures, is_shown, metrics_options, progress_bar
from plimsoll.rundir.names import SUMMARY_FILE
from plimsoll.scenarios import CLEAN_UP_DOES, MODULES, Scenario, find_scenario, list_scenarios

_CLEAN_UP = "clean-up"


class _Scenarios(CommandGroup):
    """Imports a scenario only when it is needed: Locust is large."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *MODULES, _CLEAN_UP]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with what they do, without loading any."""
        own = [(name, each.get_short_help_str(1000)) for name, each in self.commands.items()]
        scenarios = [(entry.name, entry.does) for entry in list_scenarios()]
        with formatter.section("Commands"):
            formatter.write_dl([*own, *scenarios, (_CLEAN_UP, CLEAN_UP_DOES)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in MODULES:
            return _command(find_scenario(cmd_name))
        if cmd_name == _CLEAN_UP:
            from plimsoll.scenarios.clean_up import clean_up

            return clean_up
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Scenarios)
def scenario() -> None:
    """Use a site as people do, and record every request.

    \b
    Examples:
        plimsoll scenario list
        plimsoll scenario download --target http://127.0.0.1:8080
        PLIMSOLL_USER=admin plimsoll scenario save-article --target http://127.0.0.1:8080 \\
            --password-file password.txt --i-may-change-this-site
    """  # noqa: D301 \b is click's: keep these lines as they are


@scenario.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Show what each scenario does, needs, and changes on the site.

    \b
    Examples:
        plimsoll scenario list

    Exit codes: 0 done; 2 wrong usage.
    """  # noqa: D301 \b is click's: keep these lines as they are
    if as_json:
        keys = ("name", "does", "needs", "changes")
        click.echo(
            json.dumps([{key: getattr(entry, key) for key in keys} for entry in list_scenarios()], indent=2)
        )
        return
    for entry in list_scenarios():
        click.echo(entry.name)
        click.echo(f"    does     {entry.does}")
        click.echo(f"    needs    {entry.needs}")
        click.echo(f"    changes  {entry.changes or 'nothing'}")


def _command(entry: Scenario) -> click.Command:
    from plimsoll.scenarios.running.settings import cautions, click_options, validate_options

    model = entry.settings()
    consent = " --i-may-change-this-site" if entry.changes else ""

    @click.command(
        entry.name,
        params=click_options(model),
        short_help=entry.does,
        help=f"{entry.does[0].upper()}{entry.does[1:]}.\n\n\b\nExamples:\n"
        f"    plimsoll scenario {entry.name} --target http://127.0.0.1:8080{consent}\n\n"
        f"Needs {entry.needs}. Changes on the site: {entry.changes or 'nothing'}.\n\n"
        "Exit codes: 0 all went well; 1 it ran, and a step failed or it was interrupted; 2 wrong usage.",
    )
    @json_option
    @progress_option
    @metrics_options
    def call(
        as_json: bool, progress: bool | None, metrics: str | None, metrics_remote: bool, **options: Any
    ) -> None:
        module = entry.load()  # first: Locust patches what is imported here, and by checks of settings
        from plimsoll.analysis.evidence.summary import outcome_lines
        from plimsoll.rundir.read import read_json

        settings = validate_options(model, options)
        for caution in cautions(settings):
            _say(caution)
        if metrics:
            settings.out.mkdir(parents=True, exist_ok=True)
        live = LiveFigures(metrics, metrics_remote).show(settings.out, _say)
        with live, progress_bar(entry.name, "iterations", is_shown(progress)) as advance:
            directory, well = module.run(settings, advance, _say)
        if as_json:
            summary = read_json(directory / SUMMARY_FILE)
            click.echo(json.dumps({"directory": str(directory), **summary}, indent=2))
        else:
            click.echo("\n".join(outcome_lines(directory)))
        raise SystemExit(0 if well else 1)

    return call


def _say(text: str) -> None:
    print(text, file=sys.stderr)
