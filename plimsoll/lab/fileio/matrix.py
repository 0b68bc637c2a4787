"""Measures the cells on a machine: makes the files, runs what is not finished yet, removes the files."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from plimsoll.common.units import size_text
from plimsoll.lab.errors import MachineError
from plimsoll.lab.fileio.bench import SLOWEST_BYTES_PER_S, Bench
from plimsoll.lab.fileio.fsync.fio import Fio
from plimsoll.lab.fileio.fsync.settings import FsyncMatrix, FsyncSettings, lays_out
from plimsoll.lab.fileio.kept import append_cell, latest, read_cells
from plimsoll.lab.fileio.output import FileioError
from plimsoll.lab.fileio.settings import FileioSettings, Matrix, MatrixCase
from plimsoll.lab.fileio.sysbench import Sysbench
from plimsoll.lab.machine import Machine
from plimsoll.rundir.volumes import AnyCell, FsyncCase

_NOT_FOUND = 127  # what env ends with
_END_S = 600.0  # for a run beyond its time: the last fsync of a slow disk

Settings = FileioSettings | FsyncSettings
AnyCase = MatrixCase | FsyncCase
Cells = Sequence[AnyCase]  # to be measured


def bench_of(settings: Settings) -> Bench[Any]:
    """Return the program that measures `settings`. Pure."""
    return Fio(settings) if isinstance(settings, FsyncSettings) else Sysbench(settings)


def written_bytes(settings: Matrix | FsyncMatrix, cells: Cells) -> int:
    """Return the bytes that are written into files so that `cells` can be measured on them. Pure."""
    if isinstance(settings, FsyncMatrix):
        return sum(case.file_size_bytes for case in cells if isinstance(case, FsyncCase) and lays_out(case))
    return settings.file_size * (bool(cells) + sum(case.test == "seqwr" for case in cells[:-1]))


def commands(settings: Settings, cells: Iterable[AnyCase]) -> list[list[str]]:
    """Return the commands with which `run_matrix` measures `cells`, but for those that only look. Pure."""
    bench, to_do = bench_of(settings), list(cells)
    files = bench.files()
    found = [bench.make_folder(), *([files] if files else [])]
    for number, case in enumerate(to_do, 1):
        found.append(bench.run(case))
        if files and bench.cuts_off(case) and number < len(to_do):
            found.append(files)
    return [*found, *bench.clean_up()]


def space_problem(settings: Settings, free: int) -> str | None:
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
    settings: Settings,
    kept_in: Path,
    *,
    resume: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    on_step: Callable[[str, bool], None] = lambda says, measures: None,
) -> list[AnyCell]:
    """Measure what `kept_in` does not hold yet, and return all cells.

    The files are removed at the end, however it comes. `on_step` gets what is about to be done, and whether
    that measures a cell. Raises FileioError, MachineError, OutputError.
    """
    bench = bench_of(settings)
    cells = settings.keyed(settings.name)
    finished = latest(read_cells(kept_in), cells)
    if finished and not resume:
        raise FileioError(
            f"{kept_in}: {len(finished)} cells of this matrix are already finished: "
            "use --resume to continue, or another --out to measure them again"
        )
    done = {cell.key for cell in finished}
    on_progress(len(done), len(cells))
    to_do = [case for key, case in cells.items() if key not in done]
    if to_do:
        await _claim(machine, bench, resume)
        try:
            await _check_space(machine, bench, settings)
            await _prepare(machine, bench, settings, on_step)
            for number, case in enumerate(to_do, len(done) + 1):
                on_step(case.says, True)
                append_cell(kept_in, await _measured(machine, bench, case))
                on_progress(number, len(cells))
                if bench.cuts_off(case) and number < len(cells):
                    await _prepare(machine, bench, settings, on_step)
        finally:
            await _clean_up(machine, bench)
    elif await _is_there(machine, bench):  # killed between the last cell and the end
        await _clean_up(machine, bench)
    return latest(read_cells(kept_in), cells)


async def _claim(machine: Machine, bench: Bench[Any], resume: bool) -> None:
    """Make the folder; a resumed run takes over that of the run before. Raises FileioError."""
    made = await machine.run(bench.make_folder(), check=False)
    if made.status == 0:
        return
    there = await _is_there(machine, bench)
    if there and resume:
        # Its files count as used space, and are rewritten.
        await machine.run(bench.clean_up()[0], timeout_s=_END_S, check=False)
        return
    if there:
        raise FileioError(
            f"{bench.folder} exists: another plimsoll fileio uses it, or one was killed; "
            "if none is running, use --resume, or remove the folder"
        )
    raise FileioError(f"cannot make {bench.folder}: {made.err.strip() or 'no reason was given'}")


async def _is_there(machine: Machine, bench: Bench[Any]) -> bool:
    return bool((await machine.run(bench.is_folder(), check=False)).out)


async def _prepare(
    machine: Machine, bench: Bench[Any], settings: Settings, on_step: Callable[[str, bool], None]
) -> None:
    """Write the files that all cells use, if there are any. Raises FileioError, MachineError."""
    if (command := bench.files()) is None:
        return
    on_step("writing the test files", False)
    patience_s = _END_S + settings.file_size / SLOWEST_BYTES_PER_S
    done = await machine.run(command, timeout_s=patience_s, check=False)
    if done.status == _NOT_FOUND:
        raise _not_installed(machine, bench)
    if done.status:
        words = bench.complaint(done) or done.err
        raise MachineError(machine.name, "cannot write the test files", command, words, done.status)


async def _check_space(machine: Machine, bench: Bench[Any], settings: Settings) -> None:
    said = (await machine.run(bench.free_bytes())).out.split()
    free = int(said[-1]) if said and said[-1].isdecimal() else 0
    if problem := space_problem(settings, free):
        raise FileioError(problem)


async def _measured(machine: Machine, bench: Bench[Any], case: AnyCase) -> AnyCell:
    patience_s = bench.most_s(case) + _END_S
    ran = await machine.run(bench.run(case), timeout_s=patience_s, check=False)
    if ran.status == _NOT_FOUND:
        raise _not_installed(machine, bench)
    if ran.status:
        raise FileioError(
            f"{case.says}: {bench.program} ended with status {ran.status}: "
            f"{bench.complaint(ran) or 'it gave no reason'}; finished cells are kept: continue with --resume"
        )
    return bench.cell(case, ran.out)


def _not_installed(machine: Machine, bench: Bench[Any]) -> FileioError:
    return FileioError(f"{machine.name}: {bench.program} is not installed: apt-get install {bench.program}")


async def _clean_up(machine: Machine, bench: Bench[Any]) -> None:
    for command in bench.clean_up():
        done = await machine.run(command, timeout_s=_END_S, check=False)
    if done.status:
        raise MachineError(
            machine.name, "the folder of the test files is still there", command, done.err, done.status
        )
