"""What is done to volumes before the first run on them: filled until they are steady, and measured.

A filling stays in the runs, and is removed at the end. One that a kill -9 left on a disk that exists is taken
over, and its rounds go on. A volume that cannot be filled keeps its backend from being run on. What fails of
a measurement is reported and left out: the runs matter more. Factors that share a clone share its volume;
where a level needs a clone of its own, that clone's volume is filled and measured too, under its name.
"""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from plimsoll.common.errors import PlimsollError
from plimsoll.common.files import append_line
from plimsoll.common.units import counted
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.design import measured_rigs, preconditioned_rigs, rigs_in
from plimsoll.lab.experiment.folder import ExperimentFolder
from plimsoll.lab.experiment.labfile import Backend, Lab, Precondition
from plimsoll.lab.experiment.machines import RecordedMachine
from plimsoll.lab.experiment.notices import LogLine, Notices
from plimsoll.lab.experiment.rig import Rig, StepGroup
from plimsoll.lab.fileio import precondition
from plimsoll.lab.fileio.bench import FileioError, is_read_only
from plimsoll.lab.fileio.measure import (
    BenchCases,
    Settings,
    VolumeFiles,
    cache_caution,
    make_bench,
    measure_cells,
    read_cells,
)
from plimsoll.lab.fileio.precondition import (
    Filling,
    PreconditionSettings,
    check_size,
    filling_bytes,
    parse_numbers,
    steadiness,
)
from plimsoll.lab.fileio.sysbench import FileioSettings
from plimsoll.lab.machine import Machine
from plimsoll.rundir.volumes import VolumeRound, last_filling, read_rounds

_END_S = 600.0  # for a round beyond its time: the last fsync of a slow disk


class VolumeFilling:
    """What is done to the volumes, so that they are full and used in the runs."""

    def __init__(self, lab: Lab, folder: ExperimentFolder, say: LogLine) -> None:
        self._lab, self._folder, self._say = lab, folder, say
        self._rigs = set(preconditioned_rigs(lab))
        self._on = {name: volume_of(variant.backend) for name, variant in rigs_in(lab).items()}
        self._unfilled = set(self._rigs)

    def needs_filling(self, rig: str) -> bool:
        """Return whether the volume of `rig` is to be filled before its runs."""
        return rig in self._rigs

    async def fill_if_due(self, rig: Rig) -> None:
        """Fill the volume of `rig`, which stands and is idle, and overwrite it, unless that is done.

        Raises LabError.
        """
        wanted, filling = self._lab.precondition, rig.filling
        if wanted is None or filling is None or not self.needs_filling(rig.name):
            return
        rounds = last_filling(read_rounds(self._folder.rounds), rig.name)
        there = await filling.whole(rig.machine)
        if there is None or not rounds or there[0] != rounds[-1].filling:
            rounds = []
        if is_finished(rounds, wanted):
            self._unfilled.discard(rig.name)
            return
        self._folder.journal.note("precondition begun", backend=rig.name)
        try:
            async with rig.tune(self._folder.tuning(rig.name), of_clone=False):
                rounds = await self._overwrite(rig, filling, wanted, rounds)
        except PlimsollError as error:
            self._folder.journal.note("precondition failed", backend=rig.name, why=str(error))
            raise LabError(f"precondition: {str(error).removeprefix('precondition: ')}") from None
        self._folder.journal.note("precondition ended", backend=rig.name)
        state = "steady" if rounds[-1].steady else "not steady"
        after = "" if rounds[-1].steady else "; the runs begin anyway, and the report says so"
        self._say(f"{rig.name}: its volume is {state} after {counted(rounds[-1].round, 'round')}{after}.")

    async def _overwrite(
        self, rig: Rig, filling: Filling, wanted: Precondition, rounds: list[VolumeRound]
    ) -> list[VolumeRound]:
        if not rounds:
            rounds = [await self._fill(rig, filling, wanted)]
        self._unfilled.discard(rig.name)
        await rig.do([rig.limit()])
        machine = rig.under_limits(RecordedMachine(rig.machine, rig.note_step), rig.runner.captured)
        while not is_finished(rounds, wanted):
            number = rounds[-1].round + 1
            self._step(rig, "round", f"round {number} of at most {wanted.most_rounds}")
            command = precondition.overwrite(filling.folder, rounds[0].bytes, filling.direct, wanted)
            found = await _run_fio(machine, command, wanted.round_s + _END_S)
            said = {"p999_ms": found.p999_ms, **judge_round(rounds, found.iops)}
            one = self._keep(rig, wanted, rounds[0].filling, number, found, iops=found.iops, **said)
            rounds = [*rounds, one]
        return rounds

    async def _fill(self, rig: Rig, filling: Filling, wanted: Precondition) -> VolumeRound:
        """Write the filling, with the disk as fast as it can be, as the site is copied."""
        await rig.do(steps_before_filling(rig, filling))
        on = self._on[rig.name]
        sharing = Counter(self._on[name] for name in self._unfilled | {rig.name})[on]
        used, free, *_ = [*await _read_numbers(rig.machine, filling.room()), 0, 0]
        size_bytes = filling_bytes(wanted.fill_percent, used, free, sharing)
        check_size(
            size_bytes, min(await _read_numbers(rig.machine, filling.free()), default=0), wanted.fill_percent
        )
        self._say(f"{rig.name}: filling its volume to {wanted.fill_percent} %: {size_bytes >> 20} MiB ...")
        self._step(rig, "filling", f"filling the volume to {wanted.fill_percent} %")
        machine = RecordedMachine(rig.machine, rig.note_step)
        found = await _run_fio(
            machine, precondition.fill(filling.folder, size_bytes, filling.direct), wanted.longest_s
        )
        one = self._keep(rig, wanted, uuid.uuid4().hex, 0, found)
        await rig.do([StepGroup("note the filling", (filling.mark(one.filling),))])
        return one

    def _keep(
        self,
        rig: Rig,
        wanted: Precondition,
        filling: str,
        number: int,
        found: precondition.Written,
        **more: Any,
    ) -> VolumeRound:
        """Return a round after it is synced to the disk. Raises OutputError."""
        one = VolumeRound(
            volume=rig.name,
            filling=filling,
            round=number,
            fill_percent=wanted.fill_percent,
            block_bytes=wanted.block_bytes,
            threads=wanted.threads,
            bytes=found.bytes,
            seconds=found.seconds,
            mib_per_s=found.mib_per_s,
            **more,
        )
        append_line(self._folder.rounds, one.model_dump())
        return one

    def _step(self, rig: Rig, what: str, says: str) -> None:
        """Note it for `status`, without a sync of the disk; the rounds themselves are synced."""
        self._folder.journal.note(f"precondition {what}", sync=False, backend=rig.name, says=says)


def volume_of(backend: Backend) -> tuple[str, str]:
    """Return what identifies the volume of a backend: a pool may hold several backends. Pure."""
    disk: Any = backend.disk
    dataset, path = getattr(disk, "dataset", None), getattr(disk, "path", None)
    return backend.host, dataset.partition("/")[0] if dataset else path or f"the disk of {backend.name}"


def steps_before_filling(rig: Rig, filling: Filling) -> list[StepGroup]:
    """Return the steps before the filling: the disk is as fast as it can be."""
    return [
        StepGroup("lift the disk's limits", tuple(rig.place.unlimit if rig.place else ())),
        StepGroup("make room for the filling", (filling.remove(), filling.make())),
    ]


def planned_words(filling: Filling, wanted: Precondition) -> tuple[list[str], list[str]]:
    """Return the commands of the filling and of a round, of a size that only the run will know. Pure."""
    size: Any = "${filling_bytes}"
    return (
        precondition.fill(filling.folder, size, filling.direct),
        precondition.overwrite(filling.folder, size, filling.direct, wanted),
    )


async def _run_fio(machine: Machine, command: list[str], longest_s: float) -> precondition.Written:
    begun_s = time.monotonic()
    done = await machine.run(command, timeout_s=longest_s, check=False)
    if done.status == 127:
        raise LabError(f"{machine.name}: fio is not installed: apt-get install fio")
    if done.status:
        why = next(
            (line for line in done.err.splitlines() if line.startswith("fio:")), done.err.strip()[:200]
        )
        raise LabError(f"{machine.name}: fio ended with status {done.status}: {why or 'it gave no reason'}")
    # What counts against longest_s is all of the time: fio does not count the fsync at the end.
    return replace(precondition.parse_written(done.out), seconds=round(time.monotonic() - begun_s, 3))


async def _read_numbers(machine: Machine, command: list[str]) -> list[int]:
    return parse_numbers((await machine.run(command)).out)


def judge_round(rounds: Sequence[VolumeRound], iops: float) -> dict[str, Any]:
    """Return what a round of `iops` after `rounds` says of whether the volume is steady. Pure."""
    found = steadiness([*(one.iops or 0.0 for one in rounds if one.round), iops])
    if found is None:
        return {}
    percents = (round(found.range_percent, 2), round(found.slope_percent, 2))
    return {"range_percent": percents[0], "slope_percent": percents[1], "steady": found.steady}


def is_finished(rounds: Sequence[VolumeRound], wanted: PreconditionSettings) -> bool:
    """Return whether a volume needs no more rounds: it is steady, or one would exceed a limit. Pure."""
    if not rounds:
        return False
    spent_s = sum(one.seconds for one in rounds)
    return (
        rounds[-1].steady is True
        or rounds[-1].round >= wanted.most_rounds
        or spent_s + wanted.round_s > wanted.longest_s
    )


class VolumeMeasurement:
    """The measurement of all volumes. What fails is reported and left out: the runs matter more."""

    def __init__(self, lab: Lab, folder: ExperimentFolder, say: LogLine, notices: Notices) -> None:
        self._lab, self._folder, self._say, self._notices = lab, folder, say, notices
        self._due = set(missing_cells(lab, folder.fileio))
        self._failed: dict[str, str] = {}

    def needs_measuring(self, rig: str) -> bool:
        """Return whether the volume of `rig` is still to be measured."""
        return rig in self._due

    def not_measured(self) -> dict[str, str]:
        """Return the volumes with cells that are not finished, and why."""
        left = missing_cells(self._lab, self._folder.fileio)
        return {rig: self._failed.get(rig, "its backend could not be made") for rig in left}

    async def measure_if_due(self, rig: Rig) -> None:
        """Measure what is missing of the volume of `rig`, which stands and is idle, where that is due."""
        if rig.name not in self._due or rig.files is None or self._lab.fileio is None:
            return
        self._due.discard(rig.name)
        every = [rig.files.settings(part, rig.name) for part in self._lab.fileio.parts]
        cells = missing_cells(self._lab, self._folder.fileio)[rig.name]
        programs = " and ".join(make_bench(settings).program for settings in every)
        self._say(f"{rig.name}: measuring its volume with {programs}: {counted(len(cells), 'cell')} ...")
        self._folder.journal.note("fileio begun", backend=rig.name)
        try:
            async with rig.tune(self._folder.tuning(rig.name), of_clone=False):
                await self._measure(rig, rig.files, every)
        except PlimsollError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # its files could not be removed at once
                raise asyncio.CancelledError from None
            self._fail(rig.name, str(error))
        else:
            self._folder.journal.note("fileio ended", backend=rig.name)
            self._say(f"{rig.name}: all {len(self._lab.fileio.all_cells)} cells are in {self._folder.fileio}")

    async def _measure(self, rig: Rig, files: VolumeFiles, every: Sequence[Settings]) -> None:
        for settings in every:
            if not isinstance(settings, FileioSettings):
                continue
            if caution := cache_caution(settings, await rig.machine.read_text("/proc/meminfo")):
                self._say(f"{rig.name}: fileio: {_as_keys(caution, settings)}")
        await rig.do(steps_before_measuring(rig, files))
        try:
            recorded = RecordedMachine(rig.machine, rig.note_step, lambda words: not is_read_only(words))
            machine = rig.under_limits(recorded, rig.runner.captured)
            for settings in every:
                step = partial(self._step, rig.name, make_bench(settings).program)
                try:
                    await measure_cells(machine, settings, self._folder.fileio, resume=True, on_step=step)
                except FileioError as error:
                    raise FileioError(_as_keys(str(error), settings)) from None
        finally:
            await rig.do([steps_after_measuring(files)])

    def _step(self, rig: str, program: str, says: str, measures: bool) -> None:
        """Note it for `status`, without a sync of the disk; the cells themselves are synced."""
        what = ("fsync cell" if program == "fio" else "fileio cell") if measures else "fileio files"
        self._folder.journal.note(what, sync=False, backend=rig, says=says)

    def _fail(self, rig: str, why: str) -> None:
        self._failed[rig] = reason = why.partition("\n")[0].rstrip(".")
        self._folder.journal.note("fileio failed", backend=rig, why=why)
        said = f"{rig}: fileio failed: {reason}. The runs go on; plimsoll run --resume tries it again."
        self._say(said)
        self._notices.send("failure", "fileio failed", f"fileio on {rig} failed", [said])


def missing_cells(lab: Lab, kept_in: Path) -> dict[str, BenchCases]:
    """Return the cells that `kept_in` does not hold yet, by rig; without whole ones. Raises OutputError."""
    if (fileio := lab.fileio) is None:
        return {}
    done = {cell.key for cell in read_cells(kept_in)}
    found = {
        rig: [
            cell for part in fileio.parts for key, cell in part.cases_by_key(rig).items() if key not in done
        ]
        for rig in measured_rigs(lab)
    }
    return {rig: cells for rig, cells in found.items() if cells}


def steps_before_measuring(rig: Rig, files: VolumeFiles) -> list[StepGroup]:
    """Return the steps before the first cell: the disk is as slow as in the runs."""
    return [rig.limit(), StepGroup("make room for the test files", (files.make(),))]


def steps_after_measuring(files: VolumeFiles) -> StepGroup:
    """Return the steps after the last cell."""
    return StepGroup("remove the test files", (files.remove(),))


def _as_keys(text: str, settings: Settings) -> str:
    """Return messages on options of the command `plimsoll fileio` as messages on keys of lab.yml."""
    of = "fileio" if isinstance(settings, FileioSettings) else "fileio.fsync"
    return text.replace("--file-size", f"{of}.file_size").replace("--direct", f"{of}.direct: true")
