"""The storage: what differs, what volumes give, what an fsync takes, and how they were filled."""

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.evidence.storage import described, differing
from plimsoll.analysis.page.chart import Chart, Json, axis, choose_scale, colour_of, layout, log_ticks, points
from plimsoll.analysis.page.section import Row, Section, Table
from plimsoll.analysis.report.runs import MANY
from plimsoll.common.errors import RunDirectoryError, Severity
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import (
    ABSENT,
    count,
    counted,
    decimal,
    milliseconds,
    plain_ms,
    significant,
    size_text,
)
from plimsoll.rundir.facts import Storage
from plimsoll.rundir.volumes import (
    AnyCell,
    Figure,
    FsyncCase,
    FsyncCell,
    MatrixCell,
    VolumeRound,
    cell_in,
    last_filling,
    parse_round,
)

# Where a clone lies is called after its backend; and that a disk is emulated is said of its clone again.
_WHERE = ("clone.folder", "clone.name", "clone.emulated")
TUNING_SAYS = "What begins with tuning was set by the lab, as lab.yml has it for that backend."
_LARGEST_BYTES = 64 << 20
_MIB, _GIB = 1 << 20, 1 << 30
_SHOWN: tuple[Figure, ...] = ("p50", "p90", "p95", "p99", "p99.9", "max")
_OF_WRITES: tuple[Figure, ...] = ("p50", "p99.9")
_PLAIN_ENGINE = "sync"
_LARGEST_ROUNDS_BYTES = 16 << 20
_MOST_ROWS = 100
TESTS = {
    "rndrd": "random reads",
    "seqrd": "sequential reads",
    "rndwr": "random writes",
    "seqwr": "sequential writes",
    "rndrw": "random mix",
}
_GAP = 0.05
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")


Storages = Mapping[str, Sequence[Storage]]  # by the backend's name (hostile): what was read in each run


def differences_section(storages: Storages) -> list[Section]:
    """Return what differs between the backends."""
    table = differences_table(storages)
    return [Section(tables=[table], layout="differences")] if table else []


def differences_table(storages: Storages) -> Table | None:
    """Return what differs between the backends' facts; None where fewer than two say anything."""
    facts = _first_facts(storages)
    if len(facts) < 2:
        return None
    rows = [
        Row(key, [_fact(value) for value in values])
        for key, values in differing(list(facts.values()), expected=(*_WHERE, "datasets.compress_ratio"))
    ]
    alike = not rows
    if ratios := _compress_ratios(storages):
        rows.append(Row("compress ratio", [ratios.get(name, ABSENT) for name in facts]))
    caption = (
        "What the lab read of the storage and its host, where it is not the same for all backends. Ideally, "
        "only what you want to compare is listed."
    )
    if alike:
        caption = "Nothing of what the lab read of the storage and its host differs between the backends."
    if any(row.name.startswith("tuning.") for row in rows):
        caption += f" {TUNING_SAYS}"
    if ratios:
        caption += " The compress ratio is always listed; it changes with what a run writes."
    if len(facts) > MANY and rows:
        turned = [Row(name, [row.cells[place] for row in rows]) for place, name in enumerate(facts)]
        return Table("What differs between the backends", caption, ["", *(row.name for row in rows)], turned)
    return Table("What differs between the backends", caption, ["", *facts], rows, has_words=True)


def differences_json(storages: Storages) -> list[dict[str, object]]:
    """Return what differs between the backends, for `--json`."""
    facts = _first_facts(storages)
    if len(facts) < 2:
        return []
    return [
        {"key": key, "backends": dict(zip(facts, values, strict=True))}
        for key, values in differing(list(facts.values()), expected=_WHERE)
    ]


def _first_facts(storages: Storages) -> dict[str, dict[str, object]]:
    """Return the facts of each backend, from the first of its runs that has any."""
    return {backend: described(each[0]) for backend, each in storages.items()}


def _compress_ratios(storages: Storages) -> dict[str, str]:
    """Return how well each backend's data compress: `1.4`, or the span of its runs and datasets."""
    found: dict[str, list[float]] = {}
    for backend, each in storages.items():
        every = [storage.facts.get("datasets") for storage in each]
        for dataset in (one for datasets in every if isinstance(datasets, list) for one in datasets):
            ratio = dataset.get("compress_ratio") if isinstance(dataset, dict) else None
            if isinstance(ratio, int | float) and not isinstance(ratio, bool) and ratio > 0:
                found.setdefault(backend, []).append(float(ratio))
    return {
        name: " to ".join(dict.fromkeys(significant(edge) for edge in (min(ratios), max(ratios))))
        for name, ratios in found.items()
    }


def _fact(value: object) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    return significant(value, 6) if isinstance(value, float) and value >= 0 else str(value)


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
            troubles.append(f"{path}: contains no result of plimsoll fileio.")
        elif damaged:
            are = (
                "one line is not a finished cell"
                if damaged == 1
                else f"{damaged} lines are not finished cells"
            )
            troubles.append(f"{path}: {are} (cut off, NaN or damaged), so points may be missing.")
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


def volume_sections(fileio: Cells, rounds: Sequence[VolumeRound], shades: Mapping[str, int]) -> list[Section]:
    """Return what the volumes give, what an fsync takes on them, and how they were filled.

    `shades` are the colours of the backends by name: a volume of that name has the same one.
    """
    chart = _chart(fileio.cells, shades)
    tables = [fileio_table(fileio.cells, fileio.syncs), fsync_table(fileio.syncs)]
    volumes = Section(
        charts=[chart] if chart else [],
        tables=[table for table in tables if table],
        findings=[Finding(Severity.WARN, trouble) for trouble in fileio.troubles],
    )
    filled = rounds_table(rounds)
    return [volumes, *([Section(filled.title, tables=[filled], layout="fold")] if filled else [])]


@dataclass(frozen=True)
class _Volume:
    """One line of the chart: a volume's name (hostile), its colour's number, which of its lines it is."""

    name: str
    shade: int
    line: int
    cells: Sequence[MatrixCell]


def _chart(cells: Sequence[MatrixCell], shades: Mapping[str, int]) -> Chart | None:
    """Return throughput and p99.9 by threads; None without cells."""
    if not cells:
        return None
    taken = dict(shades)
    lines: dict[str, dict[tuple[int, int, bool], list[MatrixCell]]] = {}
    for cell in cells:
        taken.setdefault(cell.volume, max(taken.values(), default=-1) + 1)
        lines.setdefault(cell.volume, {}).setdefault(cell.how, []).append(cell)
    volumes = [
        _Volume(f"{volume}, {_how(how)}" if len(by_how) > 1 else volume, taken[volume], number, some)
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
    return _cell_chart(caption, volumes)


def _cell_chart(caption: str, volumes: Sequence[_Volume]) -> Chart:
    """Return a row a test, throughput on the left and p99.9 on the right, over the number of threads."""
    every = [cell for volume in volumes for cell in volume.cells]
    tests = [name for name in TESTS if any(cell.test == name for cell in every)]
    tests += sorted({cell.test for cell in every} - set(tests))
    threads = [str(number) for number in sorted({cell.threads for cell in every})]
    scales = (
        choose_scale([cell.throughput_mib_per_s for cell in every], 30),
        choose_scale([cell.p999_ms or 0.0 for cell in every], 30),
    )
    data: list[Json] = []
    axes: Json = {}
    height = (1 + _GAP) / len(tests)
    for row, test in enumerate(tests):
        top = 1 - row * height
        domain = [max(round(top - height + _GAP, 4), 0), round(top, 4)]
        for column, unit in enumerate(("MiB/s", "p99.9 (ms)")):
            number = _number(row * 2 + column)
            values = [v for c in every if c.test == test and (v := _value(c, column))]
            title = f"{plotly_text(TESTS.get(test, test), 24)}<br>{unit}" if not column else unit
            axes[f"yaxis{number}"] = (
                axis(title, scales[column])
                | (log_ticks(values) if scales[column] == "log" else {"nticks": 4})
                | {"domain": domain, "anchor": f"x{_number(column)}"}
            )
            axes[f"yaxis{number}"]["title"] = {"text": title, "standoff": 8, "font": {"size": 11}}
            for volume in volumes:
                data += _line(volume, test, column, number, legend=not row and not column)
    for column, edges in enumerate(([0, 0.43], [0.57, 1])):
        axes[f"xaxis{_number(column)}"] = axis("threads") | {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": threads,
            "domain": edges,
            "anchor": f"y{_number((len(tests) - 1) * 2 + column)}",
        }
    x_axis, y_axis = axes.pop("xaxis"), axes.pop("yaxis")
    return Chart(
        key="fileio",
        title="What the volumes give by threads, by sysbench",
        caption=caption,
        data=data,
        layout=layout(x_axis, y_axis, **axes),
        tall=max(len(tests) - 1, 0),
    )


def _line(volume: _Volume, test: str, column: int, number: str, legend: bool) -> list[Json]:
    cells = sorted((cell for cell in volume.cells if cell.test == test), key=lambda cell: cell.threads)
    if not cells and not legend:
        return []
    name, colour = plotly_text(volume.name), colour_of(volume.shade)
    trace = points(
        name,
        [],
        [_value(cell, column) for cell in cells],
        mode="lines+markers",
        line={"color": colour, "width": 2, "dash": _DASHES[volume.line % len(_DASHES)]},
        marker={"color": colour, "size": 7, "symbol": _SYMBOLS[volume.shade % len(_SYMBOLS)]},
        xaxis=f"x{_number(column)}",
        yaxis=f"y{number}",
        hovertext=[
            f"{name}: {plotly_text(TESTS.get(test, test), 24)}, {cell.threads} threads<br>"
            f"<b>{significant(cell.throughput_mib_per_s)} MiB/s</b>, p99.9 "
            f"<b>{milliseconds(cell.p999_ms)}</b>"
            for cell in cells
        ],
        hoverinfo="text",
        legendgroup=f"volume {volume.shade} {volume.line}",
        showlegend=legend,
    )
    return [trace | {"x": [str(cell.threads) for cell in cells]}]


def _value(cell: MatrixCell, column: int) -> float | None:
    return cell.p999_ms if column else cell.throughput_mib_per_s


def _number(place: int) -> str:
    return "" if not place else str(place + 1)


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
                _cell_row(
                    f"{TESTS.get(test, test)}, {threads}".replace(" ", "\N{NO-BREAK SPACE}"),
                    [(cell.throughput_mib_per_s, cell.p999_ms) if cell else None for cell in some],
                )
                for (test, threads), some in zip(order, by_cell, strict=True)
            ),
            *(
                _cell_row(
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


def _cell_row(name: str, figures: Sequence[tuple[float, float | None] | None]) -> Row:
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


def names_of(cells: Sequence[FsyncCell]) -> dict[FsyncCase, str]:
    """Return what was measured, recipes first, each in words that tell it from the others. Pure."""
    every = sorted({cell.case for cell in cells}, key=_order)
    short = [_words(case) for case in every]
    return {
        case: words
        if short.count(words) == 1
        else f"{words}, {size_text(case.file_size_bytes)}, {case.time_s} s"
        for case, words in zip(every, short, strict=True)
    }


def _order(case: FsyncCase) -> tuple[object, ...]:
    return (
        case.preset is None,
        case.preset or "",
        case.call,
        case.test,
        case.engine,
        case.block_bytes,
        case.threads,
        case.direct,
        case.file_size_bytes,
        case.time_s or 0,
    )


def fsync_table(cells: Sequence[FsyncCell]) -> Table | None:
    """Return what each call took, a row a volume, those of one call together; None without cells."""
    if not cells:
        return None
    volumes = list(dict.fromkeys(cell.volume for cell in cells))
    found = {(cell.case, cell.volume): cell for cell in cells}
    return Table(
        "What an fsync takes",
        "Milliseconds of fdatasync and fsync alone, and of the writes before them, by fio, without a site. A "
        "database waits for such a call before it says that something is saved. A dash: too few calls.",
        [
            "",
            "volume",
            "calls",
            *_SHOWN,
            *(f"writes' {name}" for name in _OF_WRITES),
        ],
        [
            Row(
                words,
                [
                    volume,
                    count(cell.syncs),
                    *(plain_ms(cell.sync_ms.get(name)) for name in _SHOWN),
                    *(plain_ms(cell.write_ms.get(name)) for name in _OF_WRITES),
                ],
            )
            for case, words in names_of(cells).items()
            for volume in volumes
            if (cell := found.get((case, volume)))
        ],
    )


def _words(case: FsyncCase) -> str:
    threads = counted(case.threads, "thread")
    if case.preset:
        return f"{case.call}, {case.preset}'s recipe"
    test = TESTS.get(case.test, case.test)
    engine = "" if case.engine == _PLAIN_ENGINE else f", {case.engine}"
    direct = ", O_DIRECT" if case.direct else ""
    return f"{case.call}, {test} of {size_text(case.block_bytes)}, {threads}{engine}{direct}"


def read_rounds(paths: Sequence[Path]) -> list[VolumeRound]:
    """Return the rounds in `paths`, of each volume those of its last filling. Raises RunDirectoryError."""
    found: list[VolumeRound] = []
    for path in paths:
        try:
            with path.open("rb") as file:
                lines = file.read(_LARGEST_ROUNDS_BYTES).splitlines()
        except OSError as error:
            raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
        every = [one for line in lines if (one := parse_round(_json(line)))]
        for volume in dict.fromkeys(one.volume for one in every):
            found += last_filling(every, volume)
    return found


def rounds_table(rounds: Sequence[VolumeRound]) -> Table | None:
    """Return the table of rounds, a row each; None without any."""
    if not rounds:
        return None
    shown = rounds[-_MOST_ROWS:]
    left_out = f" The first {len(rounds) - len(shown)} rows are left out." if len(shown) < len(rounds) else ""
    first = rounds[0]
    return Table(
        "How the volumes were filled and overwritten",
        f"Before the first run, each volume was filled to {first.fill_percent} %, and blocks of "
        f"{_round_size(first.block_bytes)} were overwritten at random by {counted(first.threads, 'thread')}, "
        "round after round, until it was steady: five rounds whose IOPS lie within 20 % of their average "
        "(range), and whose straight line rises or falls by no more than 10 % of it (slope); that is SNIA's "
        "definition." + left_out,
        ["", "MiB/s", "IOPS", "p99.9 (ms)", "range (%)", "slope (%)", "steady"],
        [_round_row(one) for one in shown],
    )


def _round_row(one: VolumeRound) -> Row:
    if one.round == 0:
        name = f"{one.volume}, filling with {_round_size(one.bytes)}"
        return Row(name, [significant(one.mib_per_s), *[ABSENT] * 5])
    cells = [
        significant(one.mib_per_s),
        ABSENT if one.iops is None else significant(one.iops),
        plain_ms(one.p999_ms),
        decimal(one.range_percent),
        decimal(one.slope_percent),
        {True: "yes", False: "no", None: ABSENT}[one.steady],
    ]
    return Row(f"{one.volume}, round {one.round}", cells)


def _round_size(size: int) -> str:
    for unit_bytes, unit in ((_GIB, "GiB"), (_MIB, "MiB"), (1 << 10, "KiB")):
        if size >= unit_bytes:
            return f"{significant(size / unit_bytes)} {unit}"
    return f"{size} B"
