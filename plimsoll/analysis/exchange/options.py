"""What the commands of this package offer: the options that all imports share, the formats of an export."""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import click

from plimsoll.common.commands import out_option


def run_options(scenario: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the options that say where the run directory goes and what is noted in it."""
    options = (
        click.option(
            "--target",
            metavar="URL",
            help="The site's base URL, to be recorded: the files do not contain it.",
        ),
        click.option(
            "--scenario",
            metavar="NAME",
            default=scenario,
            show_default=True,
            callback=_plain,
            help="Name of the scenario.",
        ),
        out_option("DIR", "Folder for run directories.", default="results", show_default=True),
    )
    return lambda command: reduce(lambda decorated, option: option(decorated), options, command)


def _plain(ctx: click.Context, parameter: click.Parameter, name: str) -> str:
    """Return `name` if the name of a directory can be made of it."""
    if 0 < len(name) <= 60 and name.isascii() and name.replace("-", "").replace("_", "").isalnum():
        return name
    raise click.BadParameter("use letters, digits, '-' and '_'", ctx, parameter)


class Format(NamedTuple):
    """`holds` completes the help of `--to`; `prepare` says where the format's `Prepare` is."""

    holds: str
    prepare: str


# What writes one is loaded when it is asked for.
FORMATS = {
    "csv": Format("a row a request", "csvfile:CSV"),
    "parquet": Format("a row a request, in typed columns", "parquetfile:prepare"),
    "hdr": Format("an HdrHistogram interval log", "hdrlog:HDR"),
    "prometheus": Format("the run's figures", "prometheus:prepare"),
}
