"""The experiment: all runs in order, each finished once, whatever happens in between."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from plimsoll.common.errors import PlimsollError
from plimsoll.common.units import counted
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.factors.variants import variants
from plimsoll.lab.experiment.files import append_line
from plimsoll.lab.experiment.folder import ExperimentFolder
from plimsoll.lab.experiment.journal import aside_name
from plimsoll.lab.experiment.lock import Lock, held
from plimsoll.lab.experiment.notices import Notices
from plimsoll.lab.experiment.order import PlannedRun, runs_in_order
from plimsoll.lab.experiment.preconditioning import Preconditioning
from plimsoll.lab.experiment.rig import Rig
from plimsoll.lab.experiment.rigs import Machines, by_variant, rigs_of
from plimsoll.lab.experiment.run import RigRun
from plimsoll.lab.experiment.scenario_kinds import TraitsByScenario
from plimsoll.lab.experiment.settings import Lab
from plimsoll.lab.experiment.volumes import Volumes
from plimsoll.lab.steps.step import Command, Step, shown
from plimsoll.lab.tuning import put_back, put_back_all

Say = Callable[[str], None]


@dataclass
class ExperimentOutcome:
    """The outcome of an experiment: the runs finished and not done, and what was set aside with the reason.

    That is a backend, or a scenario on one: `aside_name`. `not_measured`: volumes whose cells of fileio are
    not all finished, with the reason.
    """

    finished: list[str] = field(default_factory=list)
    not_done: list[str] = field(default_factory=list)
    set_aside: dict[str, str] = field(default_factory=dict)
    not_measured: dict[str, str] = field(default_factory=dict)

    @property
    def well(self) -> bool:
        """Return whether every run is finished, and every volume measured."""
        return not self.not_done and not self.not_measured


def planned(lab: Lab) -> list[PlannedRun]:
    """Return all runs of `lab` in their order. Pure."""
    names = [variant.name for variant in variants(lab)]
    scenarios = [choice.called for choice in lab.scenarios]
    return runs_in_order(names, scenarios, lab.repeats, lab.order, lab.seed, mixed=bool(lab.factors))


class Experiment:
    """An experiment in its folder, new or begun. `kinds`: what is to be known of its scenarios."""

    def __init__(
        self, lab: Lab, folder: ExperimentFolder, kinds: TraitsByScenario, say: Say, notices: Notices
    ) -> None:
        self._lab, self._folder, self._kinds = lab, folder, kinds
        self._say, self._notices = say, notices
        self._said: set[str] = set()
        self._aside: set[str] = set()
        self._locks: dict[str, Lock] = {}
        self._runs = folder.planned() or planned(lab)
        self._variants = {variant.name: variant for variant in variants(lab)}
        self._volumes = Volumes(lab, folder, say, notices)
        self._preconditioning = Preconditioning(lab, folder, say)
        self._made_rigs: set[str] = set()

    async def carry_out(self) -> ExperimentOutcome:
        """Do what is not finished yet, and remove everything that was made. Raises LabError.

        Cancelled, it removes everything as well; the runs that are finished stay.
        """
        async with contextlib.AsyncExitStack() as stack:
            machines = Machines(self._lab)
            stack.push_async_callback(machines.close)
            for machine in machines.used(self._lab):
                who = f"experiment {self._lab.name} in {self._folder.path}"
                self._locks[machine.name] = await stack.enter_async_context(held(machine, who))
                await put_back_all(machine, self._say)
            stack.enter_context(self._folder.journal.held())
            self._folder.journal.note("begun")
            rigs = await rigs_of(self._lab, machines, self._tell)
            for rig in rigs:
                rig.on_group = partial(self._stepped, rig.name)
            try:
                await self._with(rigs, machines)
            finally:
                await self._removed(rigs)
        outcome = self._outcome()
        self._folder.journal.note("ended", finished=len(outcome.finished), not_done=len(outcome.not_done))
        return outcome

    async def _with(self, rigs: list[Rig], machines: Machines) -> None:
        rig_of = by_variant(rigs)
        self._aside = set(self._folder.journal.set_aside)
        standing = {rig_of[name].name: rig_of[name] for name in rig_of if name not in self._aside}
        for rig in standing.values():
            await self._tidied(rig)
        for rig in standing.values():
            if self._volumes.is_due(rig.name) or self._is_to_be_filled(rig, rig_of):
                await self._made_early(rig)
        for run in (run for run in self._runs if not self._folder.finished(run.name)):
            while not self._is_aside(run) and not self._folder.finished(run.name):
                rig = rig_of[run.backend]
                rig.wear(run.backend)
                try:
                    if rig.name not in self._made_rigs:
                        await self._made(rig)
                    await self._once(run, rig, machines)
                except PlimsollError as error:
                    pause_s = self._failed(run, rig.name in self._made_rigs, str(error))
                    self._made_rigs.discard(rig.name)
                    # What stays is found again, and named at the end.
                    with contextlib.suppress(PlimsollError):
                        await self._cleared(rig)
                    await asyncio.sleep(pause_s)

    def _is_to_be_filled(self, rig: Rig, rig_of: Mapping[str, Rig]) -> bool:
        """Return whether its volume is to be full and used, and it has a run that is not finished."""
        left = (run for run in self._runs if not self._folder.finished(run.name))
        return self._preconditioning.takes(rig.name) and any(rig_of[run.backend] is rig for run in left)

    async def _cleared(self, rig: Rig) -> None:
        """Remove what there is of a backend; what its volume is filled with may be of use yet."""
        await rig.clear(self._say, filling=not self._preconditioning.takes(rig.name))

    async def _tidied(self, rig: Rig) -> None:
        """Remove what a crash left of this backend."""
        try:
            await self._cleared(rig)
        except PlimsollError as error:
            raise LabError(
                f"{rig.name}: cannot remove what an earlier experiment left behind: {error}"
            ) from None

    async def _made_early(self, rig: Rig) -> None:
        """Make a backend whose volume is to be filled or measured early; its first run tries again."""
        try:
            await self._made(rig)
        except PlimsollError as error:
            self._say(f"{rig.name}: cannot be made, so its volume is not filled or measured yet: {error}")
            with contextlib.suppress(PlimsollError):
                await self._cleared(rig)

    async def _made(self, rig: Rig) -> None:
        """Make a backend, and fill and measure its volume unless that is done."""
        self._say(f"{rig.name}: setting up ...")
        self._folder.journal.note("making", backend=rig.name)
        await self._cleared(rig)
        await rig.made(self._folder.tuning(rig.name))
        self._folder.journal.note("made", backend=rig.name)
        await self._locks[rig.machine.name].hold()
        await self._preconditioning.bring_about(rig)
        await self._volumes.measure(rig)
        self._made_rigs.add(rig.name)

    async def _once(self, run: PlannedRun, rig: Rig, machines: Machines) -> None:
        self._say(
            f"run {run.number} of {len(self._runs)}: {run.scenario} on {run.backend}, repeat {run.repeat} ..."
        )
        self._folder.journal.note("run begun", run=run.name, backend=run.backend)
        await self._locks[rig.machine.name].hold()  # it was lost if the connection broke
        variant, total = self._variants[run.backend], len(self._runs)
        once = RigRun(variant, run, total, rig, machines.here, self._folder, self._kinds, self._once_only)
        directory = await once.done()
        self._folder.journal.note("run finished", run=run.name, backend=run.backend, scenario=run.scenario)
        self._say(f"run {run.number} of {len(self._runs)}: finished: {directory}")

    def _once_only(self, text: str) -> None:
        """Report once what is the same in every run, such as what a host lacks."""
        if text not in self._said:
            self._said.add(text)
            self._say(text)

    def _is_aside(self, run: PlannedRun) -> bool:
        return not self._aside.isdisjoint((run.backend, aside_name(run.backend, run.scenario)))

    def _failed(self, run: PlannedRun, made: bool, why: str) -> float:
        """Note it, and return the seconds to wait; what failed too often is set aside.

        That is the scenario on this backend, or the backend if the scenario did not come to begin. `made`:
        whether the backend stood.
        """
        journal = self._folder.journal
        self._say(failure := self._failure(run, why))
        self._notices.tell("failure", "run failed", failure.partition(": ")[0], [failure])
        scenario = run.scenario if made and journal.attempt(run.name) else None
        journal.note("run failed", run=run.name, backend=run.backend, scenario=scenario, why=why)
        failures, name = journal.failures(run.backend, scenario), aside_name(run.backend, scenario)
        if failures < self._lab.limits.failures:
            pause_s = self._lab.limits.pause_s(failures)
            self._say(f"{name}: failed {counted(failures, 'time')} in a row; trying again in {pause_s:g} s.")
            return pause_s
        self._say(
            f"{name}: set aside after {counted(failures, 'failure')} in a row; the rest goes on. To try it "
            f"again: plimsoll run --retry-set-aside {self._folder.path}"
        )
        self._notices.tell("set-aside", "set aside", f"{name} was set aside", [failure])
        journal.note("set aside", backend=run.backend, scenario=scenario, why=why)
        self._aside.add(name)
        return 0.0

    def _failure(self, run: PlannedRun, why: str) -> str:
        """Return what failed, why, and where its output is, in one line."""
        reason = why.removeprefix(f"{run.name}: ").partition("\n")[0].rstrip(".")
        return (
            f"run {run.number} of {len(self._runs)} failed: {run.scenario} on {run.backend}, repeat "
            f"{run.repeat}, try {max(self._folder.journal.tries(run.name), 1)}: {reason}. "
            f"Output: {self._folder.output(run.name)}"
        )

    def _stepped(self, backend: str, says: str) -> None:
        self._folder.journal.note("step", sync=False, backend=backend, says=says)

    async def _removed(self, rigs: list[Rig]) -> None:
        """Remove everything, also when the program is interrupted. Raises LabError with all that stays."""
        self._folder.journal.note("removing", sync=False)
        problems = []
        for rig in rigs:
            try:
                if rig.stands:
                    # Half of it may be gone: whatever remains is found below.
                    with contextlib.suppress(LabError):
                        await rig.do(rig.remove(self._preconditioning.takes(rig.name)))
                await rig.clear(self._say)
                await put_back(rig.machine, self._folder.tuning(rig.name))
            except PlimsollError as error:
                problems.append(f"{rig.name}: {error}")
        if problems:
            raise LabError("\n".join([*problems, "remove the cause, then run plimsoll lab clean"]))

    def _outcome(self) -> ExperimentOutcome:
        names = [run.name for run in self._runs]
        finished = [name for name in names if self._folder.finished(name)]
        return ExperimentOutcome(
            finished,
            [name for name in names if name not in finished],
            self._folder.journal.set_aside,
            self._volumes.not_measured(),
        )

    def _tell(self, backend: str, step: Step) -> None:
        line: dict[str, Any] = {"backend": backend, "command": shown(step)}
        if isinstance(step, Command):
            line |= {"words": list(step.words)}
        append_line(self._folder.commands, line, sync=False)


def run_experiment(experiment: Experiment) -> ExperimentOutcome:
    """Carry `experiment` out; Ctrl-C, TERM and a closed terminal end it well, with KeyboardInterrupt."""

    async def main() -> ExperimentOutcome:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 we are in one
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        try:
            return await experiment.carry_out()
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    return asyncio.run(main())
