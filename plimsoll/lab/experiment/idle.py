"""Keys of lab.yml that have no effect where they stand: when that is so, and what to do about it. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from plimsoll.common.validation import Location
from plimsoll.lab.clones.clone import needs_address
from plimsoll.lab.experiment.scenario_kinds import TraitsByScenario
from plimsoll.lab.experiment.settings import Lab

_OF_POOLS = ("txg", "zpool", "poolwaits", "vdevs", "poolstate")
_OTHER_SITES = ("static", "qemu", "libvirt", "proxmox")


@dataclass(frozen=True)
class Experiment:
    """What decides on it: the whole file, and what is known of its scenarios."""

    lab: Lab
    kinds: TraitsByScenario


IsIdle = Callable[[Experiment, Any], bool]  # given the model that the key stands in, too


def _unless_observed(*names: str) -> IsIdle:
    return lambda of, _: set(names).isdisjoint(of.lab.observe.observe)


def _unless_sent_to(*sinks: str) -> IsIdle:
    return lambda _, saturator: saturator.kind == "backup" and saturator.sink.to not in sinks


def _changes_nothing(of: Experiment, clone: Any) -> bool:
    return clone.driver == "static" and not any(kind.changes for kind in of.kinds.values())


def _is_linked(_: Experiment, clone: Any) -> bool:
    return not getattr(clone, "full", True)


_AT_ONCE = "no disk of a linked clone is copied: set full: true"
_OF_VZDUMP = "vzdump has no part in a backup to a repository: choose another sink"
_STORED = "a storage or repository compresses by itself: send it to null or a folder"

# Each key (`*`: of each entry), when it has no effect, and why, with what else to do than to leave it out.
IDLE_KEYS: list[tuple[str, IsIdle, str]] = [
    *(
        (
            f"observe.{name}",
            _unless_observed(name),
            f"the observer {name} does not run: add it to observe.observe",
        )
        for name in ("mariadb", "php", "fsync")
    ),
    (
        "observe.pools",
        _unless_observed(*_OF_POOLS),
        f"no observer of pools runs: add {', '.join(_OF_POOLS)} to observe.observe",
    ),
    (
        "observe.disks",
        lambda of, it: _unless_observed("diskstats")(of, it) and all(each.disk for each in of.lab.backends),
        "the observer diskstats does not run: add it to observe.observe",
    ),
    (
        "observe.php.fastcgi",
        lambda _, php: all(page.startswith("http") for page in (php.status, php.opcache or php.status)),
        "nothing is asked for at a socket: give a path in status or opcache",
    ),
    (
        "site",
        lambda of, _: all(each.clone.driver in _OTHER_SITES for each in of.lab.backends),
        "only compose clones it, and no backend has that driver: write clone: {driver: compose} in one",
    ),
    (
        "saturator",
        lambda of, _: all(each.saturator for each in of.lab.backends),
        "each backend has its own: take one of those out",
    ),
    (
        "phases",
        lambda of, _: all(each.phases for each in of.lab.scenarios),
        "each scenario has its own: take one of those out",
    ),
    (
        "goal_ms",
        lambda of, _: not of.lab.factors,
        "it is held against the levels of a factor, and there is none: add factors",
    ),
    (
        "limits.retry_s",
        lambda _, limits: limits.failures == 1,
        "what failed once is not tried again: raise limits.failures",
    ),
    (
        "backends.*.clone.restore",
        _changes_nothing,
        "no scenario changes the site: put what each run needs into reset",
    ),
    (
        "backends.*.clone.address",
        lambda _, clone: clone.driver == "qemu" and clone.bridge is not None,
        "no port is forwarded on a bridge: take bridge out",
    ),
    (
        "backends.*.clone.source",
        lambda _, clone: clone.driver == "libvirt" and not needs_address(clone.target, clone.connect_to),
        "no address is looked up: write ${address} in target or connect_to",
    ),
    ("backends.*.clone.copy_timeout_s", _is_linked, _AT_ONCE),
    ("backends.*.clone.bwlimit", _is_linked, _AT_ONCE),
    ("saturator.mode", _unless_sent_to("null", "folder", "storage"), _OF_VZDUMP),
    ("backends.*.saturator.mode", _unless_sent_to("null", "folder", "storage"), _OF_VZDUMP),
    ("saturator.compress", _unless_sent_to("null", "folder"), _STORED),
    ("backends.*.saturator.compress", _unless_sent_to("null", "folder"), _STORED),
]


def idle_keys(of: Experiment) -> Iterator[tuple[Location, str]]:
    """Yield the keys of a file without mistakes that have no effect: where, why, and what to do.

    Factors may change what stands in a backend or its saturator: where there are any, such keys are let be.
    """
    for key, is_idle, why in IDLE_KEYS:
        if of.lab.factors and key.startswith(("backends.", "saturator.")):
            continue
        for at, model in _places(of.lab, key.split(".")):
            if is_idle(of, model):
                yield at, f"has no effect: {why}, or leave it out"


def _places(model: Any, key: list[str], at: Location = ()) -> Iterator[tuple[Location, Any]]:
    """Yield each place at which the file says something under `key`, and the model that it stands in."""
    first, rest = key[0], key[1:]
    if isinstance(model, list):
        for i, each in enumerate(model):
            yield from _places(each, rest, (*at, i))
    elif isinstance(model, BaseModel) and first in model.model_fields_set:
        value = getattr(model, first)
        if rest:
            yield from _places(value, rest, (*at, first))
        elif value is not None:
            yield (*at, first), model
