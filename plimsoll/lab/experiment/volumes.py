"""The volumes of an experiment, measured with sysbench and fio: each once, before the first run on it.

Factors that share a clone share its volume; where a level needs a clone of its own (record size, compression,
the disk itself), that clone's volume is measured too, under the clone's name.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from plimsoll.common.errors import PlimsollError
from plimsoll.common.units import counted
from plimsoll.lab.experiment.folder import ExperimentFolder
from plimsoll.lab.experiment.notices import Notices
from plimsoll.lab.experiment.rig import Rig, StepGroup
from plimsoll.lab.experiment.settings import Lab
from plimsoll.lab.experiment.transcript import RecordedMachine
from plimsoll.lab.fileio.bench import FileioError, only_looks
from plimsoll.lab.fileio.measure import (
    Cells,
    Settings,
    VolumeFiles,
    bench_of,
    cache_caution,
    read_cells,
    run_matrix,
)
from plimsoll.lab.fileio.sysbench import FileioSettings

Say = Callable[[str], None]


def measured_rigs(lab: Lab) -> list[str]:
    """Return the rigs whose volumes are measured, in the order of the file. Pure."""
    return lab.fileio.choice.rigs(lab) if lab.fileio else []


def lacking(lab: Lab, kept_in: Path) -> dict[str, Cells]:
    """Return the cells that `kept_in` does not hold yet, by rig; without whole ones. Raises OutputError."""
    if (fileio := lab.fileio) is None:
        return {}
    done = {cell.key for cell in read_cells(kept_in)}
    found = {
        rig: [cell for part in fileio.parts for key, cell in part.keyed(rig).items() if key not in done]
        for rig in measured_rigs(lab)
    }
    return {rig: cells for rig, cells in found.items() if cells}


class Volumes:
    """The measurement of all volumes. What fails is told and left out: the runs matter more."""

    def __init__(self, lab: Lab, folder: ExperimentFolder, say: Say, notices: Notices) -> None:
        self._lab, self._folder, self._say, self._notices = lab, folder, say, notices
        self._due = set(lacking(lab, folder.fileio))
        self._failed: dict[str, str] = {}

    def is_due(self, rig: str) -> bool:
        """Return whether the volume of `rig` is still to be measured."""
        return rig in self._due

    def not_measured(self) -> dict[str, str]:
        """Return the volumes with cells that are not finished, and why."""
        left = lacking(self._lab, self._folder.fileio)
        return {rig: self._failed.get(rig, "its backend could not be made") for rig in left}

    async def measure(self, rig: Rig) -> None:
        """Measure what lacks of the volume of `rig`, which has been made and rests; of others nothing."""
        if rig.name not in self._due or rig.files is None or self._lab.fileio is None:
            return
        self._due.discard(rig.name)
        every = [rig.files.settings(part, rig.name) for part in self._lab.fileio.parts]
        cells = lacking(self._lab, self._folder.fileio)[rig.name]
        programs = " and ".join(bench_of(settings).program for settings in every)
        self._say(f"{rig.name}: measuring its volume with {programs}: {counted(len(cells), 'cell')} ...")
        self._folder.journal.note("fileio begun", backend=rig.name)
        try:
            async with rig.tuned(self._folder.tuning(rig.name), of_clone=False):
                await self._measured(rig, rig.files, every)
        except PlimsollError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # its files could not be removed at once
                raise asyncio.CancelledError from None
            self._fail(rig.name, str(error))
        else:
            self._folder.journal.note("fileio ended", backend=rig.name)
            self._say(f"{rig.name}: all {len(self._lab.fileio.all_cells)} cells are in {self._folder.fileio}")

    async def _measured(self, rig: Rig, files: VolumeFiles, every: Sequence[Settings]) -> None:
        for settings in every:
            if not isinstance(settings, FileioSettings):
                continue
            if caution := cache_caution(settings, await rig.machine.read_text("/proc/meminfo")):
                self._say(f"{rig.name}: fileio: {_as_keys(caution, settings)}")
        await rig.do(before(rig, files))
        try:
            recorded = RecordedMachine(rig.machine, rig.tell, lambda words: not only_looks(words))
            machine = rig.saturated_on(recorded, rig.runner.captured)
            for settings in every:
                step = partial(self._step, rig.name, bench_of(settings).program)
                try:
                    await run_matrix(machine, settings, self._folder.fileio, resume=True, on_step=step)
                except FileioError as error:
                    raise FileioError(_as_keys(str(error), settings)) from None
        finally:
            await rig.do([after(files)])

    def _step(self, rig: str, program: str, says: str, measures: bool) -> None:
        """Note for those who look on; the cells themselves are down on the disk."""
        what = ("fsync cell" if program == "fio" else "fileio cell") if measures else "fileio files"
        self._folder.journal.note(what, sync=False, backend=rig, says=says)

    def _fail(self, rig: str, why: str) -> None:
        self._failed[rig] = reason = why.partition("\n")[0].rstrip(".")
        self._folder.journal.note("fileio failed", backend=rig, why=why)
        said = f"{rig}: fileio failed: {reason}. The runs go on; plimsoll run --resume tries it again."
        self._say(said)
        self._notices.tell("failure", "fileio failed", f"fileio on {rig} failed", [said])


def before(rig: Rig, files: VolumeFiles) -> list[StepGroup]:
    """Return the steps before the first cell: the disk is as slow as in the runs."""
    return [rig.limit(), StepGroup("make room for the test files", (files.make(),))]


def after(files: VolumeFiles) -> StepGroup:
    """Return the steps after the last cell."""
    return StepGroup("remove the test files", (files.remove(),))


def _as_keys(text: str, settings: Settings) -> str:
    """Return what is said of options of the command `plimsoll fileio` as keys of lab.yml."""
    of = "fileio" if isinstance(settings, FileioSettings) else "fileio.fsync"
    return text.replace("--file-size", f"{of}.file_size").replace("--direct", f"{of}.direct: true")
