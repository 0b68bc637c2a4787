"""Finished cells of `plimsoll fileio --fsync`, and the table of what an fsync takes (docs/fileio.md)."""

from collections.abc import Sequence

from plimsoll.analysis.charts.fileio import TESTS
from plimsoll.analysis.page.section import Row, Table
from plimsoll.common.units import count, counted, plain_ms, size_text
from plimsoll.rundir.cells import Figure, FsyncCase, FsyncCell

_SHOWN: tuple[Figure, ...] = ("p50", "p90", "p95", "p99", "p99.9", "max")
_OF_WRITES: tuple[Figure, ...] = ("p50", "p99.9")
_PLAIN_ENGINE = "sync"


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
