"""The plan of an experiment, command by command: the same steps that are carried out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.experiment.command_line import loads_of
from lab.experiment.dry_machine import DryMachine
from lab.experiment.experiment import planned
from lab.experiment.factors.variants import variants
from lab.experiment.order import PlannedRun
from lab.experiment.rig import Rig, StepGroup
from lab.experiment.rigs import by_variant
from lab.experiment.scenario_kinds import TraitsByScenario
from lab.experiment.settings import Lab
from lab.experiment.status.course import Course
from lab.experiment.status.forecast import Plan, left_s
from lab.names.labels import Label
from lab.saturators import kind_of, saturator
from lab.steps.step import Command, Step, shown
from lab.tuning import Tuning
from lab.tuning.apply import planned as planned_tuning
from lab.tuning.own_disk import resolved, still_to_be_made, tuned_in_runs, without
from lab.tuning.values import SettingCommand

ATTEMPT = "${attempt}"  # the folder of a run that is being done


@dataclass(frozen=True)
class Chapter:
    """The steps on one machine for one purpose."""

    says: str
    machine: str
    backend: str
    parts: tuple[StepGroup, ...]


async def chapters(lab: Lab, rigs: list[Rig], kinds: TraitsByScenario) -> list[Chapter]:
    """Return all that would be done, in order. Looks at the machines, changes nothing. Raises LabError."""
    found, plain = by_variant(rigs), {variant.name: variant.lab for variant in variants(lab)}
    tunings = {
        name: await planned_tuning(rig.machine, _by_name(rig, rig.outfits[name][0].tuning))
        for name, rig in found.items()
    }
    chapters: list[Chapter] = []
    made: set[str] = set()
    prepared: set[str] = set()
    saturating: dict[str, StepGroup] = {}
    dirty: set[str] = set()
    for run in planned(lab):
        rig = found[run.backend]
        rig.wear(run.backend)
        tuning = tunings[run.backend]
        of_disk = _of_own_disk(rig)
        tuned = _tuned([*tuning.apply_steps, *of_disk])
        untuned = StepGroup(
            "put the host's settings back", tuple(_step(step) for step in tuning.put_back_steps)
        )
        if run.backend not in saturating:
            saturating[run.backend] = await _saturating(plain[run.backend], rig)
        if rig.name not in made:
            made.add(rig.name)
            prepare = StepGroup("", ()) if rig.backend.host in prepared else await rig.prepare()
            if prepare.steps:
                prepared.add(rig.backend.host)
            parts = (prepare, rig.make_disk(), tuned, rig.make_clone(), untuned, rig.limit())
            chapters.append(_chapter(f"make {rig.name}", rig, parts))
        parts = (
            _tuned([*tuning.apply_steps, *of_disk, *_of_clone(rig)]),
            rig.reset(restore=rig.name in dirty),
            StepGroup("load", _load(plain[run.backend], run, kinds, rig)),
            saturating[run.backend],
            rig.rest(),
            untuned,
        )
        chapters.append(
            _chapter(f"run {run.number}: {run.scenario} on {run.backend}, repeat {run.repeat}", rig, parts)
        )
        (dirty.add if kinds[run.scenario].changes else dirty.discard)(rig.name)
    return [*chapters, *(_chapter(f"remove {rig.name}", rig, tuple(rig.remove())) for rig in rigs)]


def _by_name(rig: Rig, tuning: Tuning) -> Tuning:
    """Return what of `tuning` can be looked at before the disk is made."""
    place = rig.place
    if place is None or rig.makes_disk:
        return without(tuning)
    return resolved(tuning, place.devices, place.dataset, {})


def _tuned(steps: Sequence[SettingCommand]) -> StepGroup:
    return StepGroup("tune the host", tuple(_step(step) for step in steps))


def _of_own_disk(rig: Rig) -> list[SettingCommand]:
    """Return the commands that tune a disk that is still to be made."""
    place = rig.place
    if place is None or not rig.makes_disk:
        return []
    return still_to_be_made(rig.backend.tuning, place.devices, place.dataset)


def _of_clone(rig: Rig) -> list[SettingCommand]:
    """Return the commands that tune datasets of the clone, which is still to be made."""
    return tuned_in_runs(rig.backend.tuning, rig.clone.data().parts)


def lasts_s(lab: Lab) -> float | None:
    """Return about how long it takes, None where a scenario has no end of its own. Pure."""
    plan = Plan.of(lab)
    return left_s(plan, list(plan.runs.values()), set(), Course().spent, None)


def lines(chapter: Chapter) -> list[str]:
    """Return a chapter as it is printed: a script with comments. Pure."""
    script = [f"# {chapter.says} (on {chapter.machine})"]
    for part in chapter.parts:
        script.append(f"## {part.says}")
        script += [_line(step) for step in part.steps]
    return script


def _line(step: Step) -> str:
    line = shown(replace(step, words=tuple(map(_short, step.words))) if isinstance(step, Command) else step)
    return f"{line}   # {step.says}" if step.says else line


def _short(word: str) -> str:
    """Return the first line of a script; `--json` has all of it."""
    first, _, further = word.strip().partition("\n")
    return f"{first} … [{further.count(chr(10)) + 1} more lines]" if further else word


def as_data(chapter: Chapter) -> dict[str, Any]:
    """Return a chapter for `--json`. Pure."""
    steps = [
        {"part": part.says, "says": step.says, "command": shown(step)}
        | ({"words": list(step.words)} if isinstance(step, Command) else {})
        for part in chapter.parts
        for step in part.steps
    ]
    return {"says": chapter.says, "machine": chapter.machine, "backend": chapter.backend, "steps": steps}


def _chapter(says: str, rig: Rig, parts: tuple[StepGroup, ...]) -> Chapter:
    return Chapter(says, rig.machine.name, rig.name, tuple(part for part in parts if part.steps))


def _load(lab: Lab, run: PlannedRun, kinds: TraitsByScenario, rig: Rig) -> tuple[Command, ...]:
    target = rig.clone.target(_Unknown())
    loads = loads_of(lab, run, kinds, target, ATTEMPT, rig.is_ours)
    return tuple(Command(load.says, tuple(load.command)) for load in loads)


async def _saturating(lab: Lab, rig: Rig) -> StepGroup:
    """Return the commands of the saturator's first rounds: it works on a machine that does nothing."""
    settings = rig.saturator(lab)
    if settings is None:
        return StepGroup("saturate", ())
    steps: list[Step] = []
    kind = kind_of(settings)
    statuses = {words: (await rig.machine.run(words, check=False)).status for words in kind.questions}
    dry = DryMachine(rig.machine.name, steps.append, statuses, kind.rounds(settings))
    machine = rig.saturated_on(dry, _Unknown())
    busy = saturator(machine, settings, Label(lab.name).saturator(rig.name), lambda _event: None)
    await busy.start()
    await dry.started.wait()
    await busy.stop()
    return StepGroup(f"saturate, again and again: {settings.kind}", tuple(steps))


def _step(step: Any) -> Command:
    return Command("", tuple(step.command), stdin=step.stdin)


class _Unknown(dict[str, str]):
    """Stands for the values that steps would capture: each is shown as a reference."""

    def __missing__(self, key: str) -> str:
        return "${" + key + "}"
