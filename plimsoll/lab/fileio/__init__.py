"""Measure a volume: sysbench's fileio matrix, threads × tests with p99.9; fsync times by fio.

`plimsoll fileio` measures it on this machine; `fileio` in lab.yml on an experiment's.
"""

import json
from pathlib import Path
from typing import Any

import click

from plimsoll.common.commands import json_option, out_option, progress_option
from plimsoll.common.progress import is_shown, progress_bar


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--volume", metavar="NAME", help="Name of the volume in the table. Default: DIR.")
@click.option(
    "--file-size", metavar="SIZE", default="2G", show_default=True, help="Total size of all test files."
)
@click.option(
    "--threads",
    metavar="N,N…",
    help="Numbers of threads to measure with.  [default: 1,8,12,16,20,24,32; with --fsync: 1,8]",
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
    type=click.Choice(["etcd"]),
    help="Measure with this recipe only. By default it is the first cell.",
)
@out_option(
    "FILE",
    "File for finished cells, one on each line.",
    default="results/fileio.jsonl",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
)
@click.option(
    "--resume", is_flag=True, help="Continue after a crash: measure only the cells that FILE lacks."
)
@json_option
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
        plimsoll fileio . --file-size 64M --threads 1,8 --tests rndrd,rndwr --time-s 1
        plimsoll fileio /srv/nvme --fsync --volume nvme-p3600
        plimsoll fileio . --fsync --preset etcd --out results/fileio-etcd.jsonl

    With --fsync, fio measures how long an fsync takes there: by etcd's recipe first, then each call with each
    test, engine, block size and number of threads.

    DIR is a folder on the volume. The test files go into a separate folder below it and are removed at
    the end, even after Ctrl-C.

    Exit codes: 0 all cells are measured; 1 interrupted; 2 wrong usage, or sysbench or fio failed.
    """  # noqa: D301 \b is click's: keep these lines as they are
    import asyncio

    from plimsoll.lab.fileio.asked import check_settings, measure
    from plimsoll.lab.fileio.measure import make_bench, table

    settings = check_settings(directory, given, fsync=fsync)
    try:
        with progress_bar(make_bench(settings).program, "cells", is_shown(progress)) as show:
            cells = asyncio.run(measure(settings, out, resume, show))
    except KeyboardInterrupt:
        click.echo(f"Interrupted. Finished cells are in {out}: continue with --resume.", err=True)
        ctx.exit(1)
    if as_json:
        click.echo(json.dumps({"format": 1, "cells": [cell.as_json() for cell in cells]}, indent=2))
    else:
        click.echo(table(cells))
