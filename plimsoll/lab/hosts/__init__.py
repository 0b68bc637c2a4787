"""`plimsoll hosts`: one command on many machines, which hosts.yml lists."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from plimsoll.common.commands import CommandGroup, json_option

if TYPE_CHECKING:
    from plimsoll.lab.hosts.everywhere import HostOutcome


@click.group(cls=CommandGroup)
def hosts() -> None:
    """Run commands on the machines of a lab.

    \b
    Examples:
        plimsoll hosts exec --hosts hosts.yml -- uptime
    """  # noqa: D301 \b is click's: keep these lines as they are


@hosts.command("exec")
@click.argument("command", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--hosts", "file", metavar="FILE", type=click.Path(path_type=Path), help="YAML file that lists the hosts."
)
@click.option(
    "--host",
    "names",
    metavar="NAME",
    multiple=True,
    help="A host of the file; without a file, user@host:port. May be repeated.",
)
@click.option(
    "--group", "groups", metavar="G", multiple=True, help="Hosts of the file in this group. May be repeated."
)
@click.option(
    "--parallel",
    metavar="N",
    default=32,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Number of hosts at a time.",
)
@click.option(
    "--timeout-s",
    metavar="NUMBER",
    default=600.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True, max=86400),
    help="Seconds after which a command that still runs is ended and counts as failed.",
)
@json_option
@click.pass_context
def exec_(
    ctx: click.Context,
    command: tuple[str, ...],
    file: Path | None,
    names: tuple[str, ...],
    groups: tuple[str, ...],
    parallel: int,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Run a command on many hosts over SSH, and show the output of each as it ends.

    \b
    Examples:
        plimsoll hosts exec --hosts hosts.yml -- uptime
        plimsoll hosts exec --hosts hosts.yml --group db -- sh -c 'free -m | grep Mem'
        plimsoll hosts exec --host root@127.0.0.1:2222 --parallel 8 --json -- du -sh /srv

    The command is a list of arguments, not a line for a shell; for pipes and redirections run a shell.

    Exit codes: 0 it ended with 0 on all hosts; 1 it failed on some, or was interrupted; 2 wrong usage.
    """  # noqa: D301 \b is click's: keep these lines as they are
    import asyncio

    from plimsoll.lab.hosts.everywhere import outcome_data, outcome_lines, run_everywhere, summary_lines
    from plimsoll.lab.hosts.hostsfile import choose_hosts

    where = choose_hosts(file, names, groups)
    outcomes: list[HostOutcome] = []

    def each(outcome: "HostOutcome") -> None:
        outcomes.append(outcome)
        if not as_json:
            click.echo("\n".join(outcome_lines(outcome)))

    try:
        asyncio.run(run_everywhere([host.machine() for host in where], command, parallel, timeout_s, each))
    except KeyboardInterrupt:
        click.echo("interrupted: the commands that still ran were ended", err=True)
    except BaseExceptionGroup as group:  # standard output was closed, say: click knows what to do
        raise group.exceptions[0] from None
    done = {outcome.host for outcome in outcomes}
    not_done = [host.name for host in where if host.name not in done]
    if as_json:
        click.echo(json.dumps(outcome_data(command, outcomes, not_done), indent=2))
    else:
        click.echo("\n".join(summary_lines(outcomes, not_done)))
    ctx.exit(0 if not not_done and all(outcome.well for outcome in outcomes) else 1)
