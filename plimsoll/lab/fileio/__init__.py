"""Measure a volume: sysbench's fileio matrix, threads × tests with p99.9; fsync times by fio.

`plimsoll fileio` measures it on this machine; `fileio` in lab.yml on an experiment's.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar, progress_option
from plimsoll.common.validation import Problem, problems_of
from plimsoll.lab.fileio.fio import PRESETS, FsyncMatrix, FsyncSettings
from plimsoll.lab.fileio.measure import Settings, cache_caution, make_bench, measure_cells, table
from plimsoll.lab.fileio.sysbench import THREADS, FileioSettings, Matrix
from plimsoll.lab.machine import LocalMachine
from plimsoll.rundir.volumes import AnyCell

_LISTS = ("threads", "tests", "calls", "engines", "block_sizes")
_OF_FSYNC = tuple(name for name in FsyncMatrix.model_fields if name not in Matrix.model_fields)


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--volume", metavar="NAME", help="Name of the volume in the table. Default: DIR.")
@click.option(
    "--file-size", metavar="SIZE", default="2G", show_default=True, help="Total size of all test files."
)
@click.option(
    "--threads",
    metavar="N,N…",
    help=f"Numbers of threads to measure with.  [default: {','.join(map(str, THREADS))}; with --fsync: 1,8]",
)
@click.option(
    "--tests", metavar="T,T…", help="Tests to run.  [default: all five of sysbench's; with --fsync: seqwr]"
)
@click.option("--time-s", metavar="N", default="30", show_default=True, help="Seconds to measure each cell.")
@click.option("--direct", is_flag=True, help="Bypass the page cache (O_DIRECT).")
@click.option(
    "--fsync",
    is_flag=True,
    help="Measure fsyncs by fio, apart from the writes, instead of sysbench's matrix.",
)
@click.option("--calls", metavar="C,C…", help="Calls to measure.  [default: fdatasync,fsync]")
@click.option("--engines", metavar="E,E…", help="fio's engines to measure with.  [default: sync]")
@click.option("--block-sizes", metavar="S,S…", help="Sizes of a write.  [default: 4K,16K]")
@click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    help="Measure with this recipe only. By default it is the first cell.",
)
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
    fsync: bool,
    **given: Any,
) -> None:
    """Measure a volume with sysbench: each test with each number of threads, in blocks of 16 KiB.

    \b
    Examples:
        plimsoll fileio /srv/nvme --file-size 64G --volume nvme-p3600
        plimsoll fileio /srv/nvme --file-size 64M --threads 1,8 --tests rndrd,rndwr --time-s 5
        plimsoll fileio /srv/nvme --fsync --volume nvme-p3600
        plimsoll fileio /srv/nvme --fsync --preset etcd --out results/fileio-etcd.jsonl

    With --fsync, fio measures how long an fsync takes there: by etcd's recipe first, then each call with each
    test, engine, block size and number of threads.

    DIR is a folder on the volume. The test files go into a separate folder below it and are removed at
    the end, even after Ctrl-C.

    Exit codes: 0 all cells are measured; 1 interrupted; 2 wrong usage, or sysbench or fio failed.
    """  # noqa: D301 \b is click's: keep these lines as they are
    settings = check_settings(directory, given, fsync=fsync)
    try:
        with progress_bar(make_bench(settings).program, "cells", is_shown(progress)) as show:
            cells = asyncio.run(_measure(settings, out, resume, show))
    except KeyboardInterrupt:
        click.echo(f"Interrupted. Finished cells are in {out}: continue with --resume.", err=True)
        ctx.exit(1)
    if as_json:
        click.echo(json.dumps({"format": 1, "cells": [cell.as_json() for cell in cells]}, indent=2))
    else:
        click.echo(table(cells))


async def _measure(
    settings: Settings, out: Path, resume: bool, show: Callable[[int, int], None]
) -> list[AnyCell]:
    machine = LocalMachine()
    try:
        if isinstance(settings, FileioSettings):
            caution = cache_caution(settings, await machine.read_text("/proc/meminfo"))
            if caution:
                click.echo(f"Caution: {printable(caution, 1000)}", err=True)
        return await measure_cells(machine, settings, out, resume=resume, on_progress=show)
    finally:
        await machine.close()


def check_settings(
    directory: Path, given: Mapping[str, Any], *, fsync: bool = False
) -> FileioSettings | FsyncSettings:
    """Return checked settings; lists come as `1,8`. Raises SettingsError with all problems."""
    values = {name: value for name, value in given.items() if value is not None}
    for name in _LISTS:
        if name in values:
            values[name] = [part.strip() for part in values[name].split(",") if part.strip()]
    alien = [] if fsync else [name for name in _OF_FSYNC if name in values]
    said = [f"--{_option_name(name)}: goes with --fsync: add that, or leave it out" for name in alien]
    model = FsyncSettings if fsync else FileioSettings
    kept = {name: value for name, value in values.items() if name not in alien}
    try:
        settings = model.model_validate(kept | {"directory": str(directory.resolve())})
    except ValidationError as error:
        problems = problems_of(error)
        # A list whose items are refused counts as too short as well: that is not a problem of its own.
        items = {_option(one) for one in problems if len(one.at) > 1}
        refused = [one for one in problems if len(one.at) > 1 or _option(one) not in items]
        said += [f"--{_option(one)}: {one.text if one.at else _option_name(one.text)}" for one in refused]
    if said:
        raise SettingsError("\n".join(said))
    return settings


def _option(problem: Problem) -> str:
    """Return the option that is at fault; of a preset with others beside it, that."""
    return _option_name(str(problem.at[0])) if problem.at else "preset"


def _option_name(name: str) -> str:
    return name.replace("_", "-")
