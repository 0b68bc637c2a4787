"""One run directory becomes one file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analysis.exporting.csvfile import csv_blocks
from analysis.exporting.hdrlog import hdr_blocks
from analysis.exporting.outfile import STDOUT, check, written
from analysis.exporting.parquetfile import available, write_parquet
from analysis.exporting.prometheus import prometheus_text
from analysis.hostile import printable
from analysis.records import RunDirectory
from analysis.units import counted

FORMATS = ("csv", "parquet", "hdr", "prometheus")
_BLOCKS = {"csv": csv_blocks, "hdr": hdr_blocks}

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Exported:
    """What was written, and how the run ended that it is of."""

    run: Path
    to: str
    out: Path
    requests: int
    status: str
    reason: str | None

    @property
    def whole(self) -> bool:
        """Whether the run ran to its end."""
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
        if not self.whole:
            why = f": {printable(self.reason)}" if self.reason else ""
            said.append(f"  the run is {self.status}{why}; this is what there is of it")
        return said


def export(path: Path, to: str, out: Path, progress: Progress = lambda *_: None) -> Exported:
    """Write run directory `path` to `out` (`-`: standard output) in format `to`, one of `FORMATS`.

    `out` is whole or not there. `progress` is called with the requests done and all there are. Raises
    PlimsollError.
    """
    run = RunDirectory.open(path)
    if out != STDOUT:
        check(out, path)
    if to == "parquet":
        available()
    done = 0

    def advance(requests: int) -> None:
        nonlocal done
        done += requests
        progress(done, run.requests.count)

    requests = run.requests.count
    if to == "prometheus":  # before anything is opened: there may be nothing to say
        requests, text = prometheus_text(run, advance)
        with written(out) as file:
            file.write(text.encode("utf-8"))
        return Exported(path, to, out, requests, run.status, run.facts.reason)
    with written(out) as file:
        if to == "parquet":
            write_parquet(run, file, advance)
        else:
            for records, piece in _BLOCKS[to](run):
                file.write(piece)
                advance(records)
    return Exported(path, to, out, requests, run.status, run.facts.reason)
