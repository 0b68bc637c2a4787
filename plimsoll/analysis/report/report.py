"""`plimsoll report`: run directories become one page."""

import gc
import json
import os
from pathlib import Path

import click

from plimsoll.common.commands import json_option, out_option, progress_option
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar
from plimsoll.common.units import counted

_MOST_UNCOLLECTED = 50_000  # new objects: nearly all of them are modules and templates, which stay


def _formats(_ctx: click.Context, _option: click.Parameter, value: str | None) -> list[str]:
    if value is None:
        return []
    from plimsoll.analysis.page.shell import FORMATS

    wanted = [part.strip() for part in value.split(",")]
    if strange := [part for part in wanted if part not in FORMATS]:
        raise click.BadParameter(
            f"{printable(strange[0])!r} is not a format; there are {' and '.join(FORMATS)}"
        )
    return [name for name in FORMATS if name in wanted]


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@out_option("FILE", "File for the report. Default: report.html in the first DIR.")
@click.option(
    "--against-log",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Hold replays against their log, which plimsoll import accesslog made DIR of.",
)
@json_option
@click.option(
    "--figures",
    metavar="svg,png",
    callback=_formats,
    help="Also save each chart in report-figures/ beside the report, as svg, png or both.",
)
@progress_option
def report(
    directories: tuple[Path, ...],
    out: Path | None,
    against_log: Path | None,
    as_json: bool,
    figures: list[str],
    progress: bool | None,
) -> None:
    """Write a report on one or more run directories: one HTML file that needs no network.

    \b
    Examples:
        plimsoll report results/latest
        plimsoll report results/before results/after --out comparison.html
        plimsoll report results/two-servers-*
        plimsoll report results/before results/after results/fileio.jsonl
        plimsoll report results/latest --figures svg,png
        plimsoll report results/replayed/latest --against-log results/imported/latest
        plimsoll report results/latest --json | jq '.runs[0].response_ms'

    A folder of run directories stands for those in it. DIR can also be a file that plimsoll fileio wrote.

    Exit codes: 0 the report is written; 2 wrong usage, or no run can be read.
    """  # noqa: D301 \b is click's: keep these lines as they are
    gc.set_threshold(_MOST_UNCOLLECTED)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read as numpy loads: more would only spin
    from plimsoll.analysis.page.shell import draw_pictures
    from plimsoll.analysis.report.making import make_report

    with progress_bar("reading", "requests", is_shown(progress)) as advance:
        made = make_report(directories, out, advance, against_log)
    if as_json:
        click.echo(json.dumps(made.as_json(), indent=2, allow_nan=False))
    else:
        click.echo("\n".join(made.lines()))
    if figures:
        pictures = draw_pictures(made.path, figures)
        if not as_json:
            folder = printable(str(pictures[0].parent), 4096)
            click.echo(f"figures: {folder} ({counted(len(pictures), 'file')})")
