"""The use of the memory, from /proc/meminfo."""

from lab.observers.counters import Column, Pair, Reading, gauge, number
from lab.observers.observer import file_observer

PATHS = ("/proc/meminfo",)
_KIB = 1024


def parse(text: str) -> dict[str, float]:
    """Return the amounts in bytes by name; what is counted in anything but kB is left out."""
    found = {}
    for line in text.split("\n"):
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB" and (value := number(words[0])) is not None:
            found[name] = value * _KIB
    return found


def read(texts: tuple[str, ...]) -> Reading:
    """Return the reading that `PATHS` give."""
    return parse(texts[0])


def _swap_used(pair: Pair) -> float | None:
    total, free = pair.gauge("SwapTotal"), pair.gauge("SwapFree")
    return None if total is None or free is None else total - free


COLUMNS = (
    gauge("free_bytes", "MemFree"),
    gauge("available_bytes", "MemAvailable"),
    gauge("cached_bytes", "Cached"),
    gauge("buffers_bytes", "Buffers"),
    gauge("dirty_bytes", "Dirty"),
    gauge("writeback_bytes", "Writeback"),
    gauge("slab_bytes", "Slab"),
    gauge("huge_bytes", "AnonHugePages"),
    Column("swap_used_bytes", "SwapTotal − SwapFree", _swap_used),
)

OBSERVER = file_observer("memory", COLUMNS, read, PATHS)
