"""A run directory becomes a file for other programs: whole or not there."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name

from plimsoll.analysis.exchange.csvfile import Prepare
from plimsoll.analysis.exchange.options import FORMATS
from plimsoll.common.errors import OutputError
from plimsoll.common.files import STDOUT, open_output
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted
from plimsoll.rundir.names import RECORDS
from plimsoll.rundir.read import RunDirectory


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

    prepare: Prepare = resolve_name(f"{__package__}.{FORMATS[to].prepare}")
    requests, write = prepare(run, advance)
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
