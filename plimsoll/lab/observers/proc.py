"""The observers `cpu`, `pressure` and `memory`: what Linux says in /proc of a whole machine.

They read files that every host has, and are the ones to copy.
"""

from plimsoll.lab.observers.observer import Column, Reading, ReadingPair, file_observer, gauge, number, rate

# cpu: the use of all processors' time together
CPU_PATHS = ("/proc/stat",)
# The kernel counts guest time in user time as well, so the first eight make the whole.
_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_ALONE = ("ctxt", "procs_running", "procs_blocked")


def parse_cpu(text: str) -> dict[str, float]:
    """Return ticks by state, and the counters that stand alone."""
    found: dict[str, float] = {}
    for line in text.split("\n"):
        name, *values = line.split() or [""]
        if name == "cpu":
            for state, word in zip(_STATES, values, strict=False):
                if (ticks := number(word)) is not None:
                    found[state] = ticks
        elif name in _ALONE and len(values) == 1 and (value := number(values[0])) is not None:
            found[name] = value
    if all(state in found for state in _STATES):
        found["all"] = sum(found[state] for state in _STATES)
    return found


def _share(name: str, *states: str) -> Column:
    def percent(pair: ReadingPair) -> float | None:
        deltas = [pair.delta(state) for state in states]
        spent = sum(delta for delta in deltas if delta is not None)
        return None if None in deltas else pair.ratio(100 * spent, pair.delta("all"))

    return Column(name, f"{' + '.join(states)} / all", percent)


CPU_COLUMNS = (
    _share("user_percent", "user", "nice"),
    _share("system_percent", "system", "irq", "softirq"),
    _share("iowait_percent", "iowait"),  # the kernel's count falls now and then: that second is missing
    _share("steal_percent", "steal"),
    _share("idle_percent", "idle"),
    rate("context_switches_per_s", "ctxt"),
    gauge("runnable_count", "procs_running"),
    gauge("blocked_count", "procs_blocked"),
)

CPU = file_observer("cpu", CPU_COLUMNS, lambda texts: parse_cpu(texts[0]), CPU_PATHS)


# pressure: the share of the time in which tasks waited for the processor, memory or a disk
RESOURCES = ("cpu", "io", "memory")
PRESSURE_PATHS = tuple(f"/proc/pressure/{resource}" for resource in RESOURCES)
_PERCENT_OF_US = 100 / 1e6  # microseconds stalled a second → percent


def parse_pressure(text: str) -> dict[str, float]:
    """Return the total stall time in microseconds, of `some` and `full`."""
    found = {}
    for line in text.split("\n"):
        kind, *pairs = line.split() or [""]
        for pair in pairs:
            key, _, value = pair.partition("=")
            if key == "total" and kind in ("some", "full") and (total := number(value)) is not None:
                found[kind] = total
    return found


def read_pressure(texts: tuple[str, ...]) -> Reading:
    """Return the reading that `PRESSURE_PATHS` give."""
    return {
        f"{resource} {kind}": total
        for resource, text in zip(RESOURCES, texts, strict=True)
        for kind, total in parse_pressure(text).items()
    }


# Of the processor `full` means nothing for a whole machine: the kernel prints 0.
PRESSURE_COLUMNS = tuple(
    rate(f"{resource}_{kind}_percent", f"{resource} {kind}", _PERCENT_OF_US)
    for resource, kind in (
        ("cpu", "some"),
        ("io", "some"),
        ("io", "full"),
        ("memory", "some"),
        ("memory", "full"),
    )
)

PRESSURE = file_observer("pressure", PRESSURE_COLUMNS, read_pressure, PRESSURE_PATHS)


# memory: its use, and how much of it may be dirty
MEMORY_PATHS = ("/proc/meminfo", "/proc/vmstat")
_KIB = 1024
_SMALLEST_PAGE_BYTES = 4096
_LIMIT = "nr_dirty_threshold"


def parse_meminfo(text: str) -> dict[str, float]:
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


def read_memory(texts: tuple[str, ...]) -> Reading:
    """Return the reading that `MEMORY_PATHS` give.

    The kernel's limit holds for what is dirty or being written.
    """
    amounts, pages = parse_meminfo(texts[0]), parse_pages(texts[1])
    if amounts and _LIMIT in pages:
        amounts[_LIMIT] = pages[_LIMIT] * page_bytes(amounts, pages)
    return amounts


def page_bytes(amounts: Reading, pages: Reading) -> int:
    """Return the size of a page, which neither file says: a power of two near free memory over free pages."""
    free, count = amounts.get("MemFree", 0.0), pages.get("nr_free_pages", 0.0)
    size = free / count if count else 0.0
    power = _SMALLEST_PAGE_BYTES
    while power * 1.4 < size:
        power *= 2
    return power


def _dirty_percent(pair: ReadingPair) -> float | None:
    limit, dirty, writing = (pair.gauge(field) for field in (_LIMIT, "Dirty", "Writeback"))
    return None if not limit or dirty is None or writing is None else 100 * (dirty + writing) / limit


def _swap_used(pair: ReadingPair) -> float | None:
    total, free = pair.gauge("SwapTotal"), pair.gauge("SwapFree")
    return None if total is None or free is None else total - free


MEMORY_COLUMNS = (
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

MEMORY = file_observer("memory", MEMORY_COLUMNS, read_memory, MEMORY_PATHS)
