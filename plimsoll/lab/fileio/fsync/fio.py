"""fio's command lines for fsyncs, as lists of arguments. Pure."""

from plimsoll.lab.fileio.bench import SLOWEST_BYTES_PER_S, Bench
from plimsoll.lab.fileio.fsync.cell import fsync_cell
from plimsoll.lab.fileio.fsync.output import parse_fio
from plimsoll.lab.fileio.fsync.settings import FsyncSettings, lays_out, most_s
from plimsoll.lab.machine import Done
from plimsoll.rundir.volumes import FsyncCase, FsyncCell

_OWN = "plimsoll-fsync"
_NAME = "plimsoll"  # of the job: its files are plimsoll.0.0, plimsoll.1.0, …
_RW = {"seqwr": "write", "rndwr": "randwrite"}


class Fio(Bench[FsyncCase]):
    """fio, which writes and syncs; each cell makes its own files, and removes them."""

    program = "fio"

    def __init__(self, settings: FsyncSettings) -> None:
        self._settings = settings
        self.directory, self.needed_bytes = settings.directory, settings.needed_bytes
        self.folder = f"{settings.directory.rstrip('/')}/{_OWN}"

    def most_s(self, case: FsyncCase) -> float:
        """Return the seconds that a cell takes at most, files that it writes itself included."""
        return most_s(case) + (case.file_size_bytes / SLOWEST_BYTES_PER_S if lays_out(case) else 0.0)

    def files(self) -> None:
        """Return None: each cell writes its own."""

    def run(self, case: FsyncCase) -> list[str]:
        """Return the command that measures a cell."""
        size_bytes = case.file_size_bytes // case.threads
        return [
            # fio takes a colon in a path for its end, so the path is not told.
            *("env", f"--chdir={self.folder}", "fio", f"--name={_NAME}", "--directory=."),
            f"--rw={_RW[case.test]}",
            f"--ioengine={case.engine}",
            f"--{case.call}=1",
            f"--size={size_bytes if size_bytes % (1 << 20) else f'{size_bytes >> 20}m'}",
            f"--bs={case.block_bytes}",
            *([] if case.preset else _of_matrix(case)),
            f"--runtime={most_s(case)}",
            # As processes, fio's jobs are sessions of their own: one can outlive fio.
            "--thread",
            "--group_reporting",
            "--unlink=1",
            "--eta=never",
            "--output-format=json",
        ]

    def cell(self, case: FsyncCase, printed: str) -> FsyncCell:
        """Return the cell that fio printed. Raises FileioError."""
        return fsync_cell(self._settings.name, case, parse_fio(printed))

    def complaint(self, done: Done) -> str:
        """Return fio's own error: a line that begins with its name, on either stream."""
        lines = (done.err + "\n" + done.out).splitlines()
        return next((line for line in lines if line.startswith("fio:")), "")

    def clean_up(self) -> list[list[str]]:
        """Return the commands that remove what a killed fio left, each file by its name, and the folder."""
        most = max(case.threads for case in self._settings.cells)
        files = [f"{self.folder}/{_NAME}.{job}.0" for job in range(most)]
        return [["rm", "-f", "--", *files], ["rmdir", "--", self.folder]]


def _of_matrix(case: FsyncCase) -> list[str]:
    """Return what etcd's recipe leaves open."""
    return [
        "--iodepth=1",
        f"--direct={int(case.direct)}",
        f"--numjobs={case.threads}",
        "--fallocate=none",  # not everywhere to be had, and it spares each fsync the growth of the file
        # At random, written over as in a database; one after another, appended as to its log.
        *(["--overwrite=1", "--norandommap"] if lays_out(case) else []),
        "--time_based",
    ]
