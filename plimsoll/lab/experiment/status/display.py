"""Shows an experiment while it lasts: in place on a terminal, else as lines with times."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console
from rich.live import Live
from rich.text import Text

from plimsoll.common.hostile import printable
from plimsoll.lab.experiment.status.look import Watch
from plimsoll.lab.experiment.status.model import Status
from plimsoll.lab.experiment.status.news import heartbeat, is_brief
from plimsoll.lab.experiment.status.text import lines

LOOK_S, HEARTBEAT_S = 1.0, 60.0

Changes = Callable[[Status | None, Status], Iterator[str]]


def stamped(text: str) -> str:
    """Return a line of text with the local time before it, harmless for terminals and logs."""
    return f"{datetime.now():%Y-%m-%d %H:%M:%S} {printable(text, 2000)}"


class Lines:
    """Tells what changed, and once a minute what is going on. `say` gets each line."""

    def __init__(self, changes: Changes, say: Callable[[str], None]) -> None:
        self._changes, self._say = changes, say
        self._before: Status | None = None
        self._said_s = time.monotonic()

    def show(self, status: Status) -> None:
        """Take the next look."""
        said = list(self._changes(self._before, status))
        if not said and status.state == "running" and time.monotonic() - self._said_s >= HEARTBEAT_S:
            said = [heartbeat(status)]
        for line in said:
            self._say(line)
            self._said_s = time.monotonic()
        if said or self._before is None or not is_brief(status):
            self._before = status


@contextmanager
def display(console: Console) -> Iterator[Callable[[Status], None]]:
    """Show looks in place, on a terminal; nothing of it stays."""
    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield lambda status: live.update(Text("\n".join(lines(status)), no_wrap=True), refresh=True)


@contextmanager
def shown_beside(watch: Callable[[], Watch], fancy: bool, changes: Changes) -> Iterator[None]:
    """Show the experiment in a thread while the block carries it out; a look that fails shows nothing."""
    over = threading.Event()

    def say(line: str) -> None:
        print(stamped(line), file=sys.stderr, flush=True)

    def looks(show: Callable[[Status], None]) -> None:
        looker = watch()
        while not over.wait(LOOK_S):
            try:
                show(looker.look())
            except Exception:  # noqa: S112 whatever it is: the experiment matters more
                continue

    def run() -> None:
        if not fancy:
            looks(Lines(changes, say).show)
            return
        with display(Console(stderr=True)) as show:
            looks(show)

    thread = threading.Thread(target=run, name="status", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(5.0)
