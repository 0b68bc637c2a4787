"""A progress bar on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

progress_option = click.option(
    "--progress/--no-progress",
    default=None,
    help="Show a progress bar on standard error. Default: when that is a terminal.",
)


def is_shown(wanted: bool | None) -> bool:
    """Return whether to show a bar: as wanted, else when standard error is a terminal."""
    return sys.stderr.isatty() if wanted is None else wanted


@contextmanager
def progress_bar(what: str, unit: str, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a bar while the block runs, if `shown`; yields what to call with (done, total)."""
    if not shown:
        yield lambda done, total: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
