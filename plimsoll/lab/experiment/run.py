"""One run: the clone is reset, observed, put under load and under the saturator, and all is written down."""

import asyncio
import contextlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from plimsoll.common.files import replace_json, replace_text, write_error
from plimsoll.lab.clones import find_driver
from plimsoll.lab.clones.clone import CloneDetails
from plimsoll.lab.disks.caches import with_caches
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.errors import LabError
from plimsoll.lab.experiment.design import Variant
from plimsoll.lab.experiment.folder import ExperimentFolder
from plimsoll.lab.experiment.labfile import Backend, Lab
from plimsoll.lab.experiment.load import Events, MemberRun, RunClock, RunLoad, build_loads, in_step, saturate
from plimsoll.lab.experiment.machines import RecordedMachine
from plimsoll.lab.experiment.notices import LogLine
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.lab.experiment.rig import Rig
from plimsoll.lab.experiment.scenarios import TraitsByScenario
from plimsoll.lab.facts import read_facts, read_facts_after
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import Label
from plimsoll.lab.observers.fsync import with_probe
from plimsoll.lab.observers.sampler import HostCsv, copy_host_samples, prepare_sampler
from plimsoll.lab.saturators import make_saturator
from plimsoll.lab.steps.step import Command
from plimsoll.lab.tuning import TuningPlan
from plimsoll.lab.tuning.plan import label_parts
from plimsoll.rundir.facts import Load
from plimsoll.rundir.names import EVENTS_FILE, FACTS_FILE, HOST_FILE, TOGETHER_FILE
from plimsoll.rundir.read import read_json
from plimsoll.rundir.volumes import VolumeRound, last_filling, read_rounds

_DEFAULT = "default"


class Run:
    """Run number `run` of `of`, of a variant on its rig."""

    def __init__(
        self,
        variant: Variant,
        run: PlannedRun,
        of: int,
        rig: Rig,
        here: Machine,
        folder: ExperimentFolder,
        kinds: TraitsByScenario,
        say: LogLine,
    ) -> None:
        self._variant, self._lab = variant, variant.lab
        self._choice = self._lab.scenario(run.scenario)
        self._phases = self._lab.phases_of(self._choice)
        self._run, self._of, self._rig, self._here = run, of, rig, here
        self._folder, self._kinds, self._say = folder, kinds, say
        self._recorded = RecordedMachine(rig.machine, rig.note_step)
        self._seen = CloneDetails()

    async def execute(self) -> Path:
        """Carry the run out, and return its finished directory. Raises LabError where it failed.

        However it ends, nothing of it runs on, and the host's settings are as they were.
        """
        rig = self._rig
        async with rig.tune(self._folder.tuning(rig.name)) as tuning:
            try:
                await rig.do([rig.reset(restore=rig.changed)])
                rig.changed = self._kinds[self._run.scenario].changes
                await asyncio.sleep(self._lab.limits.settle_s)
                attempt = self._folder.attempt(self._run.name)
                self._note("attempt", attempt=attempt.name)
                parts, facts = await self._measure(attempt)
                for part in parts:
                    self._write_facts(part, parts, facts, tuning)
                directory = (
                    collect_members(attempt, self._run, parts) if len(parts) > 1 else parts[0].directory
                )
                return self._folder.finish(attempt, directory, self._run.name)
            finally:
                await rig.do([rig.stop()])

    async def _measure(self, attempt: Path) -> tuple[list[MemberRun], dict[str, Any]]:
        rig = self._rig
        self._seen = await rig.read_details()
        devices, datasets = self._disks()
        folder = rig.place.folder if rig.place else None
        facts = await read_facts(rig.machine, devices, datasets, rig.clone.data().part_of, folder)
        observe = self._lab.observe
        if devices and not observe.disks:
            observe = observe.model_copy(update={"disks": devices})
        sampler = await prepare_sampler(rig.machine, with_probe(observe, rig.probed), self._say)
        events, stop = Events(attempt / "lab-events.jsonl"), asyncio.Event()
        target = rig.clone.target(rig.runner.captured)
        loads = build_loads(self._lab, self._run, self._kinds, target, str(attempt), rig.is_ours)
        several, name = len(loads) > 1, self._run.name
        parts = [MemberRun(load, f"{name}: {load.member.called}" if several else name) for load in loads]
        observed_from_ns = time.monotonic_ns()
        with HostCsv(attempt / HOST_FILE, sampler.columns) as file:
            observing = asyncio.create_task(sampler.run(file, observed_from_ns, stop))
            try:
                clock = await self._load(parts, events)
            finally:
                stop.set()
                await observing
        facts = await read_facts_after(rig.machine, facts)
        for part in parts:
            copy_host_samples(attempt / HOST_FILE, part.directory, part.clock.start_ns - observed_from_ns)
            later_ns = clock.start_ns - part.clock.start_ns
            _merge_events(part.directory / EVENTS_FILE, events.path, later_ns)
        return parts, facts.model_dump(mode="json")

    async def _load(self, parts: list[MemberRun], events: Events) -> RunClock:
        """Run the scenario, or all that are together, and the saturator in the middle."""
        load = RunLoad(parts, endless=bool(self._choice.together) and self._phases.during_s is None)
        try:
            for part in parts:
                self._rig.note_step(Command(part.load.says, tuple(part.load.command)))
            clock = events.clock = await load.begin(self._here)
            self._note("load begun")
            saturated = events.saturated if self._rig.saturator(self._lab) else None
            beside = [self._saturate(clock, events), load.let_begin(clock, saturated)]
            working = asyncio.create_task(in_step(beside))
            try:
                await self._wait_for_end(load, working)
            finally:
                working.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await working
        finally:
            await load.stop()
        if saturated is not None:
            events.require_saturated(self._lab.warmup_s + self._phases.before_s)
        self._note("load ended")
        return clock

    def _note(self, what: str, **further: str) -> None:
        """Note it for `status`, without a sync of the disk, which may be the one under test."""
        self._folder.journal.note(what, sync=False, run=self._run.name, **further)

    async def _saturate(self, clock: RunClock, events: Events) -> None:
        settings = self._rig.saturator(self._lab)
        if settings is None:
            return
        label = Label(self._lab.name).saturator(self._rig.name)
        machine = self._rig.under_limits(self._recorded, self._rig.runner.captured)
        busy = make_saturator(machine, settings, label, events.note)
        await saturate(busy, clock, self._lab.warmup_s, self._phases)

    async def _wait_for_end(self, load: RunLoad, working: "asyncio.Task[None]") -> None:
        """Wait until the load ends; a saturator that gives up, or the limit of time, ends the run."""
        limit_s = self._lab.limits.run_s + (self._lab.duration_s(self._choice) or 0)
        ending = asyncio.create_task(load.end())
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
        where = self._rig.place
        if where is None:
            return self._lab.observe.disks, self._seen.datasets
        data = self._rig.clone.data()
        dataset = data.dataset or (None if self._rig.is_ours else where.dataset)
        return self._rig.devices, (dataset, *data.part_of) if dataset else ()

    def _write_facts(
        self, part: MemberRun, parts: list[MemberRun], facts: dict[str, Any], tuning: TuningPlan
    ) -> None:
        """Write to run.json what the lab knows of the run."""
        path = part.directory / FACTS_FILE
        where, captured = self._rig.place, self._rig.runner.captured
        accelerator = {key: captured[key] for key in ("accelerator",) if key in captured}
        experiment: dict[str, Any] = {"name": self._lab.name, "run": self._run.number, "of": self._of}
        if self._run.block is not None:
            experiment |= {"block": self._run.block, "looks": self._lab.looks}
        if self._lab.goal_ms is not None:
            experiment["goal_ms"] = self._lab.goal_ms
        if self._variant.all_levels:
            experiment["levels"] = self._variant.all_levels
        part_of = self._rig.clone.data().part_of
        name = Label(self._lab.name).of(self._rig.name)
        rounds = last_filling(read_rounds(self._folder.rounds), self._rig.name)
        replace_json(
            path,
            read_json(path)
            | {
                "scenario": self._choice.called_in_full(part.load.member),
                "experiment": experiment,
                **({"factors": self._variant.levels} if self._variant.levels else {}),
                "storage": {
                    "emulated": where.emulated if where else None,
                    "clone": {**self._rig.clone.describe(), **accelerator, **self._seen.description},
                    "facts": facts,
                    "tuning": [asdict(value) for value in label_parts(tuning.asked, part_of)],
                    **cache_facts(self._lab, self._rig.backend, where, name),
                    **precondition_facts(rounds),
                },
                "phases": {"warmup_s": self._lab.warmup_s, **self._phases.model_dump()},
            }
            | (describe_company(self._run, part, parts) if self._choice.together else {}),
        )


def _merge_events(path: Path, further: Path, later_ns: int) -> None:
    """Bring the lab's events of a run among its own, in order of time, by rename.

    `later_ns` is how much later the clock of `further` began than that of `path`.
    """
    found = []
    for source, shift_ns in ((path, 0), (further, later_ns)):
        with contextlib.suppress(FileNotFoundError):
            for line in source.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):
                    event = json.loads(line)
                    event["t_ns"] = t_ns = event.get("t_ns", 0) + shift_ns
                    found.append((t_ns, json.dumps(event, ensure_ascii=False) if shift_ns else line))
    replace_text(path, "".join(line + "\n" for _, line in sorted(found, key=lambda one: one[0])))


def collect_members(attempt: Path, run: PlannedRun, parts: list[MemberRun]) -> Path:
    """Put the run directories of `parts` into one folder of `attempt`, which names them. Raises OutputError.

    It becomes the finished run by one rename, whole.
    """
    folder = attempt / "together"
    try:
        folder.mkdir()
        for part in parts:
            part.directory = part.directory.rename(folder / part.load.member.called)
    except OSError as error:
        raise write_error(folder, error) from None
    members = [part.load.member.called for part in parts]
    said = {"entry": run.scenario, "backend": run.backend, "repeat": run.repeat, "members": members}
    replace_json(folder / TOGETHER_FILE, {"format": 1, **said})
    return folder


def describe_company(run: PlannedRun, part: MemberRun, parts: list[MemberRun]) -> dict[str, Any]:
    """Return what run.json of `part` says of the others; times are by its own clock.

    A crowd that the lab stopped, as all others had ended, is complete.
    """
    others = [_other(part, each) for each in parts if each is not part]
    ended = {"status": "complete", "reason": None} if part.stopped else {}
    own = {"run": run.name, "entry": run.scenario, "member": part.load.member.called}
    begins = part.load.begins
    later = {"begins_s": begins.at_s, "began_s": _began_s(part, part)} if begins else {}
    return {**ended, "together": {**own, **later, "stopped": part.stopped, "others": others}}


def _began_s(of: MemberRun, by: MemberRun) -> float:
    """Return the second at which `of` began, by the clock of `by`."""
    return round(
        (of.clock.start_ns if of.began_ns is None else of.began_ns) / 1e9 - by.clock.start_ns / 1e9, 6
    )


def _other(part: MemberRun, other: MemberRun) -> dict[str, Any]:
    facts = read_json(other.directory / FACTS_FILE)
    load = facts.get("load") or {}
    slice_from = (load.get("settings") or {}).get("from")
    if slice_from is not None:  # runs of one load play slices of the log that differ
        load = Load.of({**load["settings"], "from": None}).model_dump()
    clock_s = (other.clock.start_ns - part.clock.start_ns) / 1e9
    started, ended = (datetime.fromisoformat(facts[key]) for key in ("started_at", "ended_at"))
    return {
        "member": other.load.member.called,
        "scenario": other.load.member.scenario,
        "crowd": other.load.member.is_crowd,
        "speed": facts.get("speed"),
        "load": load.get("digest"),
        **({} if slice_from is None else {"log_from": slice_from}),
        "from_s": _began_s(other, part),
        "to_s": round(clock_s + (ended - started).total_seconds(), 6),
    }


def cache_facts(lab: Lab, backend: Backend, place: Place | None, name: str) -> dict[str, Any]:
    """Return what `storage` in run.json says of the caches at the start of a run, nothing if unknown.

    `place` is that of the disk, `name` the clone's.
    """
    if not find_driver(backend.clone).needs_disk or place is None:
        return {"cache": {"state": lab.cache, "how": []}} if lab.cache else {}
    how = [step.says for step in with_caches(lab.cache, place, name).cold]
    return {"cache": {"state": lab.cache or _DEFAULT, "how": how}}


def precondition_facts(rounds: Sequence[VolumeRound]) -> dict[str, Any]:
    """Return what `storage` in run.json says of the volume; nothing without a filling. Pure."""
    if not rounds:
        return {}
    last = rounds[-1]
    settings = {name: getattr(last, name) for name in ("fill_percent", "block_bytes", "threads")}
    return {"precondition": {**settings, "rounds": last.round, "steady": last.steady is True}}
