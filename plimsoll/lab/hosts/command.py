"""`plimsoll hosts`: one command on many machines."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from plimsoll.lab.hosts.choose import chosen
from plimsoll.lab.hosts.fleet import HostOutcome, run_everywhere
from plimsoll.lab.hosts.settings import HostSettings
from plimsoll.lab.hosts.show import as_json as as_data
from plimsoll.lab.hosts.show import outcome_lines, summary_lines


@click.group()
def hosts() -> None:
    """Run commands on the machines of a lab."""


@hosts.command()
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
@click.option("--json", "as_json", is_flag=True, help="Print the outcomes as JSON on standard output.")
@click.pass_context
def run(
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

    The command is a list of arguments, not a line for a shell; for pipes and redirections run a shell.

    \b
    Examples:
        plimsoll hosts run --hosts hosts.yml -- uptime
        plimsoll hosts run --hosts hosts.yml --group db -- sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches'
        plimsoll hosts run --host root@10.0.0.11 --host root@10.0.0.12:2222 -- rm -rf /srv/clones/old

    Exit codes: 0 it ended with 0 on all hosts; 1 it failed on some, or was interrupted; 2 wrong usage.
    """  # noqa: D301 \b is click's: keep these lines as they are
    where = chosen(file, names, groups)
    outcomes: list[HostOutcome] = []

    def each(outcome: HostOutcome) -> None:
        outcomes.append(outcome)
        if not as_json:
            click.echo("\n".join(outcome_lines(outcome)))

    try:
        asyncio.run(_everywhere(where, command, min(parallel, len(where)), timeout_s, each))
    except KeyboardInterrupt:
        click.echo("interrupted: the commands that still ran were ended", err=True)
    except BaseExceptionGroup as group:  # standard output was closed, say: click knows what to do
        raise group.exceptions[0] from None
    done = {outcome.host for outcome in outcomes}
    not_done = [host.name for host in where if host.name not in done]
    if as_json:
        click.echo(json.dumps(as_data(command, outcomes, not_done), indent=2))
    else:
        click.echo("\n".join(summary_lines(outcomes, not_done)))
    ctx.exit(0 if not not_done and all(outcome.well for outcome in outcomes) else 1)


async def _everywhere(
    where: Sequence[HostSettings],
    command: Sequence[str],
    parallel: int,
    timeout_s: float,
    each: Callable[[HostOutcome], None],
) -> None:
    machines = [host.machine() for host in where]
    await run_everywhere(machines, command, parallel, timeout_s, each)
