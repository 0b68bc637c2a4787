"""The use of the memory, from /proc/meminfo, and how much of it may be dirty, from /proc/vmstat."""

from plimsoll.lab.observers.counters import Column, Pair, Reading, gauge, number
from plimsoll.lab.observers.observer import file_observer

PATHS = ("/proc/meminfo", "/proc/vmstat")
_KIB = 1024
_SMALLEST_PAGE_BYTES = 4096
_LIMIT = "nr_dirty_threshold"


def parse(text: str) -> dict[str, float]:
    """Return the amounts in bytes by name; what is counted in anything but kB is left out."""
    found = {}
    for line in text.split("\n"):
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB" and (value := number(words[0])) is not None:
            found[name] = value * _KIB
    return found


def parse_pages(text: str) -> dict[str, float]:
    """Return the counts of /proc/vmstat, of which gauges are pages."""
    fields = (line.split(" ") for line in text.split("\n"))
    found = ((each[0], number(each[1])) for each in fields if len(each) == 2)
    return {name: value for name, value in found if value is not None}


def page_bytes(amounts: Reading, pages: Reading) -> int:
    """Return the size of a page, which neither file says: a power of two near free memory over free pages."""
    free, count = amounts.get("MemFree", 0.0), pages.get("nr_free_pages", 0.0)
    size = free / count if count else 0.0
    power = _SMALLEST_PAGE_BYTES
    while power * 1.4 < size:
        power *= 2
    return power


def read(texts: tuple[str, ...]) -> Reading:
    """Return the reading that `PATHS` give. The kernel's limit holds for what is dirty or being written."""
    amounts, pages = parse(texts[0]), parse_pages(texts[1])
    if amounts and _LIMIT in pages:
        amounts[_LIMIT] = pages[_LIMIT] * page_bytes(amounts, pages)
    return amounts


def _dirty_percent(pair: Pair) -> float | None:
    limit, dirty, writing = (pair.gauge(field) for field in (_LIMIT, "Dirty", "Writeback"))
    return None if not limit or dirty is None or writing is None else 100 * (dirty + writing) / limit


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
    gauge("dirty_limit_bytes", _LIMIT),
    Column("dirty_limit_percent", f"(Dirty + Writeback) / {_LIMIT}", _dirty_percent),
    gauge("slab_bytes", "Slab"),
    gauge("huge_bytes", "AnonHugePages"),
    Column("swap_used_bytes", "SwapTotal − SwapFree", _swap_used),
)

OBSERVER = file_observer("memory", COLUMNS, read, PATHS)
