"""`plimsoll import grinder`."""

import json
from pathlib import Path

import click

from plimsoll.analysis.exchange.grinder import import_grinder
from plimsoll.analysis.exchange.grinder_names import read_test_names
from plimsoll.analysis.exchange.options import json_option, out_option, scenario_option, target_option
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar, progress_option


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@out_option
@scenario_option("grinder")
@target_option
@click.option(
    "--names",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What the tests are called: a number and a name a line. Default: as the workers' own logs say.",
)
@click.option(
    "--composite",
    metavar="NUMBER",
    multiple=True,
    type=int,
    help="A test that encloses others: a measure, and no request. May be repeated. Default: as the workers' "
    "own logs say.",
)
@json_option
@progress_option
@click.pass_context
def grinder(
    ctx: click.Context,
    files: tuple[Path, ...],
    out: Path,
    scenario: str,
    target: str | None,
    names: Path | None,
    composite: tuple[int, ...],
    as_json: bool,
    progress: bool | None,
) -> None:
    """Import The Grinder's data logs, gzip or not: those of all workers of one run become one run directory.

    \b
    Examples:
        plimsoll import grinder log/load-*-data.log --target http://10.0.0.5
        plimsoll import grinder results/latest/grinder-0-data.log

    Exit codes: 0 everything was read; 1 imported, but The Grinder was killed while it wrote, or lines could
    not be read; 2 a file that is no data log.
    """  # noqa: D301 \b is click's: keep these lines as they are
    called = {} if names is None else read_test_names(names)
    with progress_bar("reading", "bytes", is_shown(progress)) as advance:
        imported = import_grinder(
            files,
            out,
            scenario=scenario,
            target=target,
            names=called,
            composite=composite,
            progress=advance,
        )
    if as_json:
        click.echo(json.dumps({"format": 1, "runs": [imported.as_json()]}, indent=2))
    else:
        click.echo("\n".join(printable(line, 4096) for line in imported.lines()))
    ctx.exit(0 if imported.whole else 1)
