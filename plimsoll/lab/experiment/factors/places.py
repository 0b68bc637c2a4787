"""Where a factor's key lies in lab.yml, and whether what is written under it keeps it. Pure."""

from typing import TYPE_CHECKING, Any

from plimsoll.lab.clones import driver_of
from plimsoll.lab.disks.emulated import EmulatedDisk
from plimsoll.lab.disks.folder import FolderDisk
from plimsoll.lab.experiment.factors.settings import EVERY, Value
from plimsoll.lab.experiment.together.members import full_name
from plimsoll.lab.names import OWN_DISK, PARTS
from plimsoll.lab.tuning.keys import AT_ONCE

if TYPE_CHECKING:
    from plimsoll.lab.experiment.settings import Backend

Place = tuple[str | int, ...]

_OWN: Place = ("backends", 0)
_OF_POOL = {"recordsize", "compression"}  # an emulated disk makes its pool with these
_SCENARIOS = "scenarios"


def set_level(said: dict[str, Any], backend: "Backend", key: str, value: Value) -> None:
    """Set `key` to `value` in `said`, a lab.yml as data, whose backend is `backend`. Raises ValueError."""
    for place in places(said, backend, key):
        node: Any = said
        for part in place[:-1]:
            if isinstance(part, str) and node.get(part) is None:
                node[part] = {}
            node = node[part]
        node[place[-1]] = value


def needs_own_clone(backend: "Backend", key: str) -> bool:
    """Return whether each level of `key` needs a clone that was made under it."""
    top, _, rest = key.partition(".")
    driver = driver_of(backend.clone)
    if top == "tuning":
        group, _, below = rest.partition(".")
        return group == "datasets" and below.rpartition(".")[2] not in AT_ONCE
    if top == "clone":
        return driver.is_ours and rest not in driver.at_start
    return top == "disk"


def places(said: dict[str, Any], backend: "Backend", key: str) -> list[Place]:
    """Return the places of `key` in `said`. Raises ValueError, which says what is missing or unknown."""
    top, _, rest = key.partition(".")
    if not rest:
        raise ValueError(f"{key} is no key that can be varied; see docs/factors.md")
    if top == "tuning":
        return _tuned(backend, rest)
    if top in ("disk", "clone"):
        if getattr(backend, top) is None:
            raise ValueError(f"{backend.name} has no {top}")
        return [(*_OWN, top, *rest.split("."))]
    if top == "saturator":
        if backend.saturator is None and not said.get("saturator"):
            raise ValueError(f"{backend.name} has no saturator: add one, or name the backends that have")
        return [(*(_OWN if backend.saturator else ()), "saturator", *rest.split("."))]
    if top == _SCENARIOS:
        name, _, below = rest.partition(".")
        found = _scenarios(said)
        if name not in found or not below:
            raise ValueError(f"{name} is not one of scenarios: {', '.join(found)}")
        return [(*found[name], *below.split("."))]
    raise ValueError(
        f"{top} is not varied: name a key below tuning, disk, clone, saturator or scenarios.NAME"
    )


def _scenarios(said: dict[str, Any]) -> dict[str, Place]:
    """Return where each scenario lies, by its name; a member of several together is called ENTRY/MEMBER."""
    found: dict[str, Place] = {}
    for i, entry in enumerate(said[_SCENARIOS]):
        called = str(entry.get("name") or entry.get("scenario"))
        found[called] = (_SCENARIOS, i)
        for j, member in enumerate(entry.get("together") or []):
            name = full_name(called, str(member.get("name") or member.get("scenario")))
            found[name] = (_SCENARIOS, i, "together", j)
    return found


def _tuned(backend: "Backend", rest: str) -> list[Place]:
    group, _, below = rest.partition(".")
    if group not in ("disks", "datasets"):
        return [(*_OWN, "tuning", *rest.split("."))]
    thing, _, name = below.rpartition(".")
    if thing != EVERY:
        if not thing:
            raise ValueError(
                f"tuning.{rest}: name one of its {group}, and then the key: {group}.NAME.{below}"
            )
        return [(*_OWN, "tuning", group, thing, name)]
    disk = backend.disk
    if (
        isinstance(disk, EmulatedDisk)
        and disk.filesystem == "zfs"
        and group == "datasets"
        and name in _OF_POOL
        and not any(part in backend.tuning.datasets for part in PARTS)
    ):
        return [(*_OWN, "disk", name)]
    named = list(getattr(backend.tuning, group))
    if isinstance(disk, EmulatedDisk) and not named and (group == "disks" or disk.filesystem == "zfs"):
        named = [OWN_DISK]
    if isinstance(disk, FolderDisk) and not named:
        named = list(disk.devices) if group == "disks" else [disk.dataset] if disk.dataset else []
    if not named:
        raise ValueError(
            f"{backend.name}: no {group} of it are known: name them in key (tuning.{group}.NAME.{name}), or "
            "name the backends that have them"
        )
    return [(*_OWN, "tuning", group, each, name) for each in named]
