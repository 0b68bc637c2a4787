"""The volumes of an experiment, filled and overwritten until they are steady, before the first run of all.

A filling stays in the runs, and is removed at the end. One that a kill -9 left on a disk that exists is taken
over, and its rounds go on. A volume that cannot be filled keeps its backend from being run on.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from plimsoll.common.errors import PlimsollError
from plimsoll.common.units import counted
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.factors.variants import rigs_in
from plimsoll.lab.experiment.folder import ExperimentFolder
from plimsoll.lab.experiment.precondition_settings import Precondition, preconditioned_rigs
from plimsoll.lab.experiment.rig import Rig, StepGroup
from plimsoll.lab.experiment.rounds import is_over, judged, keep, read_rounds
from plimsoll.lab.experiment.settings import Backend, Lab
from plimsoll.lab.experiment.transcript import RecordedMachine
from plimsoll.lab.fileio import precondition
from plimsoll.lab.fileio.precondition import Filling, check_size, filling_bytes, numbers
from plimsoll.lab.machine import Machine
from plimsoll.rundir.volumes import VolumeRound, last_filling

Say = Callable[[str], None]

_END_S = 600.0  # for a round beyond its time: the last fsync of a slow disk


class Preconditioning:
    """What is done to the volumes, so that they are full and used in the runs."""

    def __init__(self, lab: Lab, folder: ExperimentFolder, say: Say) -> None:
        self._lab, self._folder, self._say = lab, folder, say
        self._rigs = set(preconditioned_rigs(lab))
        self._on = {name: volume_of(variant.settings) for name, variant in rigs_in(lab).items()}
        self._unfilled = set(self._rigs)

    def takes(self, rig: str) -> bool:
        """Return whether the volume of `rig` is to be filled before its runs."""
        return rig in self._rigs

    async def bring_about(self, rig: Rig) -> None:
        """Fill the volume of `rig`, which has been made and rests, and overwrite it, unless that is done.

        Raises LabError.
        """
        wanted, filling = self._lab.precondition, rig.filling
        if wanted is None or filling is None or not self.takes(rig.name):
            return
        rounds, there = (
            last_filling(read_rounds(self._folder.rounds), rig.name),
            await filling.whole(rig.machine),
        )
        if there is None or not rounds or there[0] != rounds[-1].filling:
            rounds = []
        if is_over(rounds, wanted):
            self._unfilled.discard(rig.name)
            return
        self._folder.journal.note("precondition begun", backend=rig.name)
        try:
            async with rig.tuned(self._folder.tuning(rig.name), of_clone=False):
                rounds = await self._overwritten(rig, filling, wanted, rounds)
        except PlimsollError as error:
            self._folder.journal.note("precondition failed", backend=rig.name, why=str(error))
            raise LabError(f"precondition: {str(error).removeprefix('precondition: ')}") from None
        self._folder.journal.note("precondition ended", backend=rig.name)
        self._say(f"{rig.name}: {_sentence(rounds)}")

    async def _overwritten(
        self, rig: Rig, filling: Filling, wanted: Precondition, rounds: list[VolumeRound]
    ) -> list[VolumeRound]:
        if not rounds:
            rounds = [await self._filled(rig, filling, wanted)]
        self._unfilled.discard(rig.name)
        await rig.do([rig.limit()])
        machine = rig.saturated_on(RecordedMachine(rig.machine, rig.tell), rig.runner.captured)
        while not is_over(rounds, wanted):
            number = rounds[-1].round + 1
            self._step(rig, "round", f"round {number} of at most {wanted.most_rounds}")
            command = precondition.overwrite(filling.folder, rounds[0].bytes, filling.direct, wanted)
            found = await _ran(machine, command, wanted.round_s + _END_S)
            said = {"p999_ms": found.p999_ms, **judged(rounds, found.iops)}
            one = self._line(rig, wanted, rounds[0].filling, number, found, iops=found.iops, **said)
            keep(self._folder.rounds, one)
            rounds = [*rounds, one]
        return rounds

    async def _filled(self, rig: Rig, filling: Filling, wanted: Precondition) -> VolumeRound:
        """Write the filling, with the disk as fast as it can be, as the site is copied."""
        await rig.do(before(rig, filling))
        on = self._on[rig.name]
        sharing = Counter(self._on[name] for name in self._unfilled | {rig.name})[on]
        used, free, *_ = [*await _numbers(rig.machine, filling.room()), 0, 0]
        size_bytes = filling_bytes(wanted.fill_percent, used, free, sharing)
        check_size(
            size_bytes, min(await _numbers(rig.machine, filling.free()), default=0), wanted.fill_percent
        )
        self._say(f"{rig.name}: filling its volume to {wanted.fill_percent} %: {size_bytes >> 20} MiB ...")
        self._step(rig, "filling", f"filling the volume to {wanted.fill_percent} %")
        machine = RecordedMachine(rig.machine, rig.tell)
        found = await _ran(
            machine, precondition.fill(filling.folder, size_bytes, filling.direct), wanted.longest_s
        )
        one = self._line(rig, wanted, uuid.uuid4().hex, 0, found)
        keep(self._folder.rounds, one)
        await rig.do([StepGroup("note the filling", (filling.mark(one.filling),))])
        return one

    def _line(
        self,
        rig: Rig,
        wanted: Precondition,
        filling: str,
        number: int,
        found: precondition.Written,
        **more: Any,
    ) -> VolumeRound:
        return VolumeRound(
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

    def _step(self, rig: Rig, what: str, says: str) -> None:
        """Note for those who look on; the rounds themselves are down on the disk."""
        self._folder.journal.note(f"precondition {what}", sync=False, backend=rig.name, says=says)


def volume_of(backend: Backend) -> tuple[str, str]:
    """Return what tells the volume of a backend from others: a pool may hold several backends. Pure."""
    disk: Any = backend.disk
    dataset, path = getattr(disk, "dataset", None), getattr(disk, "path", None)
    return backend.host, dataset.partition("/")[0] if dataset else path or f"the disk of {backend.name}"


def before(rig: Rig, filling: Filling) -> list[StepGroup]:
    """Return the steps before the filling: the disk is as fast as it can be."""
    lift = rig.place.unlimit if rig.place else ()
    return [
        StepGroup("lift the disk's limits", tuple(lift)),
        StepGroup("make room for the filling", (filling.remove(), filling.make())),
    ]


def planned_words(filling: Filling, wanted: Precondition) -> tuple[list[str], list[str]]:
    """Return the commands of the filling and of a round, of a size that only the run will know. Pure."""
    size: Any = "${filling_bytes}"
    return (
        precondition.fill(filling.folder, size, filling.direct),
        precondition.overwrite(filling.folder, size, filling.direct, wanted),
    )


async def _ran(machine: Machine, command: list[str], longest_s: float) -> precondition.Written:
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
    return replace(precondition.written(done.out), seconds=round(time.monotonic() - begun_s, 3))


async def _numbers(machine: Machine, command: list[str]) -> list[int]:
    return numbers((await machine.run(command)).out)


def _sentence(rounds: list[VolumeRound]) -> str:
    last, count = rounds[-1], counted(rounds[-1].round, "round")
    if last.steady:
        return f"its volume is steady after {count}."
    return f"its volume is not steady after {count}; the runs begin all the same, and the report says so."
