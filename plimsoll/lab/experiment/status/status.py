"""What an experiment does now, on a terminal or line by line; `plimsoll run` shows it meanwhile, too."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from plimsoll.common.hostile import printable
from plimsoll.lab.experiment.status.text import describe_news, describe_now, is_brief, lines
from plimsoll.lab.experiment.status.watch import Status, StatusReader

LOOK_S, HEARTBEAT_S = 1.0, 60.0
Changes = Callable[[Status | None, Status], Iterator[str]]


@contextlib.contextmanager
def open_display(as_json: bool) -> Iterator[Callable[[Status], None]]:
    """Yield what shows each status: in place on a terminal, else a line for each change."""
    console = Console()
    if as_json:
        latest: list[Status] = []
        lines_of_change = Lines(
            describe_news, lambda _: click.echo(latest[-1].model_dump_json(by_alias=True))
        )

        def show(looked: Status) -> None:
            latest[:] = [looked]
            lines_of_change.show(looked)

        yield show
    elif console.is_terminal:
        with display(console) as update:
            yield update
    else:
        yield Lines(describe_news, lambda line: click.echo(add_time(printable(line, 2000)))).show


def add_time(text: str) -> str:
    """Return a line of text with the local time before it, harmless for terminals and logs."""
    return f"{datetime.now():%Y-%m-%d %H:%M:%S} {printable(text, 2000)}"


class Lines:
    """Reports what changed, and once a minute what is going on. `say` gets each line."""

    def __init__(self, changes: Changes, say: Callable[[str], None]) -> None:
        self._changes, self._say = changes, say
        self._before: Status | None = None
        self._said_s = time.monotonic()

    def show(self, status: Status) -> None:
        """Report the next status."""
        said = list(self._changes(self._before, status))
        if not said and status.state == "running" and time.monotonic() - self._said_s >= HEARTBEAT_S:
            said = [describe_now(status)]
        for line in said:
            self._say(line)
            self._said_s = time.monotonic()
        if said or self._before is None or not is_brief(status):
            self._before = status


@contextmanager
def display(console: Console) -> Iterator[Callable[[Status], None]]:
    """Show the status in place on a terminal, and erase it at the end."""
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield lambda status: live.update(Text("\n".join(lines(status)), no_wrap=True), refresh=True)


@contextmanager
def show_beside(watch: Callable[[], StatusReader], fancy: bool, changes: Changes) -> Iterator[None]:
    """Show the experiment in a thread while the block carries it out; nothing if it cannot be read."""
    over = threading.Event()

    def say(line: str) -> None:
        print(add_time(line), file=sys.stderr, flush=True)

    def run() -> None:
        reader = watch()
        with ExitStack() as stack:
            show: Callable[[Status], None] = Lines(changes, say).show
            if fancy:
                show = stack.enter_context(display(Console(stderr=True)))
            while not over.wait(LOOK_S):
                try:
                    show(reader.read())
                except Exception:  # noqa: S112 whatever it is: the experiment matters more
                    continue

    thread = threading.Thread(target=run, name="status", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(5.0)
