"""The storage under a run, as it is compared with others: facts, clone, and what tuning set. Pure."""

import re
from collections.abc import Sequence

from plimsoll.rundir.models import Storage, TunedValue

_OF_ONE = re.compile(r"(disks|datasets)\.(.+)\.([a-z0-9_]+)")


def described(storage: Storage) -> dict[str, object]:
    """Return all that is known of `storage`, for `plimsoll.common.differences`."""
    return {
        "emulated": storage.emulated,
        "clone": storage.clone,
        **storage.facts,
        "tuning": tuned(storage.tuning),
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
