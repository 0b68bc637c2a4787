"""The use of all processors' time together, from /proc/stat."""

from plimsoll.lab.observers.counters import Column, Pair, Reading, gauge, number, rate
from plimsoll.lab.observers.observer import file_observer

PATHS = ("/proc/stat",)

# The kernel counts guest time in user time as well, so the first eight make the whole.
_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_ALONE = ("ctxt", "procs_running", "procs_blocked")


def parse(text: str) -> dict[str, float]:
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


def read(texts: tuple[str, ...]) -> Reading:
    """Return the reading that `PATHS` give."""
    return parse(texts[0])


def _share(name: str, *states: str) -> Column:
    def percent(pair: Pair) -> float | None:
        deltas = [pair.delta(state) for state in states]
        spent = sum(delta for delta in deltas if delta is not None)
        return None if None in deltas else pair.ratio(100 * spent, pair.delta("all"))

    return Column(name, f"{' + '.join(states)} / all", percent)


COLUMNS = (
    _share("user_percent", "user", "nice"),
    _share("system_percent", "system", "irq", "softirq"),
    _share("iowait_percent", "iowait"),  # the kernel's count falls now and then: that second is missing
    _share("steal_percent", "steal"),
    _share("idle_percent", "idle"),
    rate("context_switches_per_s", "ctxt"),
    gauge("runnable_count", "procs_running"),
    gauge("blocked_count", "procs_blocked"),
)

OBSERVER = file_observer("cpu", COLUMNS, read, PATHS)
