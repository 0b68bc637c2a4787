"""The options that `plimsoll ab` and `plimsoll rehearse` share: what is replayed, how often, held to what."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from plimsoll.common.commands import json_option, out_option, progress_option

_PATH = click.Path(path_type=Path)
_SHARED: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
    click.option("--insecure", is_flag=True, help="Accept any certificate."),
    click.option("--format", "log_format", metavar="F", help="Format of the log. Default: detected."),
    click.option(
        "--speed", metavar="S", type=float, default=1.0, show_default=True, help="Multiple of the log's pace."
    ),
    click.option(
        "--gate",
        "gates",
        metavar="FIGURE:LIMIT",
        multiple=True,
        help="A limit: p99.9:1.10x (times the baseline's), p99:480ms, errors:0.1% (more than the "
        "baseline's).  [default: p99.9:1.10x and errors:0.1%]",
    ),
    click.option("--runs", metavar="N", type=int, help="Runs a side, an even number.  [default: 8]"),
    click.option(
        "--within", metavar="TIME", help="As many runs as fit into 45m, 1h or so, in place of --runs."
    ),
    click.option(
        "--duration",
        metavar="TIME",
        help="Length of a run.  [default: what the limits' percentiles take, at most 5m]",
    ),
    click.option(
        "--looks",
        type=click.Choice(["blocks", "end"]),
        default="blocks",
        show_default=True,
        help="Decide after each block of four runs, or once, at the end, which finds a little more.",
    ),
    click.option("--resume", metavar="DIR", type=_PATH, help="Continue what was interrupted."),
    out_option("DIR", "Folder for results.", default="results", show_default=True),
    json_option,
    progress_option,
]


def trial_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options."""
    for option in reversed(_SHARED):
        function = option(function)
    return function
