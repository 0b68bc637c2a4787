"""Signs of progress: a bar on standard error, live figures for Prometheus."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from plimsoll.common.errors import SettingsError
from plimsoll.common.programs import built_replay_program


def is_shown(wanted: bool | None) -> bool:
    """Return whether to show a bar: as wanted, else when standard error is a terminal."""
    return sys.stderr.isatty() if wanted is None else wanted


@contextmanager
def progress_bar(what: str, unit: str, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a bar while the block runs, if `shown`; yields what to call with (done, total)."""
    if not shown:
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

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


_METRICS_OPTIONS: list[tuple[str, dict[str, Any]]] = [
    (
        "--metrics",
        {
            "metavar": "HOST:PORT",
            "help": "Serve live figures to Prometheus during the run, at this address under /metrics.",
        },
    ),
    (
        "--metrics-remote",
        {"is_flag": True, "help": "With --metrics: allow an address that other machines can reach."},
    ),
]
_BEGINS = "replay: live figures: "
_LAST_WORDS_S = 5


def metrics_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options."""
    for flag, attributes in reversed(_METRICS_OPTIONS):
        function = click.option(flag, **attributes)(function)
    return function


@dataclass(frozen=True)
class LiveFigures:
    """Where to serve live figures; nowhere without an address."""

    address: str | None
    remote: bool = False

    @contextmanager
    def show(self, folder: Path, say: Callable[[str], None]) -> Iterator[None]:
        """Serve live figures of the runs in `folder`, which exists, during the block. Raises SettingsError.

        A separate program with the lowest priority serves them.
        """
        if self.address is None:
            if self.remote:
                raise SettingsError("--metrics-remote is only for --metrics: leave it out")
            yield
            return
        watching = subprocess.Popen(  # noqa: S603 our own program
            self._command(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is for the run, whose end is shown
        )
        try:
            say(_await_address(watching))
            yield
        finally:
            _stop(watching, say)

    def _command(self, folder: Path) -> list[str]:
        remote = ["--metrics-remote"] if self.remote else []
        words = ["watch", str(folder.resolve()), f"--metrics={self.address}", *remote, "--until-eof"]
        return ["nice", "-n", "19", built_replay_program(), *words]


def _await_address(watching: subprocess.Popen[str]) -> str:
    """Return the address of the figures. Raises SettingsError if they cannot be served."""
    assert watching.stdout  # noqa: S101 it is a pipe
    line = watching.stdout.readline().strip()
    if not line.startswith(_BEGINS):
        raise SettingsError(line.removeprefix("replay: ") or "--metrics: plimsoll watch did not start")
    return f"Live figures: {line.removeprefix(_BEGINS)}"


def _stop(watching: subprocess.Popen[str], say: Callable[[str], None]) -> None:
    """Stop it; report what it could not read."""
    early = watching.poll()
    try:
        said, _ = watching.communicate(timeout=_LAST_WORDS_S)  # closes its standard input
    except subprocess.TimeoutExpired:
        watching.kill()
        said, _ = watching.communicate()
    for line in said.splitlines():
        say(line)
    if early:
        say(f"The live figures ended before the run (exit code {early}).")
