"""Which runs the command's arguments stand for, and of which night each is."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analysis.errors import RunDirectoryError
from analysis.history.night import Night, NightKey, instant
from analysis.models import RunFacts
from analysis.records import read_facts
from analysis.report.find import runs_in

_STAMP = re.compile(r"(\d{8}T\d{6})Z$")
_LAB = "lab.json"


@dataclass(frozen=True)
class FoundRun:
    """One run directory, the folder that it was found in, and its night."""

    path: Path
    root: Path
    facts: RunFacts
    night: Night


@dataclass(frozen=True)
class Found:
    """All runs and nights that were named (also nights without a run), and what cannot be read (hostile)."""

    runs: list[FoundRun]
    nights: list[Night]
    unreadable: list[str]


def find(paths: Sequence[Path]) -> Found:
    """Return what `paths` stand for: run directories, folders of them, or of experiments.

    A folder stands for what is in it, one level deep; links and what is hidden are left out. Raises
    RunDirectoryError.
    """
    runs: dict[Path, FoundRun] = {}
    nights: dict[NightKey, Night] = {}
    unreadable: list[str] = []
    for path in paths:
        for folder, inside in _folders(path):
            lab = _lab(folder)
            if lab is not None:
                nights.setdefault(lab.key, lab)
            for one in inside:
                try:
                    facts = read_facts(one)
                    found = FoundRun(one.resolve(), folder.resolve(), facts, night_of(one, facts))
                except RunDirectoryError as error:
                    if one == path:
                        raise
                    unreadable.append(str(error))
                    continue
                runs.setdefault(found.path, found)
                nights.setdefault(found.night.key, found.night)
    return Found(list(runs.values()), list(nights.values()), unreadable)


def night_of(path: Path, facts: RunFacts) -> Night:
    """Return of which night the run at `path` is.

    Runs of one experiment's folder are one night; others go by the UTC day on which they began. Raises
    RunDirectoryError where it does not say when it began.
    """
    if facts.started_at is None:
        raise RunDirectoryError(f"{path}: does not say when it began, so it has no place in a history")
    folder = path.resolve().parent.parent if path.resolve().parent.name == "runs" else None
    experiment, planned = (facts.experiment.name, facts.experiment.of) if facts.experiment else ("", None)
    began = instant(facts.started_at)
    if folder is None:
        return Night(
            NightKey(experiment, began[:10]), f"{began[:10]}T00:00:00.000000Z", planned, str(path.parent)
        )
    lab = _lab(folder)
    if lab is not None and lab.key.experiment == experiment:
        return lab
    stamp = _STAMP.search(folder.name)
    name = folder.name if stamp else f"{folder.name} {began[:10]}"
    started = _of_stamp(stamp[1]) if stamp else f"{began[:10]}T00:00:00.000000Z"
    return Night(NightKey(experiment, name), started, planned, str(folder))


def _folders(path: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Yield the folders that `path` stands for, each with its run directories."""
    if (path / "run.json").exists():
        yield path.parent, [path]
        return
    if not path.is_dir():
        read_facts(path)  # says what is wrong with it
    found = False
    if _is_experiment(path):
        found = True
        yield path, runs_in(path / "runs")
    elif inside := runs_in(path):
        found = True
        yield path, inside
    try:
        below = [one for one in sorted(path.iterdir()) if one.is_dir() and not one.is_symlink()]
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
    for one in below:
        if not one.name.startswith(".") and one.name not in ("runs", "attempts") and _is_experiment(one):
            found = True
            yield one, runs_in(one / "runs")
    if not found:
        raise RunDirectoryError(
            f"{path}: is no run directory and holds none; give run directories, folders of them, or "
            "experiments' folders"
        )


def _is_experiment(path: Path) -> bool:
    return (path / _LAB).is_file() or bool((path / "runs").is_dir() and runs_in(path / "runs"))


def _lab(folder: Path) -> Night | None:
    """Return the night that an experiment's folder is, None where it is none or its lab.json is damaged."""
    try:
        lab: Any = json.loads((folder / _LAB).read_bytes())
    except (OSError, ValueError):
        return None
    stamp = _STAMP.search(folder.resolve().name)
    if stamp is None or not isinstance(lab, dict) or not isinstance(lab.get("name"), str):
        return None
    key = NightKey(lab["name"], folder.resolve().name)
    return Night(key, _of_stamp(stamp[1]), _planned(lab), str(folder.resolve()))


def _planned(lab: dict[str, Any]) -> int | None:
    backends, scenarios, repeats = (lab.get(key) for key in ("backends", "scenarios", "repeats"))
    if isinstance(backends, list) and isinstance(scenarios, list) and isinstance(repeats, int):
        return len(backends) * len(scenarios) * repeats
    return None


def _of_stamp(text: str) -> str:
    try:
        return instant(datetime.strptime(text, "%Y%m%dT%H%M%S").replace(tzinfo=UTC))
    except ValueError:
        return f"{text[:4]}-{text[4:6]}-{text[6:8]}T00:00:00.000000Z"
