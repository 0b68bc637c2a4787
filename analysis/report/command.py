"""`plimsoll report`: run directories become one page."""

import json
from pathlib import Path

import click

from analysis.progress import is_shown, progress_bar, progress_option
from analysis.report.make import make_report


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where to write the report. Default: report.html in the first DIR.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the statistics as JSON on standard output.")
@progress_option
def report(directories: tuple[Path, ...], out: Path | None, as_json: bool, progress: bool | None) -> None:
    """Write a report on one or more run directories: one HTML file that needs no network.

    A folder of run directories stands for those in it. DIR can also be a file that plimsoll fileio wrote.

    \b
    Examples:
        plimsoll report results/latest
        plimsoll report results/nvme results/sata --out comparison.html
        plimsoll report experiments/one-machine
        plimsoll report results/nvme results/sata results/fileio.jsonl
        plimsoll report results/latest --json | jq '.runs[0].response_ms'
    """  # noqa: D301 \b is click's: keep these lines as they are
    with progress_bar("reading", "requests", is_shown(progress)) as advance:
        made = make_report(directories, out, advance)
    if as_json:
        click.echo(json.dumps(made.as_json(), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(made.lines()))
