"""Looks at the machines before anything is done: what is missing there, and what would be in the way."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from lab.disks.registry import kind_of as disk_kind
from lab.errors import LabError
from lab.experiment.command_line import replay_program
from lab.experiment.replay_options import REPLAY, ReplayOptions
from lab.experiment.rigs import Machines, rig_of
from lab.experiment.settings import LOCAL, Backend, Lab
from lab.experiment.variants import variants
from lab.machine import Machine
from lab.saturators import kind_of as saturator_kind
from lab.steps.step import Command
from lab.tuning.apply import planned as planned_tuning

_EVERYWHERE = {"env", "sh", "rm", "cat", "tee", "mkdir", "printf"}


async def probe(lab: Lab) -> list[str]:
    """Return the obstacles, one sentence each; none: the experiment can begin. Changes nothing."""
    problems = _scenarios(lab)
    machines = Machines(lab)
    try:
        for variant in variants(lab):
            backend = variant.settings
            try:
                problems += [
                    f"{backend.name}: {what}"
                    for what in await _backend(variant.lab, backend, machines.of(backend))
                ]
            except LabError as error:
                problems.append(f"{backend.name}: {error}")
    finally:
        await machines.close()
    return list(dict.fromkeys(problems))


async def _backend(lab: Lab, backend: Backend, machine: Machine) -> list[str]:
    rig = await rig_of(lab, backend, machine, lambda _name, _step: None)
    parts = [
        await rig.prepare(),
        rig.make_disk(),
        rig.make_clone(),
        rig.reset(True),
        rig.rest(),
        *rig.remove(),
    ]
    words = {step.words[0] for part in parts for step in part.steps if isinstance(step, Command)}
    if (saturator := backend.saturator or lab.saturator) is not None:
        words |= saturator_kind(saturator).programs
    problems = [
        f"{machine.name} has no {word}: install it"
        for word in sorted(words - _EVERYWHERE)
        if (await machine.run(["sh", "-c", 'command -v -- "$1"', "sh", word], check=False)).status
    ]
    try:
        rig.saturator(lab)
    except LabError as error:
        problems.append(str(error).removeprefix(f"{backend.name}: "))
    if backend.disk and (await machine.run(["id", "-u"])).out.strip() != "0":
        how = "run plimsoll as root" if backend.host == LOCAL else "log in as root, or set become: true"
        problems.append(f"{machine.name}: only root can make disks and clones: {how}")
    if not (backend.disk and disk_kind(backend.disk).is_made):  # whose devices are not there yet
        try:
            await planned_tuning(machine, backend.tuning)
        except LabError as error:
            problems.append(f"tuning: {error}")
    problems += [f"is in the way and will be removed first: {found.what}" for found in await rig.found()]
    return problems


def _scenarios(lab: Lab) -> list[str]:
    problems = []
    if any(choice.scenario == REPLAY for choice in lab.scenarios) and not Path(replay_program()).exists():
        problems.append(f"{replay_program()}: is not built yet: run make build")
    for choice in lab.scenarios:
        if choice.scenario == REPLAY:
            logs: Iterable[str] = ReplayOptions.model_validate(choice.options).log
            problems += [
                f"{choice.called}: log: {log} cannot be read"
                for log in logs
                if not any(character in log for character in "*?[") and not os.access(log, os.R_OK)
            ]
    if shutil.disk_usage(_existing(lab.out)).free < 1 << 30:
        problems.append(f"out: {lab.out} has less than 1 GiB free: choose another folder")
    return problems


def _existing(path: Path) -> Path:
    path = path.absolute()
    return path if path.exists() else _existing(path.parent)
