"""One run: the clone is reset, observed, put under load and under the saturator, and all of it kept."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.errors import LabError, last_words
from lab.experiment.command_line import run_command
from lab.experiment.folder import OUTPUT_FILE, ExperimentFolder
from lab.experiment.order import PlannedRun
from lab.experiment.phases import Events, RunClock, saturate, until_begun
from lab.experiment.rig import Rig
from lab.experiment.scenario_kinds import ScenarioTraits
from lab.experiment.transcript import RecordedMachine
from lab.experiment.variants import Variant
from lab.facts import read_facts
from lab.machine import Machine, Process
from lab.names.labels import Label
from lab.observers import HostCsv, place, sampler_of
from lab.saturators import saturator
from lab.steps.step import Command, fill
from lab.tuning import Plan
from plimsoll.common.atomic import replace_json, replace_text
from plimsoll.rundir.jsonfile import read_json
from plimsoll.rundir.names import EVENTS_FILE, FACTS_FILE, HOST_FILE

_BEGIN_S = 600.0  # until a scenario has begun: the first that needs k6 builds it
_STOP_S = 60.0  # for a scenario to end in good order once asked to

Say = Callable[[str], None]


class RigRun:
    """A run of a variant on its rig. `kind`: what is to be known of its scenario."""

    def __init__(
        self,
        variant: Variant,
        run: PlannedRun,
        of: int,
        rig: Rig,
        here: Machine,
        folder: ExperimentFolder,
        kind: ScenarioTraits,
        say: Say,
    ) -> None:
        self._variant, self._lab = variant, variant.lab
        self._run, self._of, self._rig, self._here = run, of, rig, here
        self._folder, self._kind, self._say = folder, kind, say
        self._recorded = RecordedMachine(rig.machine, rig.tell)

    async def done(self) -> Path:
        """Do it, and return the finished run directory. Raises LabError where it failed.

        However it ends, nothing of it runs on, and the host's settings are as they were.
        """
        rig = self._rig
        async with rig.tuned(self._folder.tuning(rig.name)) as tuning:
            try:
                await rig.do([rig.reset(restore=rig.changed)])
                rig.changed = self._kind.changes
                await asyncio.sleep(self._lab.limits.settle_s)
                attempt = self._folder.attempt(self._run.name)
                self._note("attempt", attempt=attempt.name)
                directory, facts = await self._measured(attempt)
                self._complete(directory, facts, tuning)
                return self._folder.finish(attempt, directory, self._run.name)
            finally:
                await rig.do([rig.rest()])

    async def _measured(self, attempt: Path) -> tuple[Path, dict[str, Any]]:
        rig = self._rig
        devices, datasets = self._disks()
        facts = await read_facts(rig.machine, devices, datasets)
        observe = self._lab.observe
        if devices and not observe.disks:
            observe = observe.model_copy(update={"disks": devices})
        sampler = await sampler_of(rig.machine, observe, self._say)
        events, stop = Events(attempt / "lab-events.jsonl"), asyncio.Event()
        observed_from_ns = time.monotonic_ns()
        with HostCsv(attempt / HOST_FILE, sampler.columns) as file:
            observing = asyncio.create_task(sampler.run(file, observed_from_ns, stop))
            try:
                directory, clock = await self._loaded(attempt, events)
            finally:
                stop.set()
                await observing
        place(attempt / HOST_FILE, directory, clock.start_ns - observed_from_ns)
        _merge_events(directory / EVENTS_FILE, events.path)
        return directory, facts.model_dump(mode="json")

    async def _loaded(self, attempt: Path, events: Events) -> tuple[Path, RunClock]:
        """Run the scenario, and the saturator in its middle."""
        target = self._rig.clone.target(self._rig.runner.captured)
        command = run_command(self._lab, self._run, self._kind, target, str(attempt), self._rig.is_ours)
        self._rig.tell(Command("run the scenario", tuple(command)))
        process = await self._here.start(command)
        program = _Program(process, attempt / OUTPUT_FILE)
        try:
            directory, started_at = await self._guarded(program, until_begun(attempt, program.over, _BEGIN_S))
            clock = events.clock = RunClock(started_at)
            self._note("load begun")
            working = asyncio.create_task(self._saturated(clock, events))
            try:
                await self._to_the_end(program, working)
            finally:
                working.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await working
        except BaseException:
            await process.stop(_STOP_S)
            raise
        finally:
            await program.ended()
        self._note("load ended")
        status = read_json(directory / FACTS_FILE).get("status")
        if status != "complete":
            raise LabError(
                f"{self._run.name}: the run is {status}: {program.words or 'see ' + str(program.path)}"
            )
        return directory, clock

    def _note(self, what: str, **further: str) -> None:
        """Note for those who look on; not down to the disk, which may be the one under test."""
        self._folder.journal.note(what, sync=False, run=self._run.name, **further)

    async def _guarded(self, program: "_Program", waiting: Any) -> Any:
        try:
            return await waiting
        except LabError as error:
            raise LabError(f"{self._run.name}: {error}: {program.words or 'it printed nothing'}") from None

    async def _saturated(self, clock: RunClock, events: Events) -> None:
        settings = self._rig.saturator(self._lab)
        if settings is None:
            return
        label = Label(self._lab.name).saturator(self._rig.name)
        machine = self._rig.saturated_on(self._recorded, self._rig.runner.captured)
        busy = saturator(machine, settings, label, events.note)
        phases = self._lab.phases_of(self._lab.scenario(self._run.scenario))
        await saturate(busy, clock, self._lab.warmup_s, phases)

    async def _to_the_end(self, program: "_Program", working: "asyncio.Task[None]") -> None:
        """Wait until the program ends; a saturator that gives up, or the limit of time, ends the run."""
        limit_s = self._lab.limits.run_s + (self._lab.duration_s(self._lab.scenario(self._run.scenario)) or 0)
        ending = asyncio.create_task(program.ended())
        try:
            async with asyncio.timeout(limit_s):
                await asyncio.wait([ending, working], return_when=asyncio.FIRST_COMPLETED)
                if working.done():
                    working.result()
                await ending
        except TimeoutError:
            raise LabError(f"{self._run.name}: still running after {limit_s:g} s (limits.run_s)") from None
        finally:
            ending.cancel()

    def _disks(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return devices and datasets for facts and observers."""
        where, dataset = self._rig.place, self._rig.clone.data().dataset
        if where is None:
            return self._lab.observe.disks, ()
        captured = self._rig.runner.captured
        devices = tuple(fill(device, captured).removeprefix("/dev/") for device in where.devices)
        return devices, (dataset,) if dataset else ()

    @property
    def _design(self) -> dict[str, Any]:
        """Return what run.json says of an experiment with factors: all levels, and the goal."""
        goal = {} if self._lab.goal_ms is None else {"goal_ms": self._lab.goal_ms}
        return goal | ({"levels": self._variant.of} if self._variant.of else {})

    def _complete(self, directory: Path, facts: dict[str, Any], tuning: Plan) -> None:
        """Write to run.json what the lab knows of the run."""
        path = directory / FACTS_FILE
        where, captured = self._rig.place, self._rig.runner.captured
        accelerator = {key: captured[key] for key in ("accelerator",) if key in captured}
        phases = self._lab.phases_of(self._lab.scenario(self._run.scenario))
        replace_json(
            path,
            read_json(path)
            | {
                "scenario": self._run.scenario,
                "experiment": {"name": self._lab.name, "run": self._run.number, "of": self._of}
                | self._design,
                **({"factors": self._variant.levels} if self._variant.levels else {}),
                "storage": {
                    "emulated": where.emulated if where else None,
                    "clone": self._rig.clone.describe() | accelerator,
                    "facts": facts,
                    "tuning": [asdict(value) for value in tuning.asked],
                },
                "phases": {"warmup_s": self._lab.warmup_s, **phases.model_dump()},
            },
        )


class _Program:
    """A running scenario: its output goes to a file, and its last words are kept."""

    def __init__(self, process: Process, path: Path) -> None:
        self._process, self.path, self.words = process, path, ""
        self._reading = asyncio.create_task(self._read())

    def over(self) -> bool:
        """Return whether it has ended."""
        return self._reading.done()

    async def ended(self) -> int:
        """Wait until it has."""
        await asyncio.shield(self._reading)
        return await self._process.wait()

    async def _read(self) -> None:
        with self.path.open("w", encoding="utf-8", errors="replace") as file:
            async for line in self._process.lines():
                file.write(line.text + "\n")
                file.flush()
                if line.stream == "err" and line.text.strip():
                    self.words = last_words(line.text)


def _merge_events(path: Path, further: Path) -> None:
    """Bring the lab's events of a run among its own, in order of time, by rename."""
    lines = []
    for source in (path, further):
        with contextlib.suppress(FileNotFoundError):
            lines += source.read_text(encoding="utf-8").splitlines()
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):
            found.append((json.loads(line).get("t_ns", 0), line))
    replace_text(path, "".join(line + "\n" for _, line in sorted(found, key=lambda one: one[0])))
