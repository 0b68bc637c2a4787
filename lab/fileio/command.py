"""`plimsoll fileio`: sysbench's matrix on a volume of this machine."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from lab.fileio.cell import Cell
from lab.fileio.matrix import cache_caution, run_matrix
from lab.fileio.settings import TESTS, THREADS, FileioSettings
from lab.fileio.table import table
from lab.machine import LocalMachine
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.problems import Problem, problems_of
from plimsoll.common.progress import is_shown, progress_bar, progress_option


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--volume", metavar="NAME", help="Name of the volume in the table. Default: DIR.")
@click.option(
    "--file-size", metavar="SIZE", default="2G", show_default=True, help="Total size of all test files."
)
@click.option(
    "--threads",
    metavar="N,N…",
    default=",".join(map(str, THREADS)),
    show_default=True,
    help="Numbers of threads to measure with.",
)
@click.option("--tests", metavar="T,T…", default=",".join(TESTS), show_default=True, help="Tests to run.")
@click.option("--time-s", metavar="N", default="30", show_default=True, help="Seconds to measure each cell.")
@click.option("--direct", is_flag=True, help="Bypass the page cache (O_DIRECT).")
@click.option(
    "--out",
    metavar="FILE",
    default=Path("results/fileio.jsonl"),
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for finished cells, one on each line.",
)
@click.option(
    "--resume", is_flag=True, help="Continue after a crash: measure only the cells that FILE lacks."
)
@click.option("--json", "as_json", is_flag=True, help="Print the cells as JSON on standard output.")
@progress_option
@click.pass_context
def fileio(
    ctx: click.Context,
    /,
    directory: Path,
    out: Path,
    resume: bool,
    as_json: bool,
    progress: bool | None,
    **given: Any,
) -> None:
    """Measure a volume with sysbench: each test with each number of threads, in blocks of 16 KiB.

    DIR is a folder on the volume. The test files go into a folder of their own below it, and are removed at
    the end, also after Ctrl-C.

    \b
    Examples:
        plimsoll fileio /srv/nvme --file-size 64G --volume nvme-p3600
        plimsoll fileio /srv/nvme --file-size 64M --threads 1,8 --tests rndrd,rndwr --time-s 5

    Exit codes: 0 all cells are measured; 1 interrupted; 2 wrong usage, or sysbench failed.
    """  # noqa: D301 \b is click's: keep these lines as they are
    settings = settings_of(directory, given)
    try:
        with progress_bar("sysbench", "cells", is_shown(progress)) as show:
            cells = asyncio.run(_measured(settings, out, resume, show))
    except KeyboardInterrupt:
        click.echo(f"Interrupted. Finished cells are in {out}: continue with --resume.", err=True)
        ctx.exit(1)
    if as_json:
        click.echo(json.dumps({"format": 1, "cells": [asdict(cell) for cell in cells]}, indent=2))
    else:
        click.echo(table(cells))


def settings_of(directory: Path, given: dict[str, Any]) -> FileioSettings:
    """Return checked settings; lists come as `1,8`. Raises SettingsError with all problems."""
    values = {name: value for name, value in given.items() if value is not None}
    for name in ("threads", "tests"):
        values[name] = [part.strip() for part in values[name].split(",") if part.strip()]
    try:
        return FileioSettings.model_validate(values | {"directory": str(directory.resolve())})
    except ValidationError as error:
        problems = problems_of(error)
    # A list whose items are refused counts as too short as well: that is no problem of its own.
    items = {_option(one) for one in problems if len(one.at) > 1}
    refused = [one for one in problems if len(one.at) > 1 or _option(one) not in items]
    raise SettingsError("\n".join(f"--{_option(one)}: {one.text}" for one in refused))


def _option(problem: Problem) -> str:
    return str(problem.at[0]).replace("_", "-")


async def _measured(
    settings: FileioSettings, out: Path, resume: bool, show: Callable[[int, int], None]
) -> list[Cell]:
    machine = LocalMachine()
    try:
        if caution := cache_caution(settings, await machine.read_text("/proc/meminfo")):
            click.echo(f"Caution: {printable(caution, 1000)}", err=True)
        return await run_matrix(machine, settings, out, resume=resume, on_progress=show)
    finally:
        await machine.close()
