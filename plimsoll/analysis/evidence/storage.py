"""The storage under a run, as it is compared with others: facts, clone, tuning and caches. Pure."""

import re
from collections.abc import Iterator, Sequence

from plimsoll.analysis.evidence.drive_facts import summed_up
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import RunEvidence
from plimsoll.common.units import listed
from plimsoll.rundir.facts import Storage, TunedValue

_COLD = ("cold", "default")  # by default caches are emptied too, as far as that touches nobody else's
_OF_ONE = re.compile(r"(disks|datasets)\.(.+)\.([a-z0-9_]+)")


def described(storage: Storage) -> dict[str, object]:
    """Return all that is known of `storage`, for `plimsoll.common.differences`."""
    return {
        "emulated": storage.emulated,
        "clone": storage.clone,
        **summed_up(storage.facts),
        "tuning": tuned(storage.tuning),
        **({"cache": storage.cache.state} if storage.cache else {}),
        **({"precondition": said.model_dump(exclude={"rounds"})} if (said := storage.precondition) else {}),
    }


def tuned(tuning: Sequence[TunedValue]) -> dict[str, str]:
    """Return what was set, by key; disks and datasets by their place, since each backend has its own.

    Words that stand for those of any backend, such as `@web`, stay.

    What was there before is left out: it is not what the run was under.
    """
    places: dict[tuple[str, str], int] = {}
    found = {}
    for value in tuning:
        key = value.key
        if (of_one := _OF_ONE.fullmatch(key)) and not of_one[2].startswith("@"):
            kind, name, setting = of_one.groups()
            place = places.setdefault((kind, name), 1 + sum(kind == other for other, _ in places))
            key = f"{kind}.{place}.{setting}"
        found[key] = value.set
    return found


def precondition_findings(runs: Sequence[RunEvidence], scenario: str) -> Iterator[Finding]:
    """Yield whether volumes were not steady, or some were filled and overwritten otherwise than others."""
    known = [(run, one.precondition) for run in runs if (one := run.directory.facts.storage)]
    restless = tuple(run.name for run, said in known if said and said.steady is False)
    if restless:
        text = f"{scenario}: the volume was not steady yet when {listed(restless)} began."
        yield Finding(FindingKind.NOT_STEADY, text, restless, scenario)
    ways = {said and (said.fill_percent, said.block_bytes, said.threads) for _, said in known}
    if len(ways) > 1:
        text = f"{scenario}: the volumes were not filled and overwritten alike before the runs."
        yield Finding(FindingKind.OTHER_PRECONDITION, text, tuple(run.name for run, _ in known), scenario)


def cache_findings(
    sides: Sequence[Sequence[RunEvidence]], names: Sequence[str], scenario: str
) -> Iterator[Finding]:
    """Yield whether the runs of sides that are called `names` (hostile) began with unlike caches.

    Runs that say nothing of their caches are left out.
    """
    found = [_cache_states(runs) for runs in sides]
    if len({"cold" if state in _COLD else state for states in found for state in states}) < 2:
        return
    said = [f"{name} {' and '.join(states)}" for name, states in zip(names, found, strict=True) if states]
    text = f"{scenario}: the runs did not begin with the same caches: {listed(said)}."
    yield Finding(FindingKind.OTHER_CACHES, text, tuple(run.name for runs in sides for run in runs), scenario)


def _cache_states(runs: Sequence[RunEvidence]) -> list[str]:
    """Return the states of the caches (hostile) at the start of `runs`, each once."""
    storages = (run.directory.facts.storage for run in runs)
    return list(dict.fromkeys(one.cache.state for one in storages if one and one.cache))
