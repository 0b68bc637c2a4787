"""Finished cells of `plimsoll fileio --fsync`, and the table of what an fsync takes (docs/fileio.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from analysis.charts.fileio import TESTS
from analysis.report.tables import Row, Table
from plimsoll.common.sizes import size_text
from plimsoll.common.units import count, counted, plain_ms

_SHOWN = ("p50", "p90", "p95", "p99", "p99.9", "max")
_OF_WRITES = ("p50", "p99.9")
_PLAIN_ENGINE = "sync"

Count = Annotated[int, Field(ge=0, le=1 << 62)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, order=True)
class What:
    """What was measured (all words hostile); what has a recipe comes first."""

    unlike_recipe: bool
    preset: str
    call: str
    test: str
    engine: str
    block_bytes: int
    threads: int
    direct: bool
    file_size_bytes: int
    time_s: int


class SyncCell(BaseModel):
    """One cell: a volume (hostile), a call after each write, and what came of both."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    volume: str
    preset: str | None = None
    test: str
    call: str
    engine: str
    block_bytes: Count
    threads: Annotated[int, Field(ge=1, le=1 << 20)]
    file_size_bytes: Count
    time_s: Count | None = None
    direct: bool = False
    syncs: Count
    throughput_mib_per_s: Number
    iops: Number
    sync_ms: dict[str, Number | None]
    write_ms: dict[str, Number | None]

    @property
    def what(self) -> What:
        """What was measured, whichever the volume."""
        return What(
            self.preset is None,
            self.preset or "",
            self.call,
            self.test,
            self.engine,
            self.block_bytes,
            self.threads,
            self.direct,
            self.file_size_bytes,
            self.time_s or 0,
        )


def names_of(cells: Sequence[SyncCell]) -> dict[What, str]:
    """Return what was measured, in order, each in words that tell it from the others (hostile). Pure."""
    every = sorted({cell.what for cell in cells})
    short = [_words(what) for what in every]
    return {
        what: words
        if short.count(words) == 1
        else f"{words}, {size_text(what.file_size_bytes)}, {what.time_s} s"
        for what, words in zip(every, short, strict=True)
    }


def fsync_table(cells: Sequence[SyncCell]) -> Table | None:
    """Return what each call took, a row a volume, those of one call together; None without cells."""
    if not cells:
        return None
    volumes = list(dict.fromkeys(cell.volume for cell in cells))
    found = {(cell.what, cell.volume): cell for cell in cells}
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
            for what, words in names_of(cells).items()
            for volume in volumes
            if (cell := found.get((what, volume)))
        ],
    )


def _words(what: What) -> str:
    threads = counted(what.threads, "thread")
    if what.preset:
        return f"{what.call}, {what.preset}'s recipe"
    test = TESTS.get(what.test, what.test)
    engine = "" if what.engine == _PLAIN_ENGINE else f", {what.engine}"
    direct = ", O_DIRECT" if what.direct else ""
    return f"{what.call}, {test} of {size_text(what.block_bytes)}, {threads}{engine}{direct}"
