"""An experiment, from its start or where it was left to its report."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from plimsoll.analysis.report.making import make_report
from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.files import append_line
from plimsoll.common.hostile import printable
from plimsoll.common.progress import LiveFigures, is_shown
from plimsoll.common.units import counted
from plimsoll.lab.clones import find_driver
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.design import (
    extend_runs,
    find_key_changes,
    late_backends,
    left_out,
    plan_runs,
    variants,
)
from plimsoll.lab.experiment.folder import (
    ExperimentFolder,
    NoExperimentError,
    find_experiment,
    set_aside_label,
)
from plimsoll.lab.experiment.labfile import REPLAY, Lab
from plimsoll.lab.experiment.machines import Lock, Machines, lock_machine
from plimsoll.lab.experiment.notices import LogLine, Notices, RunResult, open_notices
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.lab.experiment.problems import read_checked, read_lab
from plimsoll.lab.experiment.rig import Rig, build_rigs, rigs_by_variant
from plimsoll.lab.experiment.run import Run
from plimsoll.lab.experiment.scenarios import TraitsByScenario, prepare_members, read_traits
from plimsoll.lab.experiment.slices import describe_slices
from plimsoll.lab.experiment.status.status import add_time, show_beside
from plimsoll.lab.experiment.status.text import describe_phase
from plimsoll.lab.experiment.status.watch import StatusReader
from plimsoll.lab.experiment.volumes import VolumeFilling, VolumeMeasurement
from plimsoll.lab.steps.step import Command, Step, as_shell
from plimsoll.lab.tuning import put_back, put_back_all
from plimsoll.rundir.names import REPORT_FILE, RUNS_FOLDER
from plimsoll.scenarios import find_scenario
from plimsoll.scenarios.k6.build import k6_program


def carry_out(
    folder: ExperimentFolder,
    lab: Lab,
    file: Path | None,
    retry_set_aside: bool,
    live: LiveFigures,
    progress: bool | None,
    channels: Mapping[str, Any],
) -> RunResult:
    """Carry the experiment out and write its report. Raises PlimsollError where it cannot begin or go on."""
    kinds = read_traits(lab, str(file or folder.path))
    # The password of the lab's own site is not secret.
    if all(find_driver(backend.clone).has_own_site for backend in lab.backends):
        os.environ.setdefault("PLIMSOLL_USER", "admin")
        os.environ.setdefault("PLIMSOLL_PASSWORD", "plimsoll-clone")
    names = {member.scenario for choice in lab.scenarios for member in choice.members}
    if any(find_scenario(name).runs_on_k6 for name in names - {REPLAY}):
        k6_program(_say)  # built now if needed, so that no run begins with a build
    if retry_set_aside:
        folder.journal.try_again()
    prepare_members(lab, _say)
    for sentence in left_out(lab):
        _say(f"{sentence}.")
    for sentence in describe_slices(lab):
        _say(sentence)
    _say(f"The experiment is in {folder.path}.")
    try:
        notices = open_notices(lab.notify, lab.name, folder.path, channels, _say)
        fancy = is_shown(progress) and sys.stderr.isatty()
        beside = show_beside(lambda: StatusReader(folder), fancy, describe_phase)
        with live.show(folder.path, _say), notices.send_on_error(), beside:
            result = run_experiment(Experiment(lab, folder, kinds, _say, notices))
    except KeyboardInterrupt:
        why = f"Interrupted; nothing is left behind. To continue: plimsoll run --resume {folder.path}"
        _say(why)
        return RunResult(directory=str(folder.path), exit_reason="interrupted", error=why)
    except PlimsollError:
        if not folder.journal.path.exists():  # it did not even begin
            shutil.rmtree(folder.path, ignore_errors=True)
        raise
    result.report = _write_report(folder)
    notices.send_end(result)
    notices.close()
    return result


def find_begun(file: Path | None, extend: bool) -> tuple[ExperimentFolder, Lab]:
    """Return the experiment to continue, with `extend` as the file says by now. Raises SettingsError."""
    if extend and (file is None or file.is_dir()):
        raise SettingsError("--extend: takes the changed LAB.yml: plimsoll run --extend LAB.yml")
    try:
        folder = find_experiment(file)
    except NoExperimentError as error:
        raise SettingsError(f"--resume: {error}") from None
    if file is None or file.is_dir():
        return folder, folder.settings()
    if extend:
        _extend(folder, read_checked(file)[0], file)
    else:
        before = folder.settings()
        for change in find_key_changes(before, _with_order_of(before, read_lab(file))):
            _say(f"{file}: {change.sentence}: ignored; {change.refusal or '--extend takes it over'}.")
    return folder, folder.settings()


def _extend(folder: ExperimentFolder, lab: Lab, file: Path) -> None:
    """Take over what `lab` adds. Raises SettingsError with every change that cannot be taken over."""
    before = folder.settings()
    lab = _with_order_of(before, lab)
    found = find_key_changes(before, lab)
    if problems := [f"{file}: {change.sentence}: {change.refusal}" for change in found if change.refusal]:
        raise SettingsError("\n".join(problems))
    if folder.journal.is_locked:
        raise SettingsError(f"--extend: {folder.path} is running: stop it first, or wait for it")
    runs = folder.extended_runs() or plan_runs(before)
    further = extend_runs(runs, lab)[len(runs) :]
    folder.extend(lab, [*runs, *further])
    for change in found:
        _say(f"{file}: {change.sentence}: taken over.")
    _say(f"{counted(len(further), 'run')} more, {len(runs) + len(further)} in all.")
    if late := late_backends(runs, further):
        _say(
            f"All runs on {', '.join(late)} come after those on the others, so what drifts in between looks "
            "like a difference: raise repeats too, and they alternate."
        )


def _with_order_of(before: Lab, lab: Lab) -> Lab:
    """Return `lab` with the order of an experiment that was begun, if it names none."""
    return lab if "order" in lab.model_fields_set else lab.model_copy(update={"order": before.order})


def _write_report(folder: ExperimentFolder) -> str | None:
    """Write the report, and return its path; None where there is nothing to report, or it failed."""
    subjects = folder.runs or ([folder.fileio] if folder.fileio.exists() else [])
    if not subjects:
        return None
    path = folder.path / REPORT_FILE
    try:
        made = make_report(subjects, path, lambda _done, _total: None)
    except PlimsollError as error:
        _say(f"Cannot write the report: {error}")
        return None
    for sentence in made.sentences():
        _say(sentence)
    return str(path)


def summary(result: RunResult) -> list[str]:
    """Return what the command prints at the end, in lines. Pure."""
    total = len(result.finished) + len(result.not_done)
    runs = Path(result.directory or "") / RUNS_FOLDER
    lines = [f"{len(result.finished)} of {total} runs are finished, in {runs}."]
    lines += _unfinished(result)
    return [*lines, f"Report: {result.report}"] if result.report else lines


def _unfinished(of: RunResult) -> list[str]:
    lines = [printable(f"{name} was set aside: {why}", 2000) for name, why in of.set_aside.items()]
    if lines:
        lines.append("To try again what was set aside: plimsoll run --retry-set-aside")
    lines += [
        printable(f"fileio on {name} is not finished: {why}", 2000) for name, why in of.not_measured.items()
    ]
    if of.not_measured:
        lines.append("To measure the rest of the volumes: plimsoll run --resume")
    return [*lines, f"Not done: {', '.join(of.not_done)}"] if of.not_done else lines


def _say(text: str) -> None:
    print(printable(text, 2000) if sys.stderr.isatty() else add_time(text), file=sys.stderr, flush=True)


class Experiment:
    """An experiment in its folder, new or begun."""

    def __init__(
        self,
        lab: Lab,
        folder: ExperimentFolder,
        kinds: TraitsByScenario,
        say: LogLine,
        notices: Notices,
        is_enough: Callable[[PlannedRun], bool] = lambda run: False,
    ) -> None:
        """`is_enough` is asked after each run that is finished: whether to end the experiment with it."""
        self._lab, self._folder, self._kinds = lab, folder, kinds
        self._say, self._notices, self._is_enough = say, notices, is_enough
        self._said: set[str] = set()
        self._aside: set[str] = set()
        self._locks: dict[str, Lock] = {}
        self._runs = folder.extended_runs() or plan_runs(lab)
        self._variants = {variant.name: variant for variant in variants(lab)}
        self._volumes = VolumeMeasurement(lab, folder, say, notices)
        self._preconditioning = VolumeFilling(lab, folder, say)
        self._made_rigs: set[str] = set()

    async def carry_out(self) -> RunResult:
        """Do what is not finished yet, and remove everything that was made. Raises LabError.

        Cancelled, it removes everything as well; the runs that are finished stay.
        """
        async with contextlib.AsyncExitStack() as stack:
            machines = Machines(self._lab)
            stack.push_async_callback(machines.close)
            for machine in machines.used(self._lab):
                who = f"experiment {self._lab.name} in {self._folder.path}"
                self._locks[machine.name] = await stack.enter_async_context(lock_machine(machine, who))
                await put_back_all(machine, self._say)
            stack.enter_context(self._folder.journal.lock())
            self._folder.journal.note("begun")
            rigs = await build_rigs(self._lab, machines, self._note_step)
            for rig in rigs:
                rig.on_group = partial(self._note_group, rig.name)
            try:
                await self._do_runs(rigs, machines)
            finally:
                await self._remove_backends(rigs)
        result = self._result()
        self._folder.journal.note("ended", finished=len(result.finished), not_done=len(result.not_done))
        return result

    async def _do_runs(self, rigs: list[Rig], machines: Machines) -> None:
        rig_of = rigs_by_variant(rigs)
        self._aside = set(self._folder.journal.set_aside)
        standing = {rig_of[name].name: rig_of[name] for name in rig_of if name not in self._aside}
        for rig in standing.values():
            try:
                await self._clear_backend(rig)
            except PlimsollError as error:
                why = f"cannot remove what an earlier experiment left behind: {error}"
                raise LabError(f"{rig.name}: {why}") from None
        for rig in standing.values():
            if self._volumes.needs_measuring(rig.name) or self._is_to_be_filled(rig, rig_of):
                await self._create_early(rig)
        for run in (run for run in self._runs if not self._folder.is_finished(run.name)):
            while not self._is_aside(run) and not self._folder.is_finished(run.name):
                rig = rig_of[run.backend]
                rig.use_variant(run.backend)
                try:
                    if rig.name not in self._made_rigs:
                        await self._create_backend(rig)
                    await self._do_run(run, rig, machines)
                    if self._is_enough(run):
                        return
                except PlimsollError as error:
                    pause_s = self._note_failure(run, rig.name in self._made_rigs, str(error))
                    self._made_rigs.discard(rig.name)
                    # What stays is found again, and named at the end.
                    with contextlib.suppress(PlimsollError):
                        await self._clear_backend(rig)
                    await asyncio.sleep(pause_s)

    def _is_to_be_filled(self, rig: Rig, rig_of: Mapping[str, Rig]) -> bool:
        """Return whether its volume is to be filled, and it has an unfinished run."""
        left = (run for run in self._runs if not self._folder.is_finished(run.name))
        return self._preconditioning.needs_filling(rig.name) and any(
            rig_of[run.backend] is rig for run in left
        )

    async def _clear_backend(self, rig: Rig) -> None:
        """Remove what there is of a backend, except a filling of its volume that may still be of use."""
        await rig.clear(self._say, filling=not self._preconditioning.needs_filling(rig.name))

    async def _create_early(self, rig: Rig) -> None:
        """Create a backend whose volume is prepared first; if that fails, its first run tries again."""
        try:
            await self._create_backend(rig)
        except PlimsollError as error:
            self._say(f"{rig.name}: cannot be set up, so its volume is not filled or measured yet: {error}")
            with contextlib.suppress(PlimsollError):
                await self._clear_backend(rig)

    async def _create_backend(self, rig: Rig) -> None:
        """Create a backend, and fill and measure its volume unless that is done."""
        self._say(f"{rig.name}: setting up ...")
        self._folder.journal.note("making", backend=rig.name)
        await self._clear_backend(rig)
        await rig.create(self._folder.tuning(rig.name))
        self._folder.journal.note("made", backend=rig.name)
        await self._locks[rig.machine.name].take()
        await self._preconditioning.fill_if_due(rig)
        await self._volumes.measure_if_due(rig)
        self._made_rigs.add(rig.name)

    async def _do_run(self, run: PlannedRun, rig: Rig, machines: Machines) -> None:
        self._say(
            f"run {run.number} of {len(self._runs)}: {run.scenario} on {run.backend}, repeat {run.repeat} ..."
        )
        self._folder.journal.note("run begun", run=run.name, backend=run.backend)
        await self._locks[rig.machine.name].take()  # it was lost if the connection broke
        variant, total = self._variants[run.backend], len(self._runs)
        once = Run(variant, run, total, rig, machines.here, self._folder, self._kinds, self._say_once)
        directory = await once.execute()
        self._folder.journal.note("run finished", run=run.name, backend=run.backend, scenario=run.scenario)
        self._say(f"run {run.number} of {len(self._runs)}: finished: {directory}")

    def _say_once(self, text: str) -> None:
        """Report once what is the same in every run, such as what a host lacks."""
        if text not in self._said:
            self._said.add(text)
            self._say(text)

    def _is_aside(self, run: PlannedRun) -> bool:
        return not self._aside.isdisjoint((run.backend, set_aside_label(run.backend, run.scenario)))

    def _note_failure(self, run: PlannedRun, made: bool, why: str) -> float:
        """Note it, and return the seconds to wait; what failed too often is set aside.

        That is the scenario on this backend, or the backend if the scenario did not come to begin. `made`:
        whether the backend stood.
        """
        journal = self._folder.journal
        self._say(failure := self._failure(run, why))
        self._notices.send("failure", "run failed", failure.partition(": ")[0], [failure])
        scenario = run.scenario if made and journal.attempt(run.name) else None
        journal.note("run failed", run=run.name, backend=run.backend, scenario=scenario, why=why)
        failures, name = journal.failures(run.backend, scenario), set_aside_label(run.backend, scenario)
        if failures < self._lab.limits.failures:
            pause_s = self._lab.limits.pause_s(failures)
            self._say(f"{name}: failed {counted(failures, 'time')} in a row; trying again in {pause_s:g} s.")
            return pause_s
        self._say(
            f"{name}: set aside after {counted(failures, 'failure')} in a row; the rest goes on. To try it "
            f"again: plimsoll run --retry-set-aside {self._folder.path}"
        )
        self._notices.send("set-aside", "set aside", f"{name} was set aside", [failure])
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

    def _note_group(self, backend: str, says: str) -> None:
        self._folder.journal.note("step", sync=False, backend=backend, says=says)

    async def _remove_backends(self, rigs: list[Rig]) -> None:
        """Remove everything, also when the program is interrupted. Raises LabError with all that stays."""
        self._folder.journal.note("removing", sync=False)
        problems = []
        for rig in rigs:
            try:
                if rig.stands:
                    # Half of it may be gone: whatever remains is found below.
                    with contextlib.suppress(LabError):
                        await rig.do(rig.remove(self._preconditioning.needs_filling(rig.name)))
                await rig.clear(self._say)
                await put_back(rig.machine, self._folder.tuning(rig.name))
            except PlimsollError as error:
                problems.append(f"{rig.name}: {error}")
        if problems:
            raise LabError("\n".join([*problems, "remove the cause, then run plimsoll clean"]))

    def _result(self) -> RunResult:
        names = [run.name for run in self._runs]
        finished = [name for name in names if self._folder.is_finished(name)]
        result = RunResult(
            directory=str(self._folder.path),
            finished=finished,
            not_done=[name for name in names if name not in finished],
            set_aside=self._folder.journal.set_aside,
            not_measured=self._volumes.not_measured(),
            exit_reason="finished",
        )
        if result.not_done or result.not_measured:
            result.exit_reason, result.error = "unfinished", "; ".join(_unfinished(result))
        return result

    def _note_step(self, backend: str, step: Step) -> None:
        line: dict[str, Any] = {"backend": backend, "command": as_shell(step)}
        if isinstance(step, Command):
            line |= {"words": list(step.words)}
        append_line(self._folder.commands, line, sync=False)


def run_experiment(experiment: Experiment) -> RunResult:
    """Carry `experiment` out; Ctrl-C, TERM and a closed terminal end it with KeyboardInterrupt."""

    async def main() -> RunResult:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 we are in one
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        try:
            return await experiment.carry_out()
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    return asyncio.run(main())
