"""`plimsoll import`: other programs' results become run directories."""

import json
from pathlib import Path

import click

from plimsoll.analysis.exchange.accesslog_command import accesslog
from plimsoll.analysis.exchange.grinder_command import grinder
from plimsoll.analysis.exchange.k6 import import_k6
from plimsoll.analysis.exchange.lines import ImportingError
from plimsoll.analysis.exchange.locust_command import locust
from plimsoll.analysis.exchange.options import json_option, out_option, scenario_option, target_option
from plimsoll.analysis.exchange.result import ImportResult
from plimsoll.common.hostile import printable


@click.group(name="import")
def import_() -> None:
    """Make run directories from the results of other programs."""


import_.add_command(accesslog)
import_.add_command(grinder)
import_.add_command(locust)


@import_.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@out_option
@scenario_option("k6")
@target_option
@click.option(
    "--timeout-s",
    metavar="NUMBER",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="The time-out of the script's requests: what one counts that timed out without a connection.",
)
@json_option
@click.pass_context
def k6(
    ctx: click.Context,
    files: tuple[Path, ...],
    out: Path,
    scenario: str,
    target: str | None,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Import what `k6 run --out json=FILE` or `--out csv=FILE` wrote, gzip or not: a run directory each.

    \b
    Examples:
        plimsoll import k6 result.json.gz --target http://10.0.0.5
        plimsoll report results/latest

    Exit codes: 0 everything was read; 1 imported, but k6 was killed while it wrote, or lines could not be
    read; 2 a file that holds nothing of k6.
    """  # noqa: D301 \b is click's: keep these lines as they are
    if missing := [path for path in files if not path.is_file()]:
        raise ImportingError("\n".join(f"{path}: there is no such file" for path in missing))
    imported = []
    for path in files:
        one = import_k6(path, out, scenario=scenario, target=target, timeout_s=timeout_s)
        imported.append(one)
        if not as_json:
            click.echo("\n".join(printable(line, 4096) for line in one.lines()))
    if as_json:
        click.echo(json.dumps({"format": 1, "runs": [one.as_json() for one in imported]}, indent=2))
    ctx.exit(_exit_code(imported))


def _exit_code(imported: list[ImportResult]) -> int:
    return 0 if all(one.whole for one in imported) else 1
