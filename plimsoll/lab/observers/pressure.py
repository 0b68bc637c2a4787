"""Pressure stall: the share of the time in which tasks waited for the processor, memory or a disk."""

from plimsoll.lab.observers.counters import Reading, number, rate
from plimsoll.lab.observers.observer import file_observer

RESOURCES = ("cpu", "io", "memory")
PATHS = tuple(f"/proc/pressure/{resource}" for resource in RESOURCES)
_PERCENT_OF_US = 100 / 1e6  # microseconds stalled a second → percent


def parse(text: str) -> dict[str, float]:
    """Return the total stall time in microseconds, of `some` and `full`."""
    found = {}
    for line in text.split("\n"):
        kind, *pairs = line.split() or [""]
        for pair in pairs:
            key, _, value = pair.partition("=")
            if key == "total" and kind in ("some", "full") and (total := number(value)) is not None:
                found[kind] = total
    return found


def read(texts: tuple[str, ...]) -> Reading:
    """Return the reading that `PATHS` give."""
    return {
        f"{resource} {kind}": total
        for resource, text in zip(RESOURCES, texts, strict=True)
        for kind, total in parse(text).items()
    }


# Of the processor `full` means nothing for a whole machine: the kernel prints 0.
COLUMNS = tuple(
    rate(f"{resource}_{kind}_percent", f"{resource} {kind}", _PERCENT_OF_US)
    for resource, kind in (
        ("cpu", "some"),
        ("io", "some"),
        ("io", "full"),
        ("memory", "some"),
        ("memory", "full"),
    )
)

OBSERVER = file_observer("pressure", COLUMNS, read, PATHS)
