"""The differences between facts, such as those of two hosts: JSON in, keys and values out. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence

# Names differ between any two backends and change nothing.
_NAMES = {"device", "pool", "dataset", "devices"}

Value = str | int | float | bool | None


def differing(facts: Sequence[object], expected: Collection[str] = ()) -> list[tuple[str, tuple[Value, ...]]]:
    """Return the keys such as `disks.1.scheduler` whose values differ, with those of each; None is unknown.

    Disks, pools and datasets are compared by their place in the list, the first being 1, not by name.
    `expected` are keys that should differ, or may: `disks` stands for everything below it, and
    `disks.scheduler` for that of each disk.
    """
    flat: list[Mapping[str, Value]] = [dict(_flat(each)) for each in facts]
    found = []
    for key in dict.fromkeys(key for each in flat for key in each):
        values = tuple(each.get(key) for each in flat)
        if any(value != values[0] for value in values) and not _is_beneath(key, expected):
            found.append((key, values))
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


def _is_beneath(key: str, expected: Collection[str]) -> bool:
    without_places = ".".join(part for part in key.split(".") if not part.isdigit())
    return any(
        shown == given or shown.startswith(f"{given}.")
        for given in expected
        for shown in (key, without_places)
    )
