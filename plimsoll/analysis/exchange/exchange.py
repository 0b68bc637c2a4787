"""`plimsoll import` and `plimsoll export`: which programs' results and which formats there are."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from plimsoll.analysis.exchange.accesslog import accesslog
from plimsoll.analysis.exchange.csvfile import CSV, Format
from plimsoll.analysis.exchange.grinder import grinder
from plimsoll.analysis.exchange.hdrlog import HDR
from plimsoll.analysis.exchange.k6 import k6
from plimsoll.analysis.exchange.locust import locust
from plimsoll.analysis.exchange.parquetfile import PARQUET
from plimsoll.analysis.exchange.prometheus import PROMETHEUS
from plimsoll.common.commands import CommandGroup
from plimsoll.common.errors import OutputError
from plimsoll.common.files import STDOUT, open_output
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar, progress_option
from plimsoll.common.units import counted
from plimsoll.rundir.names import RECORDS
from plimsoll.rundir.read import RunDirectory

PROGRAMS: tuple[click.Command, ...] = (accesslog, grinder, k6, locust)
FORMATS: dict[str, Format] = {each.name: each for each in (CSV, PARQUET, HDR, PROMETHEUS)}


@click.group("import", cls=CommandGroup, commands=PROGRAMS)
def import_() -> None:
    """Make run directories from the results of other programs.

    \b
    Examples:
        plimsoll import accesslog access.log* --backend before
        plimsoll import k6 result.json.gz --target http://10.0.0.5
    """  # noqa: D301 \b is click's: keep these lines as they are


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--to",
    metavar="FORMAT",
    required=True,
    type=click.Choice(list(FORMATS)),
    help="; ".join(f"{each.name}: {each.holds}" for each in FORMATS.values()) + ".",
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

    Exit codes: 0 written; 1 written, but of a run that did not come to its end; 2 nothing was written.
    """  # noqa: D301 \b is click's: keep these lines as they are
    if as_json and out == STDOUT:
        raise click.UsageError("--json and --out - would both write to standard output.")
    with progress_bar("writing", "requests", is_shown(progress)) as advance:
        exported = export_run(directory, to, out, advance)
    if as_json:
        click.echo(json.dumps(exported.as_json(), indent=2))
    else:
        for line in exported.lines():
            click.echo(printable(line, 4096), err=out == STDOUT)
    ctx.exit(0 if exported.is_whole else 1)


@dataclass(frozen=True)
class ExportResult:
    """The file that was written, and how its run ended."""

    run: Path
    to: str
    out: Path
    requests: int
    status: str
    reason: str | None

    @property
    def is_whole(self) -> bool:
        """True where the run ran to its end."""
        return self.status == "complete"

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        return {
            "format": 1,
            "run": str(self.run),
            "to": self.to,
            "out": str(self.out),
            "bytes": self.out.stat().st_size if self.out.is_file() else None,
            "requests": self.requests,
            "status": self.status,
            "reason": self.reason,
        }

    def lines(self) -> list[str]:
        """Return what the command prints."""
        said = [f"{self.out}: {counted(self.requests, 'request')} of {self.run}"]
        if not self.is_whole:
            why = f": {printable(self.reason)}" if self.reason else ""
            said.append(f"  the run is {self.status}{why}; this is what there is of it")
        return said


def export_run(
    path: Path, to: str, out: Path, progress: Callable[[int, int], None] = lambda *_: None
) -> ExportResult:
    """Write run directory `path` to `out` (`-`: standard output) in format `to`, one of `FORMATS`.

    `out` is whole or not there. `progress` is called with the requests done and all there are. Raises
    PlimsollError.
    """
    run = RunDirectory.open(path)
    if out != STDOUT:
        _check_place(out, path)
    done = 0

    def advance(requests: int) -> None:
        nonlocal done
        done += requests
        progress(done, run.requests.count)

    requests, write = FORMATS[to].prepare(run, advance)
    with open_output(out) as file:
        write(file)
    return ExportResult(path, to, out, requests, run.status, run.facts.reason)


def _check_place(out: Path, run: Path) -> None:
    """Return if `out` may be written. Raises OutputError for a directory and for files of the run itself."""
    if out.is_dir():
        raise OutputError(f"{out}: is a directory; give the name of a file with --out")
    inside = out.parent.resolve() / out.name
    if inside.is_relative_to(run.resolve()) and inside.relative_to(run.resolve()).parts[0] in RECORDS:
        raise OutputError(f"{out}: is part of the run; give another name with --out")
