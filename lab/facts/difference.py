"""What differs between two backends besides the one thing that should."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lab.facts.model import HostFacts

# What something is called differs between any two backends and changes nothing.
_NAMES = {"device", "pool", "dataset", "devices"}

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Difference:
    """One fact, by its key such as `disks.1.scheduler`, and what it is on either side; None is unknown."""

    key: str
    a: Value
    b: Value


def difference(a: HostFacts, b: HostFacts, besides: Collection[str] = ()) -> list[Difference]:
    """Return what differs, in the order of the facts.

    Disks, pools and datasets are compared by their place in the list, the first being 1, not by name.
    `besides` are keys that should differ, or may: `disks` stands for all beneath it, and `disks.scheduler`
    for that of each disk.
    """
    left, right = (dict(_flat(facts.model_dump(mode="json"))) for facts in (a, b))
    found = []
    for key in dict.fromkeys([*left, *right]):
        values = left.get(key), right.get(key)
        if values[0] != values[1] and not _is_beneath(key, besides):
            found.append(Difference(key, *values))
    return found


def _flat(value: object, key: str = "") -> Iterator[tuple[str, Value]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in _NAMES:
                yield from _flat(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for place, inner in enumerate(value, start=1):
            yield from _flat(inner, f"{key}.{place}")
    elif value is None or isinstance(value, str | int | float | bool):
        yield key, value


def _is_beneath(key: str, besides: Collection[str]) -> bool:
    without_places = ".".join(part for part in key.split(".") if not part.isdigit())
    return any(
        shown == given or shown.startswith(f"{given}.")
        for given in besides
        for shown in (key, without_places)
    )
