"""lab.yml read and checked whole: its keys, what is between them, and the options of every scenario."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plimsoll.common.errors import SettingsError
from plimsoll.common.validation import Location, read_model
from plimsoll.lab.experiment.idle import Experiment, idle_keys
from plimsoll.lab.experiment.replay_options import REPLAY
from plimsoll.lab.experiment.scenario_kinds import TraitsByScenario, idle_options, location_of, traits_of
from plimsoll.lab.experiment.settings import MANUAL, Lab, problems

# In place of what is wrong, so that the rest of the file is checked too.
_CLONE = {"driver": "static", "target": "http://127.0.0.1"}
_STAND_INS: dict[str, Any] = {
    "name": "any",
    "backends.*.clone": _CLONE,
    "backends.*.disk": {"kind": "emulated", "filesystem": "zfs", "size_bytes": "8G"},
    "backends": [{"name": "any", "clone": _CLONE}],
    "scenarios": [{"scenario": "replay", "options": {"log": "any"}}],
}
_FACTORS = ("factors", "combinations")
_OF_SCENARIOS = "docs/scenarios.md"
_PLACED = re.compile(r": ([^:]+): (.*)", re.DOTALL)


def read_checked(path: Path) -> tuple[Lab, TraitsByScenario]:
    """Return what `path` holds, and the traits of its scenarios. Raises SettingsError with all problems.

    Asks the scenarios themselves, which takes a second: `read_lab` reads a file that was checked before.
    """
    lab = read_model(path, Lab, MANUAL, all_problems, _STAND_INS)
    kinds = traits_of(lab, str(path))
    # What is without effect is known only of a file without mistakes, of which nothing was left out.
    read_model(path, Lab, MANUAL, lambda _: _idle(lab, kinds))
    return lab, kinds


def _idle(lab: Lab, kinds: TraitsByScenario) -> Iterator[tuple[Location, str]]:
    yield from idle_keys(Experiment(lab, kinds))
    for at, why in idle_options(lab):
        yield at, why + _page(lab, at)


def all_problems(lab: Lab) -> Iterator[tuple[Location, str]]:
    """Yield the problems between keys, and those of the scenarios' options: where, and what to do."""
    between = list(problems(lab))
    yield from between
    if any(at[0] in _FACTORS for at, _ in between):
        # The variants cannot be made; the options can be looked at without them.
        lab = lab.model_copy(update={"factors": [], "combinations": []})
    try:
        traits_of(lab, "")
    except SettingsError as error:
        for line in str(error).splitlines():
            if not (found := _PLACED.fullmatch(line)):
                raise
            at = location_of(found[1])
            yield at, found[2] + _page(lab, at)


def _page(lab: Lab, at: Location) -> str:
    """Return the page on options of a scenario; those of a replay are on lab.yml's own."""
    if "options" not in at or not isinstance(at[1], int):
        return ""
    choice = lab.scenarios[at[1]]
    place = at[at.index("options") - 1] if choice.together else 0
    if not isinstance(place, int) or choice.members[place].scenario == REPLAY:
        return ""
    return f" (see {_OF_SCENARIOS})"
