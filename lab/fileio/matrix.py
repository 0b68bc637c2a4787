"""Measures the matrix on a machine: makes the files, runs what is not finished yet, removes the files."""

from collections.abc import Callable, Sequence
from pathlib import Path

from lab.errors import MachineError
from lab.fileio import sysbench
from lab.fileio.cell import Cell, append_cell, cell_of, key_of, latest, read_cells
from lab.fileio.output import FileioError, parse_output
from lab.fileio.settings import FileioSettings, Test
from lab.machine import Machine
from plimsoll.common.sizes import size_text
from plimsoll.common.units import counted

_SLOWEST_BYTES_PER_S = 1 << 20  # the slowest that files may be written
_NOT_FOUND = 127  # what env ends with
_END_S = 600.0  # for a run beyond its time: the last fsync of a slow disk

Cells = Sequence[tuple[Test, int]]  # a test and a number of threads each


def files_written(cells: Cells) -> int:
    """Return how often the test files are written to measure `cells`. Pure."""
    return bool(cells) + sum(_cuts_off(test) for test, _ in cells[:-1])


def commands(settings: FileioSettings, cells: Cells) -> list[list[str]]:
    """Return the commands with which `run_matrix` measures `cells`, but for those that only look. Pure."""
    files = sysbench.prepare(settings)
    found = [sysbench.make_folder(settings.directory), files]
    for number, (test, threads) in enumerate(cells, 1):
        found.append(sysbench.run(settings, test, threads))
        if _cuts_off(test) and number < len(cells):
            found.append(files)
    return [*found, *sysbench.clean_up(settings)]


def space_problem(settings: FileioSettings, free: int) -> str | None:
    """Return the problem with `free` bytes of space, if there is one. Pure."""
    if free >= settings.needed_bytes:
        return None
    needed = settings.needed_bytes >> 20
    return (
        f"{settings.directory}: {free >> 20} MiB are free, but the files need {needed} MiB: "
        "make room, or choose a smaller --file-size"
    )


def cache_caution(settings: FileioSettings, meminfo: str) -> str | None:
    """Return a warning where the files fit into memory, so that its speed is measured. Pure."""
    for line in meminfo.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "MemTotal:" and words[1].isdecimal():
            if settings.direct or settings.file_size > int(words[1]) << 10:
                return None
            return (
                f"the files ({size_text(settings.file_size)}) fit into memory ({int(words[1]) >> 20} GiB): "
                "reads come from the page cache, not from the disk; give a larger --file-size, or --direct"
            )
    return None


async def run_matrix(
    machine: Machine,
    settings: FileioSettings,
    kept_in: Path,
    *,
    resume: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    on_step: Callable[[str, bool], None] = lambda says, measures: None,
) -> list[Cell]:
    """Measure what `kept_in` does not hold yet, and return all cells.

    The files are removed at the end, however it comes. `on_step` gets what is about to be done, and whether
    that measures a cell. Raises FileioError, MachineError, OutputError.
    """
    cells = settings.cells
    keys = [key_of(settings, settings.name, test, threads) for test, threads in cells]
    finished = latest(read_cells(kept_in), keys)
    if finished and not resume:
        raise FileioError(
            f"{kept_in}: {len(finished)} cells of this matrix are already finished: "
            "use --resume to continue, or another --out to measure them again"
        )
    done = {cell.key for cell in finished}
    on_progress(len(done), len(cells))
    to_do = [cell for cell, key in zip(cells, keys, strict=True) if key not in done]
    if to_do:
        await _claim(machine, settings, resume)
        try:
            await _check_space(machine, settings)
            on_step("writing the test files", False)
            await _prepare(machine, settings)
            for number, (test, threads) in enumerate(to_do, len(done) + 1):
                on_step(_of_cell(test, threads), True)
                append_cell(kept_in, await _measured(machine, settings, test, threads))
                on_progress(number, len(cells))
                if _cuts_off(test) and number < len(cells):
                    on_step("writing the test files", False)
                    await _prepare(machine, settings)
        finally:
            await _clean_up(machine, settings)
    elif await _is_there(machine, settings):  # killed between the last cell and the end
        await _clean_up(machine, settings)
    return latest(read_cells(kept_in), keys)


def _of_cell(test: Test, threads: int) -> str:
    return f"{test} with {counted(threads, 'thread')}"


def _cuts_off(test: Test) -> bool:
    """Return whether a test leaves files that are shorter than the next one expects."""
    return test == "seqwr"


async def _claim(machine: Machine, settings: FileioSettings, resume: bool) -> None:
    """Make the folder; a resumed run takes over that of the run before. Raises FileioError."""
    made = await machine.run(sysbench.make_folder(settings.directory), check=False)
    if made.status == 0:
        return
    folder = sysbench.own_folder(settings.directory)
    there = await _is_there(machine, settings)
    if there and resume:
        # Its files count as used space, and are rewritten.
        await machine.run(sysbench.clean_up(settings)[0], timeout_s=_END_S, check=False)
        return
    if there:
        raise FileioError(
            f"{folder} exists: another plimsoll fileio uses it, or one was killed; "
            "if none is running, use --resume, or remove the folder"
        )
    raise FileioError(f"cannot make {folder}: {made.err.strip() or 'no reason was given'}")


async def _is_there(machine: Machine, settings: FileioSettings) -> bool:
    return bool((await machine.run(sysbench.is_folder(settings.directory), check=False)).out)


async def _prepare(machine: Machine, settings: FileioSettings) -> None:
    patience_s = _END_S + settings.file_size / _SLOWEST_BYTES_PER_S
    command = sysbench.prepare(settings)
    done = await machine.run(command, timeout_s=patience_s, check=False)
    if done.status == _NOT_FOUND:
        raise FileioError(f"{machine.name}: sysbench is not installed: apt-get install sysbench")
    if done.status:
        words = done.err + _fatal(done.out)
        raise MachineError(machine.name, "cannot write the test files", command, words, done.status)


async def _check_space(machine: Machine, settings: FileioSettings) -> None:
    said = (await machine.run(sysbench.free_bytes(settings.directory))).out.split()
    free = int(said[-1]) if said and said[-1].isdecimal() else 0
    if problem := space_problem(settings, free):
        raise FileioError(problem)


async def _measured(machine: Machine, settings: FileioSettings, test: Test, threads: int) -> Cell:
    command = sysbench.run(settings, test, threads)
    ran = await machine.run(command, timeout_s=settings.time_s + _END_S, check=False)
    if ran.status:
        words = _fatal(ran.err + ran.out)
        raise FileioError(
            f"{test} with {threads} threads: sysbench ended with status {ran.status}: "
            f"{words or 'it gave no reason'}; finished cells are kept: continue with --resume"
        )
    return cell_of(settings, test, threads, parse_output(ran.out))


def _fatal(output: str) -> str:
    """Return sysbench's own error: a line with FATAL on either stream."""
    return next((line for line in output.splitlines() if "FATAL" in line), "")


async def _clean_up(machine: Machine, settings: FileioSettings) -> None:
    for command in sysbench.clean_up(settings):
        done = await machine.run(command, timeout_s=_END_S, check=False)
    if done.status:
        raise MachineError(
            machine.name, "the folder of the test files is still there", command, done.err, done.status
        )
