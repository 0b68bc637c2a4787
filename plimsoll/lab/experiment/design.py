"""The design of an experiment: variants, the rigs they share, volumes, and what an extension adds. Pure.

Variants of one backend share its disk and its clone, but where a level holds only for what is written under
it (record size, compression, the disk itself): for each such level there is a rig of its own. All rigs stand
side by side, so that runs can alternate between them freely.
"""

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from plimsoll.common.hostile import redact
from plimsoll.common.units import parse_size, size_text
from plimsoll.lab.clones import find_driver
from plimsoll.lab.disks.emulated import EmulatedDisk
from plimsoll.lab.disks.folder import FolderDisk
from plimsoll.lab.experiment.labfile import BACKEND, EVERY, Backend, Factor, Lab, Value, full_name
from plimsoll.lab.experiment.order import PlannedRun, draw_block, order_runs
from plimsoll.lab.names import OWN_DISK, PARTS
from plimsoll.lab.tuning.keys import AT_ONCE

_LONGEST_RIG = 16  # as a backend's name (names.labels)
_NONE = object()  # a key that is not there
_SHAPE_NO_RUN = ("limits", "order", "out", "goal_ms", "notify", "fileio")
_ENTRIES = ("backends", "scenarios", "hosts")  # lists of what has a name, and may grow
FACTOR_KEYS = ("factors", "combinations")
_LONGEST = 60  # of a variant's name: it is part of the name of a folder
_MB = 1_000_000
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_SAYS_LITTLE = re.compile(r"[0-9.-]+|on|off|default|no-limit|all|none")
_OF_POOL = {"recordsize", "compression"}  # an emulated disk makes its pool with these
_SCENARIOS = "scenarios"
Point = dict[str, Value]  # a value for each factor, by the factor's name
_KeyPath = tuple[str | int, ...]
_OWN: _KeyPath = ("backends", 0)


@dataclass(frozen=True)
class Variant:
    """A backend at one level of each factor.

    `name` is what runs call their backend; `rig` the backend in `lab`, a plain lab.yml with these levels,
    that they run on. `levels` are labels by factor, the backend's name among them; `all_levels` are those
    that are tried. Both are empty without factors.
    """

    name: str
    rig: str
    levels: dict[str, str]
    lab: Lab
    all_levels: dict[str, list[str]] = field(default_factory=dict)

    @property
    def backend(self) -> Backend:
        """The settings of its backend, at these levels."""
        return self.lab.backend(self.rig)


@dataclass(frozen=True)
class Design:
    """All runs in their order and the variants that they run on, both by name, and the lab.yml."""

    runs: dict[str, PlannedRun]
    variants: dict[str, Variant]
    lab: Lab

    @classmethod
    def of(cls, lab: Lab, extended: Sequence[PlannedRun] | None = None) -> "Design":
        """Return the design of `lab`; `extended` are its runs, where it was extended."""
        runs = {run.name: run for run in extended or plan_runs(lab)}
        return cls(runs, {variant.name: variant for variant in variants(lab)}, lab)

    def rig(self, run: PlannedRun) -> str:
        """Return the rig that `run` is done on."""
        return self.variants[run.backend].rig

    @property
    def rigs(self) -> dict[str, Variant]:
        """The first variant of each rig."""
        return {variant.rig: variant for variant in reversed(self.variants.values())}


def plan_runs(lab: Lab) -> list[PlannedRun]:
    """Return all runs of `lab` in their order. Pure."""
    names = [variant.name for variant in variants(lab)]
    scenarios = [choice.called for choice in lab.scenarios]
    return order_runs(names, scenarios, lab.repeats, lab.order, lab.seed, mixed=bool(lab.factors))


def extend_runs(runs: Sequence[PlannedRun], lab: Lab) -> list[PlannedRun]:
    """Return `runs`, followed by those that `lab` adds.

    Each round has one more repeat of each backend, forwards and backwards in turn, or two rounds are a block;
    a backend that lacks fewer repeats than another comes in as many rounds, evenly spread. A half block that
    the experiment ended with is completed first: of the six arrangements of a block, it can be four.
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
    block = max((run.block or 0 for run in runs), default=0)
    last = Counter((run.backend, run.scenario) for run in runs if run.block == block)
    halves = [(name, scenario) for name, n in counts.items() if n for scenario in scenarios]
    is_half = bool(last) and sorted(last) == sorted(halves) and set(last.values()) == {1}
    ordered: list[tuple[int | None, list[str]]] = []
    for i in range(rounds):
        around = [name for name, n in counts.items() if (i + 1) * n // rounds > i * n // rounds]
        if lab.order == "blocks" and len(counts) > 1:
            if (i + is_half) % 2 == 0:
                ordered.append((block := block + 1, around))
            else:
                ordered[-1:] = [(block, [*(ordered[-1][1] if i else []), *around])]
            continue
        if lab.order == "random":
            draw.shuffle(around)
        elif shared % 2:
            around.reverse()
        shared += len(around) > 1
        ordered.append((None, around))
    for number, around in ordered:
        for backend in draw_block(around, draw) if number else around:
            repeat, lacking = missing[backend].pop(0)
            found += [
                PlannedRun(len(found) + place, repeat, backend, scenario, number)
                for place, scenario in enumerate(lacking, 1)
            ]
    return found


def find_half_block(lab: Lab) -> str | None:
    """Return that the last repeat is a half block, and the remedy; None where it is whole."""
    if lab.order != "blocks" or lab.repeats % 2 == 0 or count_variants(lab) < 2:
        return None
    return (
        f"repeats: {lab.repeats} is odd, so the last run on each backend is half of a block, and enters no "
        f"verdict: give {lab.repeats + 1}"
    )


def late_backends(runs: Sequence[PlannedRun], further: Sequence[PlannedRun]) -> list[str]:
    """Return the new backends in `further`, where none of its runs are on a backend of `runs`."""
    old, new = ({run.backend for run in each} for each in (runs, further))
    return [] if old & new else sorted(new - old)


def variants(lab: Lab) -> list[Variant]:
    """Return all variants in the order of the file; without factors, one for each backend.

    Raises ValueError (pydantic's own too) for levels that cannot be set, which `factor_problems` names first.
    """
    levels = levels_in(lab)
    if not lab.factors:
        return [Variant(backend.name, backend.name, {}, lab) for backend in lab.backends]
    found: list[Variant] = []
    names, rigs = set[str](), {backend.name for backend in lab.backends}
    for at, backend in enumerate(lab.backends):
        factors = factors_of(lab, backend.name)
        called = _rigs(backend, factors, list_points(lab, backend.name), rigs)
        for point, rig in called:
            labels = {factor.name: label_of(factor.path or "", point[factor.name]) for factor in factors}
            name = make_unique(join_name(backend.name, labels.items()), names)
            names.add(name)
            plain = apply_levels(lab, at, rig, [(factor, point[factor.name]) for factor in factors])
            found.append(Variant(name, rig, {BACKEND: backend.name, **labels}, plain, levels))
    return found


def rigs_in(lab: Lab) -> dict[str, Variant]:
    """Return the first variant of each rig, by the rig's name: of what has to be made, and removed."""
    found: dict[str, Variant] = {}
    for variant in variants(lab):
        found.setdefault(variant.rig, variant)
    return found


def levels_in(lab: Lab) -> dict[str, list[str]]:
    """Return the labels of all levels by factor, in the order of the file; empty without factors."""
    if not lab.factors:
        return {}
    own = {
        factor.name: [label_of(factor.path or "", value) for value in factor.values] for factor in lab.factors
    }
    return {BACKEND: [backend.name for backend in lab.backends], **own}


def factors_of(lab: Lab, backend: str) -> list[Factor]:
    """Return the factors that are varied on a backend."""
    return [factor for factor in lab.factors if not factor.backends or backend in factor.backends]


def list_points(lab: Lab, backend: str) -> list[Point]:
    """Return the combinations of values on a backend: those that are listed, else all."""
    factors = factors_of(lab, backend)
    if not lab.combinations:
        names = [factor.name for factor in factors]
        return [
            dict(zip(names, values, strict=True))
            for values in itertools.product(*(factor.values for factor in factors))
        ]
    found: list[Point] = []
    for combination in lab.combinations:
        point = {factor.name: combination[factor.name] for factor in factors}
        if point not in found:
            found.append(point)
    return found


def count_variants(lab: Lab) -> int:
    """Return the number of variants without making them."""
    if lab.combinations:
        return len(lab.combinations) * len(lab.backends)
    return sum(
        math.prod(len(factor.values) for factor in factors_of(lab, backend.name)) for backend in lab.backends
    )


def apply_levels(lab: Lab, at: int, rig: str, levels: Sequence[tuple[Factor, Value]]) -> Lab:
    """Return a plain lab.yml of backend number `at`, called `rig`, at these levels. Raises ValueError."""
    said: dict[str, Any] = lab.model_dump(
        mode="json", exclude_unset=True, exclude={"factors", "combinations", "backends"}
    )
    own = lab.backends[at]
    said["backends"] = [own.model_dump(mode="json", exclude_unset=True) | {"name": rig}]
    for factor, value in levels:
        for place in _find_places(said, own, factor.path or ""):
            node: Any = said
            for part in place[:-1]:
                if isinstance(part, str) and node.get(part) is None:
                    node[part] = {}
                node = node[part]
            node[place[-1]] = value
    return Lab.model_validate(said)


def _rigs(
    backend: Backend, factors: Sequence[Factor], among: Sequence[Point], taken: set[str]
) -> list[tuple[Point, str]]:
    """Return each point with the name of its rig: the backend's own where one clone does for all."""
    kept = [factor for factor in factors if needs_own_clone(backend, factor.path or "")]
    labels = [tuple(label_of(factor.path or "", point[factor.name]) for factor in kept) for point in among]
    if len(set(labels)) == 1:
        return [(point, backend.name) for point in among]
    called: dict[tuple[str, ...], str] = {}
    for each in labels:
        if each not in called:
            whole = join_name(backend.name, zip((factor.name for factor in kept), each, strict=True))
            short = whole if len(whole) <= _LONGEST_RIG else backend.name[: _LONGEST_RIG - 3].rstrip("-")
            called[each] = make_unique(short, taken, _LONGEST_RIG)
            taken.add(called[each])
    return [(point, called[each]) for point, each in zip(among, labels, strict=True)]


def needs_own_clone(backend: Backend, key: str) -> bool:
    """Return whether each level of `key` needs a clone that was made under it."""
    top, _, rest = key.partition(".")
    driver = find_driver(backend.clone)
    if top == "tuning":
        group, _, below = rest.partition(".")
        return group == "datasets" and below.rpartition(".")[2] not in AT_ONCE
    if top == "clone":
        return driver.is_ours and rest not in driver.at_start
    return top == "disk"


def _find_places(said: dict[str, Any], backend: Backend, key: str) -> list[_KeyPath]:
    """Return the places of `key` in `said`, a lab.yml as data, whose one backend is `backend`.

    Raises ValueError, which says what is missing or unknown.
    """
    top, _, rest = key.partition(".")
    if not rest:
        raise ValueError(f"{key} cannot be varied; see docs/factors.md")
    if top == "tuning":
        return _find_tuned(backend, rest)
    if top in ("disk", "clone"):
        if getattr(backend, top) is None:
            raise ValueError(f"{backend.name} has no {top}")
        return [(*_OWN, top, *rest.split("."))]
    if top == "saturator":
        if backend.saturator is None and not said.get("saturator"):
            raise ValueError(f"{backend.name} has no saturator: add one, or name the backends that have one")
        return [(*(_OWN if backend.saturator else ()), "saturator", *rest.split("."))]
    if top == _SCENARIOS:
        name, _, below = rest.partition(".")
        found = _find_scenarios(said)
        if name not in found or not below:
            raise ValueError(f"{name} is not one of scenarios: {', '.join(found)}")
        return [(*found[name], *below.split("."))]
    raise ValueError(
        f"{top} is not varied: name a key below tuning, disk, clone, saturator or scenarios.NAME"
    )


def _find_scenarios(said: dict[str, Any]) -> dict[str, _KeyPath]:
    """Return where each scenario lies, by its name; a member of several together is called ENTRY/MEMBER."""
    found: dict[str, _KeyPath] = {}
    for i, entry in enumerate(said[_SCENARIOS]):
        called = str(entry.get("name") or entry.get("scenario"))
        found[called] = (_SCENARIOS, i)
        for j, member in enumerate(entry.get("together") or []):
            name = full_name(called, str(member.get("name") or member.get("scenario")))
            found[name] = (_SCENARIOS, i, "together", j)
    return found


def _find_tuned(backend: Backend, rest: str) -> list[_KeyPath]:
    """Return the places of a key below `tuning`: `*` stands for each of its disks, or datasets."""
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
            f"{backend.name}: its {group} are not known: name them in key (tuning.{group}.NAME.{name}), or "
            "name the backends that have them"
        )
    return [(*_OWN, "tuning", group, each, name) for each in named]


def label_of(key: str, value: Value) -> str:
    """Return a level as figures show it: `16K`, `180 MB/s`, `on`. `key` is what it is the value of."""
    if value is None:
        return "no limit" if key.endswith("_per_s") else "default"
    if isinstance(value, bool):
        return "on" if value else "off"
    if key.endswith("bytes_per_s"):
        return _rate(value)
    return f"{value:g}" if isinstance(value, int | float) and abs(value) < _MB else str(value)


def _rate(value: str | float) -> str:
    try:
        rate = parse_size(value) if isinstance(value, str) else int(value)
    except ValueError:
        return str(value)
    if rate % (1 << 20) and rate >= _MB // 10:
        return f"{rate / _MB:g} MB/s"
    return f"{size_text(rate)}/s"


def name_of(factor: str, label: str) -> str:
    """Return a level as part of a name: lower-case letters, digits and single hyphens."""
    name = _NOT_IN_NAMES.sub("-", label.lower()).strip("-") or "x"
    return f"{_NOT_IN_NAMES.sub('-', factor)}-{name}" if _SAYS_LITTLE.fullmatch(name) else name


def join_name(backend: str, labels: Iterable[tuple[str, str]]) -> str:
    """Return the name of a backend at levels (factor, label), not too long for the name of a folder."""
    return "-".join([backend, *(name_of(*each) for each in labels)])[:_LONGEST].rstrip("-")


def make_unique(name: str, taken: set[str], longest: int = _LONGEST) -> str:
    """Return `name`, with a number appended if it is `taken`."""
    found, number = name, 1
    while found in taken:
        number += 1
        end = f"-{number}"
        found = name[: longest - len(end)].rstrip("-") + end
    return found


@dataclass(frozen=True)
class VolumeChoice:
    """The volumes that a key of lab.yml is for: those that it names, or all where the lab puts a clone.

    `does` is what it does to a volume (measure), `leaves` what is reported of one that it leaves, `named` are
    the backends in it; `may` is what somebody allows who names a site that exists.
    """

    key: str
    does: str
    leaves: str
    may: str
    named: Sequence[str]

    def is_chosen(self, backend: Backend) -> bool:
        """Return whether the volume of `backend` is chosen: that of a site that exists if it is named."""
        if backend.disk is None:
            return False
        return backend.name in self.named if self.named else find_driver(backend.clone).is_ours

    def rigs(self, lab: Lab) -> list[str]:
        """Return the rigs whose volumes are chosen, in the order of the file."""
        return [
            rig
            for rig, variant in rigs_in(lab).items()
            if self.is_chosen(lab.backend(variant.levels.get(BACKEND, rig)))
        ]

    def left_out(self, lab: Lab) -> list[str]:
        """Return the backends that are not chosen where the key names none, each with the reason."""
        if self.named:
            return []
        return [
            f"{self.key} {self.leaves.format(backend.name)}: it has no disk in lab.yml"
            if backend.disk is None
            else f"{self.key} {self.leaves.format(backend.name)}, which exists: name it in "
            f"{self.key}.backends if {self.may}"
            for backend in lab.backends
            if not self.is_chosen(backend)
        ]


def measured_volumes(lab: Lab) -> VolumeChoice | None:
    """Return which volumes fileio measures; None where it measures none."""
    if lab.fileio is None:
        return None
    may = "test files may be written there"
    return VolumeChoice("fileio", "measure", "does not measure {}", may, lab.fileio.backends)


def filled_volumes(lab: Lab) -> VolumeChoice | None:
    """Return which volumes are filled and overwritten before the runs; None where none is."""
    if lab.precondition is None:
        return None
    may = "its volume may be filled"
    return VolumeChoice("precondition", "fill", "leaves {} as it is", may, lab.precondition.backends)


def measured_rigs(lab: Lab) -> list[str]:
    """Return the rigs whose volumes are measured, in the order of the file. Pure."""
    return choice.rigs(lab) if (choice := measured_volumes(lab)) else []


def preconditioned_rigs(lab: Lab) -> list[str]:
    """Return the rigs whose volumes are filled, in the order of the file. Pure."""
    return choice.rigs(lab) if (choice := filled_volumes(lab)) else []


def left_out(lab: Lab) -> list[str]:
    """Return what keys of lab.yml leave out by themselves, each with the reason."""
    choices = (filled_volumes(lab), measured_volumes(lab))
    return [sentence for choice in choices if choice for sentence in choice.left_out(lab)]


@dataclass(frozen=True)
class KeyChange:
    """A changed key of lab.yml. `refusal` says why it is not taken over, and what to do.

    A value of None: the key is absent.
    """

    key: str
    before: Any
    now: Any
    refusal: str | None

    @property
    def sentence(self) -> str:
        """Key and both values, as people write them."""
        now, before = _describe_value(self.now), _describe_value(self.before)
        return f"{self.key}: {now} in the file, {before} in this experiment"


def find_key_changes(before: Lab, now: Lab) -> list[KeyChange]:
    """Return what differs, key by key; a backend, scenario or host that is new is one change."""
    found = list(_changes(_by_name(before), _by_name(now), ""))
    if not any(change.key in FACTOR_KEYS for change in found):
        return found
    # Further levels are welcome where all combinations are still there, and mean what they meant.
    there = {variant.name: variant for variant in variants(now)}
    kept = all(
        (other := there.get(each.name)) is not None
        and each.rig == other.rig
        and not any(change.refusal for change in find_key_changes(each.lab, other.lab))
        for each in variants(before)
    )
    return [
        replace(change, refusal=None) if change.key in FACTOR_KEYS and kept else change for change in found
    ]


def _changes(before: Mapping[str, Any], now: Mapping[str, Any], at: str) -> Iterator[KeyChange]:
    for name in dict.fromkeys((*before, *now)):
        key = f"{at}.{name}" if at else name
        old, new = before.get(name, _NONE), now.get(name, _NONE)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _changes(old, new, key)
        else:
            one, other = (None if value is _NONE else value for value in (old, new))
            yield KeyChange(key, one, other, _refusal(key, one, other))


def _refusal(key: str, before: Any, now: Any) -> str | None:
    """Return why old and new runs would not be comparable, and the remedy."""
    kind, _, rest = key.partition(".")
    if kind in _SHAPE_NO_RUN:
        return None
    if kind in _ENTRIES and rest and "." not in rest:
        return None if before is None else "its runs are part of this experiment: put it back"
    if kind == "repeats":
        return None if now > before else f"planned runs stay: give {before} or more"
    if kind in _ENTRIES:
        return (
            "runs before and after it could not be compared: put it back, and give what is changed a name of "
            "its own beside it"
        )
    return "runs before and after it could not be compared: put it back, or start a new experiment"


def _by_name(lab: Lab) -> dict[str, Any]:
    """Return the settings by name: the order in the file has no meaning."""
    data = lab.model_dump(mode="json")
    data["backends"] = {entry["name"]: entry for entry in data["backends"]}
    data["hosts"] = {entry["name"]: entry for entry in data["hosts"]}
    called = [choice.called for choice in lab.scenarios]
    data["scenarios"] = dict(zip(called, data["scenarios"], strict=True))
    return data


def _describe_value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return "there"
    return redact(str(value))
