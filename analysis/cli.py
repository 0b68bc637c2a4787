"""The command `plimsoll`: what was typed becomes calls; what comes back becomes text and exit codes."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from analysis import __version__
from analysis.errors import PlimsollError
from analysis.hostile import printable
from analysis.progress import progress_bar
from analysis.report import make_report


class _Refused(click.ClickException):
    exit_code = 2


class _Plimsoll(click.Group):
    """Turns what the user can put right into one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PlimsollError as error:
            raise _Refused(printable(str(error), 2000)) from None


@click.group(cls=_Plimsoll, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="plimsoll")
def main() -> None:
    """See what happens to the slowest one request in a thousand.

    Exit codes: 0 done; 1 it ran and the answer is no; 2 wrong usage or unreadable input.
    """


@main.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where to write the report. Default: report.html in the first DIR.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the statistics as JSON on standard output.")
@click.option(
    "--progress/--no-progress",
    default=None,
    help="Show a progress bar on standard error. Default: when that is a terminal.",
)
def report(directories: tuple[Path, ...], out: Path | None, as_json: bool, progress: bool | None) -> None:
    """Write a report on one or more run directories: one HTML file that needs no network.

    \b
    Examples:
        plimsoll report results/latest
        plimsoll report results/nvme results/sata --out comparison.html
        plimsoll report results/latest --json | jq '.runs[0].response_ms'
    """  # noqa: D301 \b is click's: keep these lines as they are
    shown = sys.stderr.isatty() if progress is None else progress
    with progress_bar("reading", "requests", shown) as advance:
        made = make_report(directories, out, advance)
    if as_json:
        click.echo(json.dumps(made.as_json(), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(made.lines()))
