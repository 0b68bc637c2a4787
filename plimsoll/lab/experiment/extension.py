"""An experiment that goes on with a changed lab.yml: what of it is taken over, and run. Pure."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plimsoll.common.hostile import redact
from plimsoll.lab.experiment.factors.variants import Variant, variants
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.lab.experiment.settings import Lab

_NONE = object()
_FREE = ("limits", "order", "out", "goal_ms", "notify", "fileio")  # they shape no run
_FACTORS = ("factors", "combinations")
_ENTRIES = ("backends", "scenarios", "hosts")  # lists of what has a name, and may grow


@dataclass(frozen=True)
class Change:
    """A key of lab.yml that is not as it was. `refusal` says why it is not taken over, and what to do.

    None as a value: it is not there.
    """

    key: str
    before: Any
    now: Any
    refusal: str | None

    @property
    def sentence(self) -> str:
        """Key and both values, as people write them."""
        return f"{self.key}: {_shown(self.now)} in the file, {_shown(self.before)} in this experiment"


def changes(before: Lab, now: Lab) -> list[Change]:
    """Return what differs, key by key; a backend, scenario or host that is new is one change."""
    found = list(_changes(_by_name(before), _by_name(now), ""))
    if not any(change.key in _FACTORS for change in found):
        return found
    kept = _keeps(variants(before), variants(now))
    return [replace(change, refusal=None) if change.key in _FACTORS and kept else change for change in found]


def extended_runs(runs: Sequence[PlannedRun], lab: Lab) -> list[PlannedRun]:
    """Return `runs`, and behind them those that `lab` has besides.

    Each round has one more repeat of each backend, forwards and backwards in turn; a backend that lacks fewer
    repeats than another comes in as many rounds, evenly spread.
    """
    there = {(run.scenario, run.backend, run.repeat) for run in runs}
    scenarios = [choice.called for choice in lab.scenarios]
    missing = {
        variant.name: [
            (repeat, lacking)
            for repeat in range(1, lab.repeats + 1)
            if (lacking := [name for name in scenarios if (name, variant.name, repeat) not in there])
        ]
        for variant in variants(lab)
    }
    counts = {backend: len(each) for backend, each in missing.items()}
    rounds = max(counts.values())
    draw = random.Random(f"{lab.seed} {len(runs)}")  # noqa: S311 an order, no secret
    found = list(runs)
    shared = max((run.repeat for run in runs), default=0)  # so that forwards and backwards alternate on
    for i in range(rounds):
        around = [name for name, count in counts.items() if _takes_part(count, rounds, i)]
        if lab.order == "random":
            draw.shuffle(around)
        elif shared % 2:
            around.reverse()
        shared += len(around) > 1
        for backend in around:
            repeat, lacking = missing[backend].pop(0)
            found += [
                PlannedRun(len(found) + place, repeat, backend, scenario)
                for place, scenario in enumerate(lacking, 1)
            ]
    return found


def alone(runs: Sequence[PlannedRun], further: Sequence[PlannedRun]) -> list[str]:
    """Return the backends that begin with `further` and share it with none of those that were there."""
    old, new = ({run.backend for run in each} for each in (runs, further))
    return [] if old & new else sorted(new - old)


def _keeps(before: Sequence[Variant], now: Sequence[Variant]) -> bool:
    """Return whether all combinations of levels are still there, and mean what they meant."""
    there = {variant.name: variant for variant in now}
    return all(
        (other := there.get(each.name)) is not None
        and each.rig == other.rig
        and not any(change.refusal for change in changes(each.lab, other.lab))
        for each in before
    )


def _takes_part(count: int, rounds: int, i: int) -> bool:
    return (i + 1) * count // rounds > i * count // rounds


def _changes(before: Mapping[str, Any], now: Mapping[str, Any], at: str) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *now)):
        key = f"{at}.{name}" if at else name
        old, new = before.get(name, _NONE), now.get(name, _NONE)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _changes(old, new, key)
        else:
            one, other = (None if value is _NONE else value for value in (old, new))
            yield Change(key, one, other, _refusal(key, one, other))


def _refusal(key: str, before: Any, now: Any) -> str | None:
    """Return why old and new runs would not be comparable, and the remedy."""
    kind, _, rest = key.partition(".")
    if kind in _FREE:
        return None
    if kind in _ENTRIES and rest and "." not in rest:
        return None if before is None else "its runs are part of this experiment: put it back"
    if kind == "repeats":
        return None if now > before else f"runs that are planned stay: give {before} or more"
    if kind in _ENTRIES:
        return (
            "runs before and after it could not be compared: put it back, and give what is changed a name of "
            "its own beside it"
        )
    return "runs before and after it could not be compared: put it back, or start a new experiment"


def _by_name(lab: Lab) -> dict[str, Any]:
    """Return the settings with names in place of places: an order in the file means nothing."""
    data = lab.model_dump(mode="json")
    data["backends"] = {entry["name"]: entry for entry in data["backends"]}
    data["hosts"] = {entry["name"]: entry for entry in data["hosts"]}
    called = [choice.called for choice in lab.scenarios]
    data["scenarios"] = dict(zip(called, data["scenarios"], strict=True))
    return data


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return "there"
    return redact(str(value))
