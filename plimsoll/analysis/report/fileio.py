"""Finished cells of `plimsoll fileio`, read for a report, and their figure (docs/fileio.md)."""

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.analysis.charts.fileio import TESTS, Point, Volume, fileio_chart
from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.report.fsyncs import names_of
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.units import ABSENT, plain_ms, significant
from plimsoll.rundir.cells import AnyCell, FsyncCell, MatrixCell, cell_in

_LARGEST_BYTES = 64 << 20
_MIB, _GIB = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Cells:
    """The cells of all files, of two alike the later, and what is wrong with the files (hostile).

    `syncs` are those of fio's fsyncs, `cells` those of sysbench's matrix.
    """

    cells: list[MatrixCell]
    troubles: list[str]
    syncs: list[FsyncCell] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is no cell of either kind."""
        return not self.cells and not self.syncs


def read_fileio(paths: Sequence[Path]) -> Cells:
    """Read `paths`: JSON Lines as `--out` writes them, or what `--json` prints. Raises RunDirectoryError."""
    found: dict[Hashable, AnyCell] = {}
    troubles = []
    for path in paths:
        lines = [cell_in(value) for value in _values(path)]
        cells = [cell for cell in lines if cell]
        damaged = len(lines) - len(cells)
        if not cells:
            troubles.append(f"{path}: holds no result of plimsoll fileio.")
        elif damaged:
            are = "one line is" if damaged == 1 else f"{damaged} lines are"
            troubles.append(
                f"{path}: {are} no finished cell (cut off, NaN or damaged), so points may be missing."
            )
        found |= {_place(cell): cell for cell in cells}
    return Cells(
        [cell for cell in found.values() if isinstance(cell, MatrixCell)],
        troubles,
        [cell for cell in found.values() if isinstance(cell, FsyncCell)],
    )


def _place(cell: AnyCell) -> Hashable:
    """Return what of two alike, of which the later counts: of sysbench's also those of another length."""
    return (cell.volume, cell.test, cell.threads, *cell.how) if isinstance(cell, MatrixCell) else cell.key


def _values(path: Path) -> Iterator[object]:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES)
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
    whole = _json(data)
    if isinstance(whole, dict) and isinstance(whole.get("cells"), list):
        yield from whole["cells"]
        return
    for line in data.splitlines():
        if line.strip():
            yield _json(line)


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def chart_of_fileio(cells: Sequence[MatrixCell], shades: Mapping[str, int]) -> Chart | None:
    """Return throughput and p99.9 by threads; None without cells.

    `shades` are the colours of the backends by name: a volume of that name has the same one.
    """
    if not cells:
        return None
    taken = dict(shades)
    lines: dict[str, dict[tuple[int, int, bool], list[MatrixCell]]] = {}
    for cell in cells:
        taken.setdefault(cell.volume, max(taken.values(), default=-1) + 1)
        lines.setdefault(cell.volume, {}).setdefault(cell.how, []).append(cell)
    volumes = [
        Volume(
            f"{volume}, {_how(how)}" if len(by_how) > 1 else volume,
            taken[volume],
            number,
            [Point(c.test, c.threads, c.throughput_mib_per_s, c.p999_ms) for c in some],
        )
        for volume, by_how in lines.items()
        for number, (how, some) in enumerate(by_how.items())
    ]
    every = {how for by_how in lines.values() for how in by_how}
    of = f" {_how(next(iter(every)))}." if len(every) == 1 else ""
    caption = (
        f"sysbench fileio, without a site.{of} Left: read and written each second, more is better. Right: "
        "the slowest in a thousand of all reads, writes and fsyncs, less is better; it takes 1,000 of them. "
        "A closed loop: a thread that waits asks for nothing meanwhile."
    )
    return fileio_chart("fileio", caption, volumes)


def fileio_table(cells: Sequence[MatrixCell], syncs: Sequence[FsyncCell] = ()) -> Table | None:
    """Return all volumes side by side, a row a test and number of threads; None without cells.

    Below sysbench's tests come fio's calls. A volume whose tests have several settings has a column for each,
    and what its calls took is in all of these.
    """
    if not cells and not syncs:
        return None
    found = {(cell.volume, cell.how, cell.test, cell.threads): cell for cell in cells}
    volumes: list[tuple[str, tuple[int, int, bool] | None]] = list(
        dict.fromkeys((cell.volume, cell.how) for cell in cells)
    )
    tested = {volume for volume, _ in volumes}
    volumes += dict.fromkeys((cell.volume, None) for cell in syncs if cell.volume not in tested)
    names = [volume for volume, _ in volumes]
    called = [f"{name}, {_how(how)}" if how and names.count(name) > 1 else name for name, how in volumes]
    rows = {(cell.test, cell.threads) for cell in cells}
    known = list(TESTS)
    order = sorted(rows, key=lambda row: (known.index(row[0]) if row[0] in known else len(known), *row))
    by_cell = [[found.get((name, how, *row)) if how else None for name, how in volumes] for row in order]
    synced = {(cell.volume, cell.case): cell for cell in syncs}
    also = " In the rows of fdatasync and fsync, p99.9 is that of these calls alone." if syncs else ""
    return Table(
        "The volumes, cell by cell",
        "By test and number of threads: what was read and written each second, and the slowest in a thousand "
        f"of all reads, writes and fsyncs.{also} A dash: not measured, or fewer than 1,000 events for p99.9.",
        ["", *(f"MiB/s: {name}" for name in called), *(f"p99.9 (ms): {name}" for name in called)],
        [
            *(
                _row(
                    f"{TESTS.get(test, test)}, {threads}".replace(" ", "\N{NO-BREAK SPACE}"),
                    [(cell.throughput_mib_per_s, cell.p999_ms) if cell else None for cell in some],
                )
                for (test, threads), some in zip(order, by_cell, strict=True)
            ),
            *(
                _row(
                    words,
                    [
                        (cell.throughput_mib_per_s, cell.sync_ms.get("p99.9")) if cell else None
                        for cell in (synced.get((name, case)) for name in names)
                    ],
                )
                for case, words in names_of(syncs).items()
            ),
        ],
    )


def _row(name: str, figures: Sequence[tuple[float, float | None] | None]) -> Row:
    """Return the row of a cell on all volumes: throughput and p99.9, None where it was not measured."""
    return Row(
        name,
        [
            *(significant(each[0]) if each else ABSENT for each in figures),
            *(plain_ms(each[1]) if each else ABSENT for each in figures),
        ],
    )


def _how(how: tuple[int, int, bool]) -> str:
    size, block, direct = how
    return f"{_size(size)} in blocks of {block // 1024} KiB{', O_DIRECT' if direct else ''}"


def _size(size: int) -> str:
    return f"{size / _GIB:g} GiB" if size >= _GIB else f"{size / _MIB:g} MiB"
