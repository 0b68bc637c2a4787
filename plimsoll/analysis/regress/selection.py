"""The runs that the command's arguments stand for, and the night of each."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll.analysis.regress.night import NightFacts, NightKey, instant
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.directory import read_facts
from plimsoll.rundir.discovery import is_run, place_of, runs_in, subfolders
from plimsoll.rundir.jsonfile import read_json
from plimsoll.rundir.names import EXPERIMENT_FILE, RUNS_FOLDER
from plimsoll.rundir.runfacts import RunFacts

_STAMP = re.compile(r"(\d{8}T\d{6})Z$")


@dataclass(frozen=True)
class SelectedRun:
    """One run directory, the folder that it was found in, and its night."""

    path: Path
    root: Path
    facts: RunFacts
    night: NightFacts


@dataclass(frozen=True)
class RunSelection:
    """All runs and nights that were named (also nights without a run), and what cannot be read (hostile)."""

    runs: list[SelectedRun]
    nights: list[NightFacts]
    unreadable: list[str]


def select_runs(paths: Sequence[Path]) -> RunSelection:
    """Return what `paths` stand for: run directories, folders of them, or of experiments.

    A folder stands for what is in it, one level deep; links and what is hidden are left out. Raises
    RunDirectoryError.
    """
    runs: dict[Path, SelectedRun] = {}
    nights: dict[NightKey, NightFacts] = {}
    unreadable: list[str] = []
    for path in paths:
        for folder, inside in _folders(path):
            lab = _lab(folder)
            if lab is not None:
                nights.setdefault(lab.key, lab)
            for one in inside:
                try:
                    facts = read_facts(one)
                    found = SelectedRun(one.resolve(), folder.resolve(), facts, night_of(one, facts))
                except RunDirectoryError as error:
                    if one == path:
                        raise
                    unreadable.append(str(error))
                    continue
                runs.setdefault(found.path, found)
                if not facts.from_log:  # the nights of a log are its days
                    nights.setdefault(found.night.key, found.night)
    return RunSelection(list(runs.values()), list(nights.values()), unreadable)


def night_of(path: Path, facts: RunFacts) -> NightFacts:
    """Return of which night the run at `path` is.

    Runs of one experiment's folder are one night; others go by the UTC day on which they began. An imported
    access log has many nights: its first day stands for them. Raises RunDirectoryError where it does not say
    when it began.
    """
    if facts.started_at is None:
        raise RunDirectoryError(f"{path}: does not say when it began, so it has no place in a history")
    runs = place_of(path).parent
    folder = runs.parent if runs.name == RUNS_FOLDER else None
    experiment, planned = (facts.experiment.name, facts.experiment.of) if facts.experiment else ("", None)
    began = instant(facts.started_at)
    if facts.from_log:
        return NightFacts(NightKey(f"days of {facts.scenario}", began[:10]), began, None, str(runs))
    if folder is None:
        day = NightKey(experiment, began[:10])
        return NightFacts(day, f"{began[:10]}T00:00:00.000000Z", planned, str(runs))
    lab = _lab(folder)
    if lab is not None and lab.key.experiment == experiment:
        return lab
    stamp = _STAMP.search(folder.name)
    name = folder.name if stamp else f"{folder.name} {began[:10]}"
    started = _of_stamp(stamp[1]) if stamp else f"{began[:10]}T00:00:00.000000Z"
    return NightFacts(NightKey(experiment, name), started, planned, str(folder))


def _folders(path: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Yield the folders that `path` stands for, each with its run directories."""
    if is_run(path):
        yield place_of(path).parent, [path]
        return
    if not path.is_dir():
        read_facts(path)  # says what is wrong with it
    found = False
    if _is_experiment(path):
        found = True
        yield path, runs_in(path / RUNS_FOLDER)
    elif inside := runs_in(path):
        found = True
        yield path, inside
    for one in subfolders(path):
        if one.name not in (RUNS_FOLDER, "attempts") and _is_experiment(one):
            found = True
            yield one, runs_in(one / RUNS_FOLDER)
    if not found:
        raise RunDirectoryError(
            f"{path}: is no run directory and holds none; give run directories, folders of them, or "
            "experiments' folders"
        )


def _is_experiment(path: Path) -> bool:
    return (path / EXPERIMENT_FILE).is_file() or bool(runs_in(path / RUNS_FOLDER))


def _lab(folder: Path) -> NightFacts | None:
    """Return the night that an experiment's folder is, None where it is none or its lab.json is damaged."""
    try:
        lab: Any = read_json(folder / EXPERIMENT_FILE)
    except RunDirectoryError:
        return None
    stamp = _STAMP.search(folder.resolve().name)
    if stamp is None or not isinstance(lab, dict) or not isinstance(lab.get("name"), str):
        return None
    key = NightKey(lab["name"], folder.resolve().name)
    return NightFacts(key, _of_stamp(stamp[1]), _planned(lab), str(folder.resolve()))


def _planned(lab: dict[str, Any]) -> int | None:
    backends, scenarios, repeats = (lab.get(key) for key in ("backends", "scenarios", "repeats"))
    if isinstance(backends, list) and isinstance(scenarios, list) and isinstance(repeats, int):
        return len(backends) * sum(map(_members, scenarios)) * repeats
    return None


def _members(scenario: Any) -> int:
    """Return how many runs an entry of `scenarios` has on one backend each time: one, or as many together."""
    together = scenario.get("together") if isinstance(scenario, dict) else None
    return len(together) if isinstance(together, list) and together else 1


def _of_stamp(text: str) -> str:
    try:
        return instant(datetime.strptime(text, "%Y%m%dT%H%M%S").replace(tzinfo=UTC))
    except ValueError:
        return f"{text[:4]}-{text[4:6]}-{text[6:8]}T00:00:00.000000Z"
