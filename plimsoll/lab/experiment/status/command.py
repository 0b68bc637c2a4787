"""`plimsoll lab status`: what an experiment does now, in another process than the one that carries it out."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from rich.console import Console

from plimsoll.common.hostile import printable
from plimsoll.lab.experiment.find import find_experiment
from plimsoll.lab.experiment.status.display import LOOK_S, Lines, display, stamped
from plimsoll.lab.experiment.status.look import Watch
from plimsoll.lab.experiment.status.model import Status
from plimsoll.lab.experiment.status.news import changes
from plimsoll.lab.experiment.status.text import lines

_WELL = ("running", "finished")


@click.command()
@click.argument("file", metavar="[FOLDER|LAB.yml]", required=False, type=click.Path(path_type=Path))
@click.option("--watch", is_flag=True, help="Go on until nothing runs any more.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the status as JSON on standard output; with --watch one line a change, and one a minute.",
)
@click.pass_context
def status(ctx: click.Context, file: Path | None, watch: bool, as_json: bool) -> None:
    """Show what an experiment does now: its run, phase and figures so far, and when it will end.

    The experiment is the one in that folder, the last one of that lab.yml, or the last in results/. Looking
    does not disturb it. Where --watch writes to no terminal, it prints a line with the time for each change,
    and one a minute.

    \b
    Examples:
        plimsoll lab status examples/one-machine.yml --watch
        plimsoll lab status results/one-machine-20261121T040512Z --json | jq .ends_at

    Exit codes: 0 it runs, or all runs are finished; 1 nothing runs, and not all runs are finished; 2 there
    is no such experiment.
    """  # noqa: D301 \b is click's: keep these lines as they are
    watched = Watch(find_experiment(file))
    with contextlib.suppress(OSError):
        os.nice(10)  # the load comes first
    last = watched.look()
    if watch:
        with contextlib.suppress(KeyboardInterrupt), _shown(as_json) as show:
            show(last)
            while last.state == "running":
                time.sleep(LOOK_S)
                last = watched.look()
                show(last)
    if as_json and not watch:
        click.echo(last.model_dump_json(indent=2, by_alias=True))
    elif not as_json and (not watch or Console().is_terminal):
        click.echo("\n".join(lines(last)))
    ctx.exit(0 if last.state in _WELL else 1)


@contextlib.contextmanager
def _shown(as_json: bool) -> Iterator[Callable[[Status], None]]:
    console = Console()
    if as_json:
        latest: list[Status] = []
        told = Lines(changes, lambda _: click.echo(latest[-1].model_dump_json(by_alias=True)))

        def show(looked: Status) -> None:
            latest[:] = [looked]
            told.show(looked)

        yield show
    elif console.is_terminal:
        with display(console) as update:
            yield update
    else:
        yield Lines(changes, lambda line: click.echo(stamped(printable(line, 2000)))).show
