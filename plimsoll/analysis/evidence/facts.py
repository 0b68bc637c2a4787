"""Facts that runs record, compared between the sides and among the runs of each, by one table. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from plimsoll.analysis.evidence.answers import cache_findings
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.generator import load_facts
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.evidence.storage import (
    Value,
    cache_state,
    described,
    differing,
    flat,
    is_beneath,
    overwritten,
    tuned,
)
from plimsoll.common.units import listed
from plimsoll.rundir.facts import Storage

_MOST_NAMED = 3
_MOST_VALUES = 3
_ALIKE = 1.05  # figures that are no further apart than this are the same: memory differs from boot to boot
# Connections are of a kind in over `_WITH` of the answers or under `_WITHOUT`; between, it is unknown. Of a
# slow server clients open more connections, and so use a lower share of them again, but not none.
_WITH, _WITHOUT, _LEAST_ANSWERS = 0.20, 0.02, 50
_EPHEMERAL = 32768  # from here on the system chose it: origins and clones have another port each run
_LOOPBACK = ("localhost", "::1", "127.")
_HOST = ("cpu", "cpus", "memory_bytes")
# What storage is, and may differ between the sides, as it is what is compared; all else should be the same.
_OF_CLONES = (
    *("folder", "data", "dataset", "emulated", "disk", "name", "target", "storage", "full", "format"),
    *("bwlimit", "limits", "restore", "volumes", "volblocksize", "cache"),
)
_OF_STORAGE = (
    *("emulated", "tuning", "disks", "pools", "volume"),
    *("datasets.part", "arc_c_min_bytes", "arc_c_max_bytes"),
    *(f"clone.{key}" for key in _OF_CLONES),
)
_HAS_OTHER_FACTS = ("cache", "precondition", "tuning", *_HOST)  # of `described`, these have rows of their own
_MOVING = ("datasets.compress_ratio", "disks.drive")  # what a run changes by what it writes

Facts = Mapping[str, Value]
Difference = tuple[str, tuple[Value, Value]]


@dataclass(frozen=True)
class Fact:
    """What runs record, and which finding it is where they differ in it; None where they may.

    `read` returns values by key (hostile); what is absent or None is unknown, and differs from nothing.
    `within`: the runs of one side differ among themselves. `between`: the sides differ.
    """

    says: str
    read: Callable[[MeasuredRun], Facts]
    within: FindingKind | None
    between: FindingKind | None


def fact_findings(
    sides: Sequence[Sequence[MeasuredRun]], names: Sequence[str], scenario: str
) -> Iterator[Finding]:
    """Yield in which facts the runs of a scenario differ, on sides that are called `names` (hostile).

    Words differ where they are not equal, figures where they are over 5 % apart. Between the sides, the
    medians of figures are compared, and all words of one side with all of the other.
    """
    for fact in FACTS:
        known = [[fact.read(run) for run in runs] for runs in sides]
        mixed: dict[str, set[int]] = {}
        apart: dict[str, set[int]] = {}
        keys = list(dict.fromkeys(key for side in known for facts in side for key in facts))
        values = {key: [_known(facts.get(key) for facts in side) for side in known] for key in keys}
        for key, by_side in values.items():
            of_one = {place for place, found in enumerate(by_side) if not _are_alike(found)}
            if of_one and fact.within:
                mixed[key] = of_one
            elif fact.between and not _are_alike_sides([found for found in by_side if found]):
                apart[key] = set(range(len(sides)))
        for kind, different in ((fact.within, mixed), (fact.between, apart)):
            if kind and different:
                places = sorted(set().union(*different.values()))
                runs = tuple(run.name for place in places for run in sides[place])
                text = _describe(different, values, names)
                yield Finding(kind, f"{scenario}: {fact.says}: {text}.", runs, scenario)
    for place in range(1, len(sides)):
        yield from _find_one_storage((sides[0], sides[place]), (names[0], names[place]), scenario)
    yield from cache_findings(sides, names, scenario)


def _known(values: Iterable[Value]) -> list[Value]:
    return [value for value in values if value is not None]


def _are_alike(values: Sequence[Value]) -> bool:
    if all(map(_is_figure, values)):
        figures = [value for value in values if _is_figure(value)]
        return not figures or max(figures) <= _ALIKE * min(figures) or max(figures) == min(figures)
    return len(set(map(str, values))) < 2


def _are_alike_sides(sides: Sequence[Sequence[Value]]) -> bool:
    if all(_is_figure(value) for side in sides for value in side):
        return _are_alike([median(filter(_is_figure, side)) for side in sides])
    return len({frozenset(map(str, side)) for side in sides}) < 2


def _is_figure(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _describe(
    different: Mapping[str, set[int]], values: Mapping[str, Sequence[Sequence[Value]]], names: Sequence[str]
) -> str:
    """Return the values of some keys (hostile) on those sides on which they differ."""
    described = []
    for key, places in list(different.items())[:_MOST_NAMED]:
        found = {names[place]: dict.fromkeys(map(str, values[key][place])) for place in sorted(places)}
        said = [f"{name} {' / '.join(each)}" for name, each in found.items() if each]
        described.append(f"{key} ({', '.join(said)})" if key else listed(said))
    more = len(different) - _MOST_NAMED
    return listed([*described, *([f"{more} more"] if more > 0 else [])])


def _find_one_storage(
    sides: tuple[Sequence[MeasuredRun], Sequence[MeasuredRun]], names: tuple[str, str], scenario: str
) -> Iterator[Finding]:
    """Yield that two backends are one: nothing that is known of their storage differs, not even its names.

    Disks and a folder or dataset must be known. Machines of one make tell themselves apart by their serial
    numbers, or by the address of the target. What was tuned otherwise, or is another level of a factor, is
    compared on one disk on purpose.
    """
    backends = [{run.directory.facts.backend for run in runs} for runs in sides]
    places = [{_identity(run) for run in runs} for runs in sides]
    if None in places[0] | places[1] or len(places[0]) != 1 or places[0] != places[1]:
        return
    if backends[0] == backends[1]:
        return  # before and after a change of one backend
    runs = tuple(run.name for side in sides for run in side)
    text = f"{scenario}: {names[0]} and {names[1]} lay on one disk, in one pool and folder."
    yield Finding(FindingKind.ONE_STORAGE, text, runs, scenario)


def _identity(run: MeasuredRun) -> str | None:
    facts, storage = run.directory.facts, run.directory.facts.storage
    disks, place = _disks(run), _place(run)
    if storage is None or not disks or not {"folder", "datasets"} & place.keys():
        return None
    where = {} if "serials" in disks else {"host": (_address(run) or ("", "", ""))[1]}
    settings = dict(flat({**described(storage), "cache": None, "precondition": None}))
    steady = {
        key: value for key, value in settings.items() if not is_beneath(key, (*_MOVING, "clone.target"))
    }
    other = {key: level for key, level in (facts.factors or {}).items() if key != "backend"}
    return repr([sorted(each.items()) for each in (disks, _pools(run), place, where, steady, other)])


def _target(run: MeasuredRun) -> Facts:
    """Return where the load went, without ports that the system chose; a clone's own address may change."""
    clone = _storage(run).clone
    found = _address(run) if clone.get("driver", "static") == "static" else None
    return {"": f"{found[0]}://{found[1]}{found[2]}"} if found else {}


def _resolved(run: MeasuredRun) -> Facts:
    """Return the addresses that a target's name stood for; a clone's own may change."""
    target = run.directory.facts.target
    if not _target(run) or target is None or target.connect_to:
        return {}
    return {"": _joined({address.rpartition(":")[0] for address in target.addresses})}


def _address(run: MeasuredRun) -> tuple[str, str, str] | None:
    """Return a target's scheme, host and port (hostile)."""
    target = run.directory.facts.target
    if target is None:
        return None
    try:
        url = urlsplit(target.url)
        at = urlsplit(f"//{target.connect_to}") if target.connect_to else url
        port = at.port
    except ValueError:
        return None
    return url.scheme, at.hostname or "", f":{port}" if port and port < _EPHEMERAL else ""


def _storage(run: MeasuredRun) -> Storage:
    return run.directory.facts.storage or Storage()


def _listed_facts(run: MeasuredRun, kind: str) -> list[Mapping[str, object]]:
    each = _storage(run).facts.get(kind)
    return [one for one in each if isinstance(one, dict)] if isinstance(each, list) else []


def _joined(words: Iterable[object]) -> str | None:
    return ", ".join(sorted(map(str, filter(None, words)))) or None


def _disks(run: MeasuredRun) -> Facts:
    disks = _listed_facts(run, "disks")
    models = [
        f"{disk.get('model') or disk.get('device')} {disk.get('size_bytes') or ''}".rstrip() for disk in disks
    ]
    found = {"serials": _joined(disk.get("serial") for disk in disks), "disks": _joined(models)}
    return {key: value for key, value in found.items() if value}


def _pools(run: MeasuredRun) -> Facts:
    return {"": _joined(pool.get("pool") for pool in _listed_facts(run, "pools"))}


def _place(run: MeasuredRun) -> Facts:
    clone = _storage(run).clone
    found = {key: str(clone[key]) for key in ("folder", "disk", "storage") if clone.get(key)}
    datasets = _joined(one.get("dataset") for one in _listed_facts(run, "datasets"))
    return {**found, **({"datasets": datasets} if datasets else {})}


def _host(run: MeasuredRun) -> Facts:
    return {key: value for key, value in flat(_storage(run).facts) if key in _HOST}


def _surroundings(run: MeasuredRun) -> Facts:
    return {key: value for key, value in _other_facts(run) if not is_beneath(key, _OF_STORAGE)}


def _of_storage(run: MeasuredRun) -> Facts:
    return {
        key: value
        for key, value in _other_facts(run)
        if is_beneath(key, _OF_STORAGE) and not key.startswith("clone.")
    }


def _tuning(run: MeasuredRun) -> Facts:
    if (storage := run.directory.facts.storage) is None:
        return {}
    return {"": ", ".join(f"{key} {value}" for key, value in tuned(storage.tuning).items()) or "as it was"}


def _other_facts(run: MeasuredRun) -> Iterator[tuple[str, Value]]:
    """Yield all facts of storage and host that have no row of their own, and were not set on purpose."""
    storage, factors = run.directory.facts.storage, run.directory.facts.factors or {}
    if storage is None:
        return
    declared = {*factors, *(key.rpartition(".")[2] for key in tuned(storage.tuning))}
    for key, value in flat(described(storage)):
        is_declared = any(name in key for name in declared)
        if not is_beneath(key, (*_HAS_OTHER_FACTS, *_MOVING)) and not is_declared:
            yield key, value


def _versions(run: MeasuredRun) -> Facts:
    facts = run.directory.facts
    settings = facts.load.settings if facts.load else {}
    said = {key: str(value) for key, value in settings.items() if key.endswith("version") and value}
    program = facts.program.model_dump(exclude={"name"}, exclude_none=True)
    return {**said, **{key: str(value) for key, value in program.items()}}


def _software(run: MeasuredRun) -> Facts:
    said = run.directory.facts.server_software
    return {"Server": _joined(said.server), "X-Powered-By": _joined(said.x_powered_by)} if said else {}


def _generator(run: MeasuredRun) -> Facts:
    facts = run.directory.facts
    cores = facts.sender.cores if facts.sender else None
    instances = len(facts.merged.of) if facts.merged else 1
    return {**facts.host.model_dump(), "cores it might use": cores, "instances": instances}


def _clients(run: MeasuredRun) -> Facts:
    clients = run.directory.facts.clients
    return {"clients": clients.counted, "spread_over": clients.spread_over} if clients else {}


def _network(run: MeasuredRun) -> Facts:
    found, sender = _address(run), run.directory.facts.sender
    return {
        "loopback": found[1].startswith(_LOOPBACK) if found else None,
        "on the generator's machine": sender.beside_server if sender else None,
    }


def _connections(run: MeasuredRun) -> Facts:
    """Return which connections the answers came over: `yes`, `no`, or unknown where it is neither."""
    seen = run.connections
    if seen.answers < _LEAST_ANSWERS or run.directory.facts.from_log:
        return {}
    shares = {
        name: count / seen.answers
        for name, count in (("kept open", seen.reused), ("HTTP/2", seen.http2), ("TLS", seen.tls))
    }
    return {
        name: "yes" if share > _WITH else "no"
        for name, share in shares.items()
        if share > _WITH or share < _WITHOUT
    }


def _are_known(run: MeasuredRun) -> Facts:
    storage = _storage(run)
    return {
        "storage and its host": "known" if storage.facts else "unknown",
        "caches at the start": "known" if storage.cache else "unknown",
        "what the host did": "known" if (run.directory.path / "host.csv").exists() else "unknown",
    }


_MIXED, _OTHER = FindingKind.MIXED_SIDE, FindingKind.OTHER_CIRCUMSTANCES
FACTS = (
    Fact("the runs of one side had different targets", _target, _MIXED, None),
    Fact("the runs of one side were on different disks", _disks, _MIXED, None),
    Fact("the runs of one side were in different pools", _pools, _MIXED, None),
    Fact("the runs of one side were in different folders", _place, _MIXED, None),
    Fact("the server's machine was not the same", _host, _MIXED, _OTHER),
    Fact(
        "the answers did not come in the same way",
        _connections,
        FindingKind.OTHER_CONNECTIONS,
        FindingKind.OTHER_CONNECTIONS,
    ),
    Fact(
        "the runs did not begin with the same caches",
        lambda run: {"": cache_state(_storage(run))},
        FindingKind.OTHER_CACHES,
        FindingKind.OTHER_CACHES,
    ),
    Fact(
        "the volumes were not filled and overwritten alike before the runs",
        lambda run: {"": overwritten(run.directory.facts.storage)},
        FindingKind.OTHER_PRECONDITION,
        FindingKind.OTHER_PRECONDITION,
    ),
    Fact("the storage of one side was not tuned alike in all its runs", _tuning, _OTHER, None),
    Fact("the storage of one side was not set up alike in all its runs", _of_storage, _OTHER, None),
    Fact("more than the storage differs", _surroundings, _OTHER, _OTHER),
    Fact("the way to the server was not the same", _network, _OTHER, _OTHER),
    Fact("the target's name did not always lead to one address", _resolved, _OTHER, None),
    Fact("the servers called themselves otherwise", _software, _OTHER, _OTHER),
    Fact("the log's clients were not as many", _clients, None, _OTHER),
    Fact("programs had different versions", _versions, FindingKind.OTHER_VERSION, FindingKind.OTHER_VERSION),
    Fact(
        "the load came from different machines",
        _generator,
        FindingKind.OTHER_GENERATOR,
        FindingKind.OTHER_GENERATOR,
    ),
    Fact("facts are missing on one side", _are_known, None, FindingKind.UNKNOWN_FACTS),
)


def find_differences(baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]) -> list[Difference]:
    """Return the keys whose values differ between the sides, with both (hostile); None is unknown.

    Where the runs of a side differ among themselves, its value names those that there are.
    """
    return [*_compare_circumstances(baseline, candidate), *_compare_storages(baseline, candidate)]


def _compare_circumstances(
    baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]
) -> list[Difference]:
    return _compare([_circumstances(run) for run in baseline], [_circumstances(run) for run in candidate])


def _circumstances(run: MeasuredRun) -> dict[str, Any]:
    facts = run.directory.facts
    return {
        "target": facts.target and (facts.target.connect_to or facts.target.url),
        "program": facts.program.model_dump(),
        "generator": facts.host.model_dump(),
        "beside_server": facts.sender and facts.sender.beside_server,
        "load": load_facts(run),
    }


def _compare_storages(baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]) -> list[Difference]:
    sides = [
        [described(one) for run in side if (one := run.directory.facts.storage)]
        for side in (baseline, candidate)
    ]
    if not all(sides):
        known = ["read by the lab" if side else None for side in sides]
        return [("storage", (known[0], known[1]))] if any(sides) else []
    of_first = differing([side[0] for side in sides])
    steady = {key for key, _ in differing([side[0] for side in sides], expected=_MOVING)}
    moving = [(key, (values[0], values[1])) for key, values in of_first if key not in steady]
    return [*_compare(sides[0], sides[1], _MOVING), *moving]


def _compare(
    baseline: Sequence[object], candidate: Sequence[object], expected: Sequence[str] = ()
) -> list[Difference]:
    found = []
    for key, values in differing([*baseline, *candidate], expected):
        one, other = set(values[: len(baseline)]), set(values[len(baseline) :])
        if one != other:
            found.append((key, (_sum_up(one), _sum_up(other))))
    return found


def _sum_up(values: set[Value]) -> Value:
    if len(values) == 1:
        return next(iter(values))
    shown = sorted("unknown" if value is None else str(value) for value in values)
    more = f" and {len(shown) - _MOST_VALUES} more" if len(shown) > _MOST_VALUES else ""
    return f"{' or '.join(shown[:_MOST_VALUES])}{more}"
