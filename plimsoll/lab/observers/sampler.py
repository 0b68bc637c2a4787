"""Samples all observers of a host once a second, at absolute deadlines, into `host.csv` of a run directory.

A run's start is known only once it has begun; `copy_host_samples` brings the file into its directory then.
"""

import asyncio
import csv
import io
import math
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from plimsoll.common.files import replace_text, write_error
from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers import ObserverSettings, find_observer
from plimsoll.lab.observers.observer import FileSource, Log, Stream, read_files
from plimsoll.rundir.names import HOST_FILE

_PERIOD_NS = 1_000_000_000
_NUMBER = re.compile(r"-?[0-9]{1,20}")
Row = list[float | None]


class HostCsv:
    """A `host.csv`, whose columns are fixed when it is made. Its methods raise OutputError.

    Each row reaches the operating system whole and at once, so that a kill loses none.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        """Create `path`, which must not exist: a run has only one."""
        self.path = path
        self.columns = tuple(columns)
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise write_error(path, error) from None
        self._append(("t_ns", *self.columns))

    def sample(self, t_ns: int, values: Sequence[float | None]) -> None:
        """Append a row: `t_ns` since the start of the run, and a figure or None for each column."""
        if len(values) != len(self.columns):
            raise ValueError(f"{len(values)} figures for {len(self.columns)} columns")
        self._append((t_ns, *(csv_figure(value) for value in values)))

    def close(self) -> None:
        """End the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, fields: Iterable[object]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(fields)
        try:
            self._file.write(text.getvalue().encode("utf-8", errors="replace"))
        except OSError as error:
            raise write_error(self.path, error) from None


def csv_figure(value: float | None) -> str:
    """Return a figure as it is written: empty for none, whole where it is, else six significant digits.

    Bytes and counts keep all their digits. Pure.
    """
    if value is None or not math.isfinite(value):
        return ""
    return str(int(value)) if value == int(value) else f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"


class Sampler:
    """The observers of one host. What cannot be read stays empty, and is reported once."""

    def __init__(
        self, machine: Machine, observed: Sequence[FileSource | Stream], log: Log = lambda _: None
    ) -> None:
        self._machine, self._log = machine, log
        self._files = [one for one in observed if isinstance(one, FileSource)]
        self._streams = [one for one in observed if not isinstance(one, FileSource)]
        self._paths = list(dict.fromkeys(path for source in self._files for path in source.paths))
        self._complained: set[str] = set()

    @property
    def columns(self) -> list[str]:
        """The columns of `host.csv` after `t_ns`."""
        observed: list[FileSource | Stream] = [*self._files, *self._streams]
        return [f"{one.name}.{column.name}" for one in observed for column in one.columns]

    async def run(self, file: HostCsv, run_start_ns: int, stop: asyncio.Event) -> None:
        """Write a row a second until `stop`; `run_start_ns` is the monotonic instant that `t_ns` counts from.

        A host that does not answer gives empty rows. Raises OutputError when the disk is full.
        """
        start_ns = time.monotonic_ns()
        try:
            for stream in self._streams:
                try:
                    await stream.start(self._log)
                except MachineError as error:
                    self._complain(stream.name, str(error))
            while not stop.is_set():
                at_ns, values = await self.once()
                file.sample(at_ns - run_start_ns, values)
                now_ns = time.monotonic_ns()
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), (next_due_ns(start_ns, now_ns) - now_ns) / 1e9)
        finally:
            for stream in self._streams:
                await stream.stop()

    async def once(self) -> tuple[int, Row]:
        """Return one sample and its monotonic instant: the middle of the time that the reading took."""
        at_ns, row = await self._read_files()
        for stream in self._streams:
            row += stream.sample()
        return at_ns, row

    async def _read_files(self) -> tuple[int, Row]:
        before_ns = time.monotonic_ns()
        texts: dict[str, str | None] = {}
        try:
            read = await read_files(self._machine, self._paths)
            texts = dict(zip(self._paths, read, strict=True))
        except MachineError as error:
            self._complain(None, str(error))
        at_ns = (before_ns + time.monotonic_ns()) // 2
        row: Row = []
        for source in self._files:
            found = [texts.get(path) for path in source.paths]
            row += source.sample(found, at_ns)
            if texts and not any(found):
                self._complain(source.name, f"{source.paths[0]} cannot be read here; its columns stay empty")
        return at_ns, row

    def _complain(self, observer: str | None, text: str) -> None:
        if (observer or "") not in self._complained:
            self._complained.add(observer or "")
            self._log(f"{observer}: {text}" if observer else text)


def next_due_ns(start_ns: int, now_ns: int) -> int:
    """Return the first whole second after `now_ns`, counted from `start_ns`; seconds missed are left out."""
    return start_ns + (max(0, now_ns - start_ns) // _PERIOD_NS + 1) * _PERIOD_NS


async def prepare_sampler(machine: Machine, settings: ObserverSettings, log: Log) -> Sampler:
    """Return the sampler of `settings`, whose columns are fixed from here on. Raises MachineError.

    `log` gets a sentence for each thing that this host lacks.
    """
    messages: list[str] = []
    observed = [
        await find_observer(name).prepare(machine, settings, messages.append) for name in settings.observe
    ]
    for sentence in merge_repeats(messages):
        log(sentence)
    return Sampler(machine, [one for one in observed if one is not None], log)


def merge_repeats(messages: Sequence[str]) -> list[str]:
    """Return sentences `OBSERVER: TEXT`, those of one text as one that names all observers. Pure."""
    names: dict[str, list[str]] = {}
    for sentence in messages:
        name, _, text = sentence.partition(": ")
        names.setdefault(text, []).append(name)
    return [f"{', '.join(each)}: {text}" for text, each in names.items()]


def copy_host_samples(source: Path, directory: Path, later_ns: int) -> Path:
    """Write `source`, shifted, as `host.csv` of the run directory `directory`, by rename; `source` stays.

    `later_ns` is how much later the run began than the instant that `source` counts from, such as the
    difference of the wall clock then and `started_at` of run.json. Raises OutputError.
    """
    path = directory / HOST_FILE
    try:
        replace_text(path, shift_rows(source.read_text(encoding="utf-8"), later_ns))
    except OSError as error:
        raise write_error(path, error) from None
    return path


def shift_rows(text: str, later_ns: int) -> str:
    """Return `text` of a host.csv with `t_ns` counted from an instant `later_ns` later. Pure.

    Rows of before the run have a negative `t_ns`. A last line that was cut off is left out.
    """
    header, *rows = text.rpartition("\n")[0].split("\n")
    moved = [header]
    for row in rows:
        t_ns, comma, rest = row.partition(",")
        if _NUMBER.fullmatch(t_ns):
            moved.append(f"{int(t_ns) - later_ns}{comma}{rest}")
    return "\n".join(moved) + "\n"
