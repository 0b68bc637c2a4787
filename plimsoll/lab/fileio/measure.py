"""The cells of a volume measured on a machine, kept in a file, resumed, shown as tables."""

import json
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from plimsoll.common.errors import OutputError
from plimsoll.common.hostile import printable
from plimsoll.common.units import count, decimal, size_text
from plimsoll.lab.errors import MachineError
from plimsoll.lab.fileio.bench import SLOWEST_BYTES_PER_S, Bench, FileioError, VolumeFolder
from plimsoll.lab.fileio.fio import FioBench, FsyncMatrix, FsyncSettings, lays_out
from plimsoll.lab.fileio.sysbench import FileioSettings, Matrix, MatrixCase, SysbenchBench
from plimsoll.lab.machine import Machine
from plimsoll.rundir.volumes import AnyCell, Figure, FsyncCase, FsyncCell, MatrixCell, cell_in

_NOT_FOUND = 127  # what env ends with
_END_S = 600.0  # for a run beyond its time: the last fsync of a slow disk
_LARGEST_BYTES = 64 << 20

Settings = FileioSettings | FsyncSettings
AnyCase = MatrixCase | FsyncCase
BenchCases = Sequence[AnyCase]  # to be measured


async def measure_cells(
    machine: Machine,
    settings: Settings,
    kept_in: Path,
    *,
    resume: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    on_step: Callable[[str, bool], None] = lambda says, measures: None,
) -> list[AnyCell]:
    """Measure what `kept_in` does not hold yet, and return all cells.

    The files are removed at the end in any case. `on_step` gets what is about to be done, and whether
    that measures a cell. Raises FileioError, MachineError, OutputError.
    """
    bench = make_bench(settings)
    cells = settings.cases_by_key(settings.name)
    finished = keep_latest(read_cells(kept_in), cells)
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
                append_cell(kept_in, await _measure_cell(machine, bench, case))
                on_progress(number, len(cells))
                if bench.cuts_off(case) and number < len(cells):
                    await _prepare(machine, bench, settings, on_step)
        finally:
            await _clean_up(machine, bench)
    elif await _is_there(machine, bench):  # killed between the last cell and the end
        await _clean_up(machine, bench)
    return keep_latest(read_cells(kept_in), cells)


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
        raise _explain_missing(machine, bench)
    if done.status:
        words = bench.complaint(done) or done.err
        raise MachineError(machine.name, "cannot write the test files", command, words, done.status)


async def _check_space(machine: Machine, bench: Bench[Any], settings: Settings) -> None:
    said = (await machine.run(bench.free_bytes())).out.split()
    free = int(said[-1]) if said and said[-1].isdecimal() else 0
    if problem := space_problem(settings, free):
        raise FileioError(problem)


async def _measure_cell(machine: Machine, bench: Bench[Any], case: AnyCase) -> AnyCell:
    patience_s = bench.most_s(case) + _END_S
    ran = await machine.run(bench.run(case), timeout_s=patience_s, check=False)
    if ran.status == _NOT_FOUND:
        raise _explain_missing(machine, bench)
    if ran.status:
        raise FileioError(
            f"{case.says}: {bench.program} ended with status {ran.status}: "
            f"{bench.complaint(ran) or 'it gave no reason'}; finished cells are kept: continue with --resume"
        )
    return bench.cell(case, ran.out)


def _explain_missing(machine: Machine, bench: Bench[Any]) -> FileioError:
    return FileioError(f"{machine.name}: {bench.program} is not installed: apt-get install {bench.program}")


async def _clean_up(machine: Machine, bench: Bench[Any]) -> None:
    for command in bench.clean_up():
        done = await machine.run(command, timeout_s=_END_S, check=False)
    if done.status:
        raise MachineError(
            machine.name, "the folder of the test files is still there", command, done.err, done.status
        )


def make_bench(settings: Settings) -> Bench[Any]:
    """Return the program that measures `settings`. Pure."""
    return FioBench(settings) if isinstance(settings, FsyncSettings) else SysbenchBench(settings)


def written_bytes(settings: Matrix | FsyncMatrix, cells: BenchCases) -> int:
    """Return the bytes that are written into files so that `cells` can be measured on them. Pure."""
    if isinstance(settings, FsyncMatrix):
        return sum(case.file_size_bytes for case in cells if isinstance(case, FsyncCase) and lays_out(case))
    return settings.file_size * (bool(cells) + sum(case.test == "seqwr" for case in cells[:-1]))


def commands(settings: Settings, cells: Iterable[AnyCase]) -> list[list[str]]:
    """Return the commands with which `measure_cells` measures `cells`, without those that only look. Pure."""
    bench, to_do = make_bench(settings), list(cells)
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


def read_cells(path: Path) -> list[AnyCell]:
    """Return the finished cells in `path`; none if there is no such file. Incomplete cells are left out.

    Raises OutputError.
    """
    try:
        with path.open("rb") as file:
            lines = file.read(_LARGEST_BYTES).splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable(path, "read", error) from None
    return [cell for line in lines if (cell := _cell(line))]


def append_cell(path: Path, cell: AnyCell) -> None:
    """Add a finished cell to `path`, on the disk when this returns. Raises OutputError."""
    # A line that a crash cut off is ended first, so that it spoils no other.
    data = "\n" + json.dumps(cell.as_json(), allow_nan=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unusable(path, "written", error) from None


def keep_latest(cells: Iterable[AnyCell], keys: Iterable[Hashable]) -> list[AnyCell]:
    """Return the cells with these keys, in the order of `keys`; of two with one key, the later. Pure."""
    by_key: dict[Hashable, AnyCell] = {cell.key: cell for cell in cells}
    return [by_key[key] for key in keys if key in by_key]


def _unusable(path: Path, what: str, error: OSError) -> OutputError:
    return OutputError(f"{path}: cannot be {what}: {error.strerror}; choose another file with --out")


def _cell(line: bytes) -> AnyCell | None:
    try:
        return cell_in(json.loads(line))
    except (ValueError, RecursionError):
        return None


# Of each column of the table: its key in JSON, and what it means.
COLUMNS = {
    "Volume": ("volume", "its name"),
    "Threads": ("threads", "number of threads"),
    "File size": ("file_size_bytes", "total size of all test files"),
    "Block size": ("block_bytes", "of each read and write"),
    "Test": (
        "test",
        "sysbench's name: `rnd` random, `seq` sequential, `rd` reads, `wr` writes, `rw` three reads to two "
        "writes",
    ),
    "Reads": ("reads", "how many"),
    "Writes": ("writes", "how many"),
    "Throughput (MiB/s)": ("throughput_mib_per_s", "read and written"),
    "IOPS": ("iops", "reads and writes a second; without fsyncs"),
    "Execution time (s)": ("execution_s", "as sysbench has it"),
    "p99.9 (ms)": ("p999_ms", "of all events: reads, writes and fsyncs"),
}
_LEFT = {0, 4}

_PERCENTILES: tuple[Figure, ...] = ("p50", "p90", "p99", "p99.9", "max")
FSYNC_COLUMNS = {
    "Volume": ("volume", "its name"),
    "Recipe": ("preset", "`etcd`, or null"),
    "Call": ("call", "`fdatasync` or `fsync`, after each write"),
    "Test": ("test", "what is written: `seqwr` or `rndwr`"),
    "Engine": ("engine", "fio's name of how it writes"),
    "Block size": ("block_bytes", "of each write"),
    "Threads": ("threads", "each writes into a file of its own"),
    "Calls": ("syncs", "how many; fio leaves out one after the last write"),
    "p50 (ms)": ("sync_ms", "of the calls alone"),
    "p90 (ms)": ("sync_ms", ""),
    "p99 (ms)": ("sync_ms", ""),
    "p99.9 (ms)": ("sync_ms", ""),
    "max (ms)": ("sync_ms", "the slowest"),
    "Writes/s": ("iops", "each with its call"),
    "Writes' p99.9 (ms)": ("write_ms", "of the writes before the calls"),
}
_FSYNC_LEFT = {0, 1, 2, 3, 4}


def table(cells: Sequence[AnyCell]) -> str:
    """Return a table of each kind of cells that there is, a line a cell below its head. Pure."""
    matrix = [row(cell) for cell in cells if isinstance(cell, MatrixCell)]
    fsyncs = [fsync_row(cell) for cell in cells if isinstance(cell, FsyncCell)]
    found = [_text([*COLUMNS], matrix, _LEFT)] if matrix or not fsyncs else []
    return "\n\n".join([*found, *([_text([*FSYNC_COLUMNS], fsyncs, _FSYNC_LEFT)] if fsyncs else [])])


def _text(columns: Sequence[str], below: Sequence[Sequence[str]], left: Collection[int]) -> str:
    rows = [columns, *below]
    widths = [max(len(one[i]) for one in rows) for i in range(len(columns))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(one, widths, strict=True))
        ).rstrip()
        for one in rows
    )


def row(cell: MatrixCell) -> tuple[str, ...]:
    """Return the table's row of a cell of sysbench's. Pure."""
    return (
        printable(cell.volume, 60),
        count(cell.threads),
        size_text(cell.file_size_bytes),
        size_text(cell.block_bytes),
        printable(cell.test, 20),
        count(cell.reads),
        count(cell.writes),
        decimal(cell.throughput_mib_per_s, 2),
        decimal(cell.iops, 2),
        decimal(cell.execution_s, 4),
        decimal(cell.p999_ms, 3),
    )


def fsync_row(cell: FsyncCell) -> tuple[str, ...]:
    """Return the table's row of a cell of fsyncs. Pure."""
    return (
        printable(cell.volume, 60),
        cell.preset or "–",
        cell.call,
        cell.test,
        cell.engine,
        size_text(cell.block_bytes),
        count(cell.threads),
        count(cell.syncs),
        *(decimal(cell.sync_ms.get(name), 3) for name in _PERCENTILES),
        decimal(cell.iops, 1),
        decimal(cell.write_ms.get("p99.9"), 3),
    )


class VolumeFiles(VolumeFolder):
    """The folder of the test files of fileio."""

    key, suffix, holds = "fileio", "fileio", "the test files"

    def settings(self, part: Matrix | FsyncMatrix, volume: str) -> FileioSettings | FsyncSettings:
        """Return the settings with which `volume` is measured here."""
        here = {"directory": self.folder, "volume": volume}
        if isinstance(part, FsyncMatrix):
            return FsyncSettings.model_validate(part.model_dump() | here)
        return FileioSettings.model_validate(part.model_dump(include=set(Matrix.model_fields)) | here)
