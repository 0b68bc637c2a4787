"""What a run knows of those that ran together with it, and the folder that holds them all."""

from datetime import datetime
from pathlib import Path
from typing import Any

from plimsoll.common.files import replace_json, write_error
from plimsoll.lab.experiment.load import LoadPart
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.rundir.names import FACTS_FILE, TOGETHER_FILE
from plimsoll.rundir.read import read_json


def company(run: PlannedRun, part: LoadPart, parts: list[LoadPart]) -> dict[str, Any]:
    """Return what `part`'s run.json gets of the others; times are by its own clock.

    A crowd that the lab stopped, as all others had ended, is complete.
    """
    others = [_other(part, each) for each in parts if each is not part]
    ended = {"status": "complete", "reason": None} if part.stopped else {}
    own = {"run": run.name, "entry": run.scenario, "member": part.load.member.called}
    begins = part.load.begins
    later = {"begins_s": begins.at_s, "began_s": _began_s(part, part)} if begins else {}
    return {**ended, "together": {**own, **later, "stopped": part.stopped, "others": others}}


def _began_s(of: LoadPart, by: LoadPart) -> float:
    """Return the second at which `of` began, by the clock of `by`."""
    return round(
        (of.clock.start_ns if of.began_ns is None else of.began_ns) / 1e9 - by.clock.start_ns / 1e9, 6
    )


def _other(part: LoadPart, other: LoadPart) -> dict[str, Any]:
    facts = read_json(other.directory / FACTS_FILE)
    clock_s = (other.clock.start_ns - part.clock.start_ns) / 1e9
    started, ended = (datetime.fromisoformat(facts[key]) for key in ("started_at", "ended_at"))
    return {
        "member": other.load.member.called,
        "scenario": other.load.member.scenario,
        "crowd": other.load.member.is_crowd,
        "speed": facts.get("speed"),
        "load": (facts.get("load") or {}).get("digest"),
        "from_s": _began_s(other, part),
        "to_s": round(clock_s + (ended - started).total_seconds(), 6),
    }


def gathered(attempt: Path, run: PlannedRun, parts: list[LoadPart]) -> Path:
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
