"""sysbench's command lines, as lists of arguments. Pure."""

from plimsoll.lab.fileio.bench import Bench
from plimsoll.lab.fileio.cell import cell_of
from plimsoll.lab.fileio.output import parse_output
from plimsoll.lab.fileio.settings import BLOCK_BYTES, FILES, FileioSettings, MatrixCase
from plimsoll.lab.machine import Done
from plimsoll.rundir.volumes import MatrixCell

_OWN = "plimsoll-fileio"


class Sysbench(Bench[MatrixCase]):
    """sysbench's fileio test; all cells use the same files, which are written before the first."""

    program = "sysbench"

    def __init__(self, settings: FileioSettings) -> None:
        self._settings = settings
        self.directory, self.needed_bytes = settings.directory, settings.needed_bytes
        self.folder = f"{settings.directory.rstrip('/')}/{_OWN}"

    def most_s(self, case: MatrixCase) -> float:
        """Return the seconds that a cell measures."""
        return self._settings.time_s

    def files(self) -> list[str]:
        """Return the command that writes the test files."""
        return [*self._sysbench(), "prepare"]

    def cuts_off(self, case: MatrixCase) -> bool:
        """Return whether a cell leaves files that are shorter than the next one expects."""
        return case.test == "seqwr"

    def run(self, case: MatrixCase) -> list[str]:
        """Return the command that measures a cell."""
        direct = ["--file-extra-flags=direct"] if self._settings.direct else []
        return [
            *self._sysbench(),
            f"--file-block-size={BLOCK_BYTES}",
            f"--file-test-mode={case.test}",
            *direct,
            f"--threads={case.threads}",
            f"--time={self._settings.time_s}",
            "--events=0",
            "--histogram=on",
            "run",
        ]

    def cell(self, case: MatrixCase, printed: str) -> MatrixCell:
        """Return the cell that sysbench printed. Raises FileioError."""
        return cell_of(self._settings, case, parse_output(printed))

    def complaint(self, done: Done) -> str:
        """Return sysbench's own error: a line with FATAL on either stream."""
        lines = (done.err + "\n" + done.out).splitlines()
        return next((line for line in lines if "FATAL" in line), "")

    def clean_up(self) -> list[list[str]]:
        """Return the commands that remove the test files and then the folder."""
        return [[*self._sysbench(), "cleanup"], ["rmdir", "--", self.folder]]

    def _sysbench(self) -> list[str]:
        # sysbench works in the current folder, and has no option for another.
        here = ["env", f"--chdir={self.folder}"]
        files = [f"--file-total-size={self._settings.file_size}", f"--file-num={FILES}"]
        return [*here, "sysbench", "fileio", *files]
