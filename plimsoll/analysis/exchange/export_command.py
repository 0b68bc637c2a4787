"""`plimsoll export`: a run directory becomes a file that other programs read."""

import json
from pathlib import Path

import click

from plimsoll.analysis.exchange.export import export_run
from plimsoll.analysis.exchange.formats import FORMATS, formats_help
from plimsoll.common.files import STDOUT
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar, progress_option


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--to",
    metavar="FORMAT",
    required=True,
    type=click.Choice(list(FORMATS)),
    help=formats_help(),
)
@click.option(
    "--out",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="Where to write; replaced whole. - is standard output.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON on standard output.")
@progress_option
@click.pass_context
def export(
    ctx: click.Context, directory: Path, to: str, out: Path, as_json: bool, progress: bool | None
) -> None:
    """Write the records or the figures of one run directory as a file for other programs.

    \b
    Examples:
        plimsoll export results/latest --to csv --out requests.csv
        plimsoll export results/latest --to parquet --out requests.parquet
        plimsoll export results/latest --to hdr --out latency.hlog
        plimsoll export results/latest --to prometheus --out /var/lib/node_exporter/plimsoll.prom

    Exit codes: 0 written; 1 written, but the run did not come to its end, so that it is a part; 2 nothing was
    written.
    """  # noqa: D301 \b is click's: keep these lines as they are
    if as_json and out == STDOUT:
        raise click.UsageError("--json and --out - would both write to standard output.", ctx)
    with progress_bar("writing", "requests", is_shown(progress)) as advance:
        exported = export_run(directory, to, out, advance)
    if as_json:
        click.echo(json.dumps(exported.as_json(), indent=2))
    else:
        for line in exported.lines():
            click.echo(printable(line, 4096), err=out == STDOUT)
    ctx.exit(0 if exported.whole else 1)
