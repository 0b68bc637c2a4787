"""Experiments that have not ended, or ended without all of their runs: what a report on them begins with."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.files import read_regular_lines
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted
from plimsoll.rundir.discovery import subfolders
from plimsoll.rundir.names import EXPERIMENT_FILE, JOURNAL_FILE, RUNS_FOLDER

_LARGEST_BYTES, _LONGEST_BYTES = 64 << 20, 1 << 20  # of a journal, and of a line
_MOST = 8  # failures that are named

Line = dict[str, Any]


def midway(runs: Sequence[MeasuredRun]) -> list[str]:
    """Return what the experiments of `runs` have not done, a sentence each (hostile)."""
    said: list[str] = []
    for folder in _folders(runs):
        of = [
            experiment.of
            for run in runs
            if run.directory.path.resolve().is_relative_to(folder / RUNS_FOLDER)
            and (experiment := run.directory.facts.experiment)
            and experiment.of is not None
        ]
        try:
            done = {path.name for path in subfolders(folder / RUNS_FOLDER)}
            journal = list(_lines(folder / JOURNAL_FILE))
        except (RunDirectoryError, FileNotFoundError):
            continue
        said += undone(folder.name, done, max(of, default=None), journal)
    return said


def undone(name: str, done: set[str], total: int | None, journal: Sequence[Line]) -> list[str]:
    """Return what an experiment has not done: `done` are its finished runs, of `total`. Pure."""
    has_ended = [line["what"] for line in journal if line.get("what") in ("begun", "ended")][-1:] == ["ended"]
    if has_ended and (total is None or len(done) >= total):
        return []
    of = f"{len(done):,} of {total:,} runs" if total is not None else counted(len(done), "run")
    first = (
        f"{name} ended with {of}."
        if has_ended
        else f"This is not the end: {name} has finished {of}, and has not ended."
    )
    return [first, *(printable(text) for text in (*_aside(journal), *_failed(done, journal)))]


def _aside(journal: Sequence[Line]) -> Iterator[str]:
    found: dict[str, str] = {}
    for line in journal:
        if line.get("what") == "tried again":
            found.clear()
        elif line.get("what") == "set aside":
            scenario = f"{line['scenario']} on " if line.get("scenario") else ""
            found[f"{scenario}{line.get('backend')}"] = _reason(line)
    yield from (f"Set aside: {name}: {why}." for name, why in found.items())


def _failed(done: set[str], journal: Sequence[Line]) -> Iterator[str]:
    found = {
        str(line.get("run")): _reason(line)
        for line in journal
        if line.get("what") == "run failed" and line.get("run") not in done
    }
    for name, why in list(found.items())[:_MOST]:
        yield f"Failed, and not done since: {name}: {why}."
    if len(found) > _MOST:
        yield f"So did {counted(len(found) - _MOST, 'further run')}."


def _reason(line: Line) -> str:
    return str(line.get("why", "")).partition("\n")[0].rstrip(".")


def _folders(runs: Sequence[MeasuredRun]) -> list[Path]:
    """Return the folders of the experiments of `runs`, each once."""
    inside = [path for run in runs for path in run.directory.path.resolve().parents[:2]]
    found = dict.fromkeys(path.parent for path in inside if path.name == RUNS_FOLDER)
    return [folder for folder in found if (folder / EXPERIMENT_FILE).is_file()]


def _lines(path: Path) -> Iterator[Line]:
    for data in read_regular_lines(path, _LARGEST_BYTES, _LONGEST_BYTES):
        try:
            value = json.loads(data)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value
