"""sysbench's command lines, as lists of arguments. Pure."""

from collections.abc import Sequence

from lab.fileio.settings import BLOCK_BYTES, FILES, FileioSettings, Test

_OWN = "plimsoll-fileio"


def own_folder(directory: str) -> str:
    """Return the folder of the test files: it holds no others, so nobody else's file is touched."""
    return f"{directory.rstrip('/')}/{_OWN}"


def make_folder(directory: str) -> list[str]:
    """Return the command that makes that folder, and fails where there is one."""
    return ["mkdir", "--", own_folder(directory)]


def is_folder(directory: str) -> list[str]:
    """Return the command that prints something only if that folder is one, and no symbolic link to one."""
    return ["find", own_folder(directory), "-maxdepth", "0", "-type", "d"]


def free_bytes(directory: str) -> list[str]:
    """Return the command that prints the space left."""
    return ["df", "--output=avail", "--block-size=1", "--", directory]


def only_looks(command: Sequence[str]) -> bool:
    """Return whether a command of fileio, also of one that joins a control group first, changes nothing."""
    return not {"find", "df"}.isdisjoint(command)


def prepare(settings: FileioSettings) -> list[str]:
    """Return the command that writes the test files."""
    return [*_sysbench(settings), "prepare"]


def run(settings: FileioSettings, test: Test, threads: int) -> list[str]:
    """Return the command that measures one cell."""
    direct = ["--file-extra-flags=direct"] if settings.direct else []
    return [
        *_sysbench(settings),
        f"--file-block-size={BLOCK_BYTES}",
        f"--file-test-mode={test}",
        *direct,
        f"--threads={threads}",
        f"--time={settings.time_s}",
        "--events=0",
        "--histogram=on",
        "run",
    ]


def clean_up(settings: FileioSettings) -> list[list[str]]:
    """Return the commands that remove the test files and their folder, unless it holds something else."""
    return [[*_sysbench(settings), "cleanup"], ["rmdir", "--", own_folder(settings.directory)]]


def _sysbench(settings: FileioSettings) -> list[str]:
    # sysbench works in the current folder, and has no option for another.
    here = ["env", f"--chdir={own_folder(settings.directory)}"]
    return [*here, "sysbench", "fileio", f"--file-total-size={settings.file_size}", f"--file-num={FILES}"]
