"""What is wrong with a lab.yml, all of it at once: where, and what to do."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from plimsoll.common.errors import SettingsError
from plimsoll.common.units import size_text
from plimsoll.common.validation import Location, find_repeated, problems_of, read_model
from plimsoll.lab.clones import find_driver
from plimsoll.lab.clones.clone import needs_address
from plimsoll.lab.disks import find_disk_kind as disk_kind
from plimsoll.lab.disks import make_disk
from plimsoll.lab.disks.emulated import EmulatedDisk
from plimsoll.lab.experiment.design import (
    FACTOR_KEYS,
    VolumeChoice,
    apply_levels,
    count_variants,
    factors_of,
    filled_volumes,
    label_of,
    measured_volumes,
    needs_own_clone,
    variants,
)
from plimsoll.lab.experiment.labfile import (
    BACKEND,
    EVERY,
    LOCAL,
    MANUAL,
    ON_K6,
    REPLAY,
    SHORT,
    UPGRADES,
    Backend,
    Factor,
    Lab,
    Member,
    ScenarioChoice,
)
from plimsoll.lab.experiment.scenarios import TraitsByScenario, idle_options, location_of, read_traits
from plimsoll.lab.names import Label
from plimsoll.lab.observers import OBSERVERS
from plimsoll.lab.tuning.plan import problems as own_disk_problems

# In place of what is wrong, so that the rest of the file is checked too.
_CLONE = {"driver": "static", "target": "http://127.0.0.1"}
_STAND_INS: dict[str, Any] = {
    "name": "any",
    "backends.*.clone": _CLONE,
    "backends.*.disk": {"kind": "emulated", "filesystem": "zfs", "size_bytes": "8G"},
    "backends": [{"name": "any", "clone": _CLONE}],
    "scenarios": [{"scenario": "replay", "options": {"log": "any"}}],
}
_PLACED = re.compile(r": ([^:]+): (.*)", re.DOTALL)
MOST_VARIANTS = 256
_AUTHORS = frozenset({"save-article", "upload-images", "browser"})  # whom an upgrade of WordPress shuts out
Problems = Iterator[tuple[Location, str]]


def read_lab(path: Path) -> Lab:
    """Read and check `path`. Raises SettingsError with all problems."""
    return read_model(path, Lab, MANUAL, key_problems)


def read_checked(path: Path) -> tuple[Lab, TraitsByScenario]:
    """Return what `path` holds, and the traits of its scenarios. Raises SettingsError with all problems.

    Asks the scenarios themselves, which takes a second: `read_lab` reads a file that was checked before.
    """
    lab = read_model(path, Lab, MANUAL, all_problems, _STAND_INS)
    kinds = read_traits(lab, str(path))
    # What is without effect is known only of a file without mistakes, of which nothing was left out.
    idle = [
        *idle_keys(CheckedLab(lab, kinds)),
        *((at, why + _page(lab, at)) for at, why in idle_options(lab)),
    ]
    read_model(path, Lab, MANUAL, lambda _: iter(idle))
    return lab, kinds


def all_problems(lab: Lab) -> Problems:
    """Yield the problems between keys, and those of the scenarios' options: where, and what to do."""
    between = list(key_problems(lab))
    yield from between
    if any(at[0] in FACTOR_KEYS for at, _ in between):
        # The variants cannot be made; the options can be looked at without them.
        lab = lab.model_copy(update={"factors": [], "combinations": []})
    try:
        read_traits(lab, "")
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
    is_ours = not isinstance(place, int) or choice.members[place].scenario == REPLAY
    return "" if is_ours else " (see docs/scenarios.md)"


def key_problems(lab: Lab) -> Problems:
    """Yield the problems between keys: where, and what to do. Pure."""
    yield from find_repeated("backends", [backend.name for backend in lab.backends])
    yield from find_repeated("scenarios", [choice.called for choice in lab.scenarios])
    yield from find_repeated("hosts", [host.name for host in lab.hosts])
    for i, choice in enumerate(lab.scenarios):
        yield from ((("scenarios", i, *at), what) for at, what in _choice_problems(lab, choice))
    hosts = {LOCAL, *(host.name for host in lab.hosts)}
    for i, host in enumerate(lab.hosts):
        if host.name == LOCAL:
            yield ("hosts", i, "name"), f"{LOCAL} is this machine: choose another name"
    for i, backend in enumerate(lab.backends):
        at: Location = ("backends", i)
        if backend.host not in hosts:
            yield (*at, "host"), f"{backend.host} is not one of hosts: {', '.join(sorted(hosts))}"
        if find_driver(backend.clone).needs_disk and backend.disk is None:
            why = f"is missing: {backend.clone.driver} puts the clone on a disk (see docs/disks.md)"
            yield (*at, "disk"), why
        yield from (((*at, *where), what) for where, what in _disk_problems(backend))
    yield from _looks_problems(lab)
    yield from _fileio_problems(lab)
    yield from _precondition_problems(lab)
    yield from _cache_problems(lab)
    yield from _factor_problems(lab)


def _choice_problems(lab: Lab, choice: ScenarioChoice) -> Problems:
    if not choice.together:
        if choice.scenario is None:
            yield ("scenario",), "is missing: name a scenario, or several under together (see docs/lab.md)"
        elif choice.scenario in UPGRADES and lab.duration_s(choice) is not None:
            yield (
                ("phases",),
                f"{choice.scenario} ends by itself, so its phases cannot be of fixed lengths: write phases: "
                "{before_s: 0, during_s: null} in this entry, and the saturator works as long as the upgrade "
                "does, or put it under together with a crowd (see docs/lab.md)",
            )
        return
    if choice.scenario is not None:
        yield ("scenario",), "must be left out beside together, where each member has its own"
    if choice.options:
        yield ("options",), "must be left out beside together: give each member its own"
    if choice.name is None:
        yield ("name",), "is missing: what runs together needs a name, such as rush-hour"
    yield from _member_problems(choice.together, lab.duration_s(choice))


def _member_problems(members: Sequence[Member], lasts_s: float | None) -> Problems:
    """Yield why `members` cannot run together: where below the entry, and what to do.

    `lasts_s`: by the entry's phases; None where they leave it to the members when the run ends.
    """
    if len(members) == 1:
        yield ("together",), "has one member: give it two or more, or write its scenario without together"
    for at, text in find_repeated("together", [member.called for member in members]):
        yield at, f"{text}: give it another name"
    yield from _upgrade_problems(members)
    yield from _beginning_problems(members, lasts_s)
    if lasts_s is None and all(member.is_crowd for member in members):
        text = "during_s: null needs a member that ends by itself, and a crowd does not: give during_s"
        yield ("together",), text


def _beginning_problems(members: Sequence[Member], lasts_s: float | None) -> Problems:
    for i, member in enumerate(members):
        if not member.begin_s:
            continue
        at: Location = ("together", i, "begin_s")
        if member.is_crowd:
            yield at, f"{member.scenario} is the crowd, which is there before the others: leave begin_s out"
        elif member.scenario in ON_K6:
            yield at, f"{member.scenario} begins with the run, since k6 cannot wait: leave begin_s out"
        elif lasts_s is not None and member.begin_s >= lasts_s:
            yield at, f"is after the end of the run, which lasts {lasts_s:g} s with its warm-up: give less"


def _upgrade_problems(members: Sequence[Member]) -> Problems:
    upgrades: set[str] = set()
    for i, member in enumerate(members):
        at: Location = ("together", i, "scenario")
        if (upgraded := UPGRADES.get(member.scenario)) and member.scenario in upgrades:
            yield at, f"{upgraded} is already upgraded by another member, and a clone can be upgraded once"
        upgrades.add(member.scenario)
    for i, member in enumerate(members):
        if member.scenario in _AUTHORS and "upgrade-wordpress" in upgrades:
            yield (
                ("together", i, "scenario"),
                f"{member.scenario} cannot run beside upgrade-wordpress, which shuts authors out while it "
                "works: put one of them into another entry of scenarios",
            )


def _disk_problems(backend: Backend) -> Problems:
    """Yield what is wrong with a disk that is not the lab's to choose, and with the tuning of one."""
    driver, said = find_driver(backend.clone), backend.disk
    if said is not None and not driver.needs_disk:
        if driver.is_ours:
            yield ("disk",), f"must be left out: {driver.name} does not put the clone on a disk"
        elif disk_kind(said).is_made:
            yield ("disk",), f"must be a folder: {driver.name} is on a disk that exists"
    place = make_disk(said, Label("any"), "any").place() if said else None
    has = (bool(place and place.devices), bool(place and place.dataset), driver.has_parts)
    yield from ((("tuning", *at), what) for at, what in own_disk_problems(backend.tuning, *has))


def _looks_problems(lab: Lab) -> Problems:
    if "looks" in lab.model_fields_set and lab.order != "blocks":
        yield ("looks",), f"is for order: blocks, and order is {lab.order}: write that, or leave looks out"
    elif lab.looks == "blocks" and lab.repeats % 2:
        what = f"must be even with looks: blocks, as a block is two repeats: give {lab.repeats + 1}"
        yield ("repeats",), what


def _fileio_problems(lab: Lab) -> Problems:
    if (said := lab.fileio) is None or (choice := measured_volumes(lab)) is None:
        return
    yield from _volume_problems(lab, choice)
    for backend in lab.backends:
        disk = backend.disk
        if not isinstance(disk, EmulatedDisk) or not choice.is_chosen(backend):
            continue
        for part in said.parts:
            if disk.size_bytes < part.needed_bytes:
                yield (
                    ("fileio", "file_size") if part is said else ("fileio", "fsync", "file_size"),
                    f"{size_text(part.file_size)} does not fit on the disk of {backend.name} "
                    f"({size_text(disk.size_bytes)}): take less, or a larger disk",
                )


def _precondition_problems(lab: Lab) -> Problems:
    if (said := lab.precondition) is None or (choice := filled_volumes(lab)) is None:
        return
    yield from _volume_problems(lab, choice)
    if said.longest_s < said.round_s:
        yield ("precondition", "longest_s"), f"is shorter than one round ({said.round_s} s): give more"


def _volume_problems(lab: Lab, choice: VolumeChoice) -> Problems:
    backends = {backend.name: backend for backend in lab.backends}
    for i, name in enumerate(choice.named):
        at: Location = (choice.key, "backends", i)
        if name not in backends:
            yield at, f"{name} is not one of backends: {', '.join(backends)}"
        elif backends[name].disk is None:
            yield at, f"{name} has no disk to {choice.does}: give it one (see docs/disks.md), or leave it out"
    if not choice.named and not any(map(choice.is_chosen, lab.backends)):
        yield (
            (choice.key,),
            f"has no volume to {choice.does}: the lab puts no clone on a disk; name backends that have one "
            f"in {choice.key}.backends, or leave {choice.key} out",
        )


def _cache_problems(lab: Lab) -> Problems:
    """Yield the backends whose caches cannot be brought into the state that lab.yml asks for."""
    if lab.cache in (None, "as-is"):
        return
    for backend in lab.backends:
        driver = find_driver(backend.clone)
        if not driver.needs_disk:
            yield (
                ("cache",),
                f"{lab.cache} is not possible on {backend.name}: the lab does not know which caches a clone "
                f"by {driver.name} has, nor who shares them: write as-is, or leave it out",
            )
        elif lab.cache == "warm" and not driver.has_files:
            yield (
                ("cache",),
                f"warm is not possible on {backend.name}: only the guest itself can read the files in its "
                f"disk ({driver.name}): write cold or as-is, or leave it out",
            )


def _factor_problems(lab: Lab) -> Problems:
    if not lab.factors:
        if lab.combinations:
            yield ("combinations",), "requires factors to combine: add factors, or leave it out"
        return
    found = [*_factors(lab), *_combinations(lab)]
    if found:
        yield from found
        return
    if (count := count_variants(lab)) > MOST_VARIANTS:
        yield (
            ("factors",),
            f"{count:,} combinations of levels and backends are too many: at most {MOST_VARIANTS}; list "
            "those that you want in combinations",
        )
        return
    try:
        variants(lab)
    except ValidationError as error:
        yield from (
            (("factors",), f"do not fit together: {each.key}: {each.text}") for each in problems_of(error)
        )


def _factors(lab: Lab) -> Problems:
    repeated = dict(find_repeated("factors", [factor.name for factor in lab.factors]))
    backends = {backend.name for backend in lab.backends}
    for i, factor in enumerate(lab.factors):
        at: Location = ("factors", i)
        if factor.name == BACKEND:
            yield (*at, "name"), f"{BACKEND} is already a factor: give this one another name"
        if text := repeated.get((*at, "name")):
            yield (*at, "name"), text
        for j, name in enumerate(factor.backends):
            if name not in backends:
                yield (*at, "backends", j), f"{name} is not one of backends: {', '.join(sorted(backends))}"
        if factor.path is None:
            near = get_close_matches(factor.name.replace("-", "_"), SHORT, 1)
            hint = f"did you mean {near[0]}? Otherwise " if near else ""
            yield (
                (*at, "name"),
                f"{factor.name} is not known as a key by its name alone: {hint}say which key of lab.yml it "
                "sets in key (see docs/factors.md)",
            )
            continue
        labels = [label_of(factor.path, value) for value in factor.values]
        for j, label in enumerate(labels):
            if label in labels[:j]:
                yield (*at, "values", j), f"{label} is already factors.{i}.values.{labels.index(label)}"
        yield from _levels(lab, i, factor)


def _levels(lab: Lab, i: int, factor: Factor) -> Problems:
    """Try each level by itself on each backend."""
    said: set[tuple[Location, str]] = set()
    for number, backend in enumerate(lab.backends):
        if factor not in factors_of(lab, backend.name):
            continue
        key: Location = ("factors", i, "key" if factor.key else "name")
        if needs_own_clone(backend, factor.path or "") and not find_driver(backend.clone).is_ours:
            text = (
                f"{backend.name}: what is written keeps it, and {backend.clone.driver} does not create clones"
            )
            yield key, f"{text}: name the other backends in factors.{i}.backends"
            continue
        for j, value in enumerate(factor.values):
            found: list[tuple[Location, str]] = []
            try:
                apply_levels(lab, number, backend.name, [(factor, value)])
            except ValidationError as error:
                found = [
                    (key, _unfit(factor.path or "", backend.name))
                    if each.kind == "extra_forbidden"
                    else (("factors", i, "values", j), f"{label_of(factor.path or '', value)}: {each.text}")
                    for each in problems_of(error)
                ]
            except ValueError as error:
                found = [(key, str(error))]
            yield from (each for each in found if each not in said)
            said.update(found)


def _combinations(lab: Lab) -> Problems:
    factors = {factor.name: factor for factor in lab.factors}
    for i, combination in enumerate(lab.combinations):
        at: Location = ("combinations", i)
        for name, value in combination.items():
            if name not in factors:
                near = get_close_matches(name, factors, 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(factors)}"
                yield (*at, name), f"is not one of factors: {hint}"
            elif value not in factors[name].values:
                shown = ", ".join(map(str, factors[name].values))
                yield (*at, name), f"{value} is not one of the values of {name}: {shown}"
        if missing := [name for name in factors if name not in combination]:
            yield at, f"has no value for {', '.join(missing)}: give each factor one"


def _unfit(key: str, backend: str) -> str:
    """Return the sentence on a key that this backend, or every backend, lacks."""
    near = get_close_matches(key.rpartition(".")[2], SHORT, 1)
    meant = SHORT[near[0]].replace(f".{EVERY}.", ".NAME.") if near else key
    if near and near[0] == key.rpartition(".")[2]:
        return f"{backend} has no {key}: name the backends that have it in backends"
    hint = f"; did you mean {meant}?" if near else ""
    return f"{key} is not a known key{hint} (see docs/factors.md)"


_OF_POOLS = ("txg", "zpool", "poolwaits", "vdevs", "poolstate")
_OTHER_SITES = ("static", "qemu", "libvirt", "proxmox")


@dataclass(frozen=True)
class CheckedLab:
    """What decides whether a key has an effect: the whole file, and the traits of its scenarios."""

    lab: Lab
    kinds: TraitsByScenario


IsIdle = Callable[[CheckedLab, Any], bool]  # given the model that the key stands in, too


def _unless_observed(*names: str) -> IsIdle:
    return lambda of, _: set(names).isdisjoint(of.lab.observe.observe)


def _unless_sent_to(*sinks: str) -> IsIdle:
    return lambda _, saturator: saturator.kind == "backup" and saturator.sink.to not in sinks


def _is_linked(_: CheckedLab, clone: Any) -> bool:
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
        for name in (observer.name for observer in OBSERVERS if observer.own)
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
        "no page is read from a socket: give a path in status or opcache",
    ),
    (
        "site",
        lambda of, _: all(each.clone.driver in _OTHER_SITES for each in of.lab.backends),
        "only compose clones it, and no backend has that driver: write clone: {driver: compose} in one",
    ),
    (
        "saturator",
        lambda of, _: all(each.saturator for each in of.lab.backends),
        "each backend has its own: remove one of those",
    ),
    (
        "phases",
        lambda of, _: all(each.phases for each in of.lab.scenarios),
        "each scenario has its own: remove one of those",
    ),
    (
        "goal_ms",
        lambda of, _: not of.lab.factors,
        "it applies to the levels of a factor, and factors is missing: add factors",
    ),
    (
        "limits.retry_s",
        lambda _, limits: limits.failures == 1,
        "what failed once is not tried again: raise limits.failures",
    ),
    (
        "backends.*.clone.restore",
        lambda of, clone: clone.driver == "static" and not any(kind.changes for kind in of.kinds.values()),
        "no scenario changes the site: put what each run needs into reset",
    ),
    (
        "backends.*.clone.address",
        lambda _, clone: clone.driver == "qemu" and clone.bridge is not None,
        "no port is forwarded on a bridge: remove bridge",
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


def idle_keys(of: CheckedLab) -> Problems:
    """Yield the keys of a file without mistakes that have no effect: where, why, and what to do.

    Factors may change what stands in a backend or its saturator: where there are any, such keys are skipped.
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
