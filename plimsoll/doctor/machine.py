"""Whether this machine can generate load: facts are read here and judged by pure functions."""

import json
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from plimsoll.common.programs import replay_program
from plimsoll.common.units import count, share, significant

Verdict = Literal["good", "caution", "bad", "unknown"]

# As bin/replay has them: files that are no connections, the connections that it needs at least, and may open.
_SPARE_FILES = 64
_FEWEST_CONNECTIONS = 256
_MOST_CONNECTIONS = 10_000
_MUCH_STOLEN = 0.01
_SLOW_CLOCKS = ("hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies")
_STEAL = 8  # the column of /proc/stat's first line


@dataclass(frozen=True)
class Check:
    """One check: its value in words, whether that is good, and what to do if not."""

    name: str
    value: str
    verdict: Verdict = "good"
    remedy: str = ""


def checks(measure_s: int) -> Iterator[Check]:
    """Yield what was looked at; the clock of a sender and stolen time are measured for so long, 0: not."""
    yield processors(len(os.sched_getaffinity(0)), quota(_read("/sys/fs/cgroup/cpu.max")))
    yield clock(_read("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
    yield governor(
        {_read(path) for path in Path("/sys/devices/system/cpu").glob("cpu*/cpufreq/scaling_governor")}
    )
    yield files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    yield ports(_read("/proc/sys/net/ipv4/ip_local_port_range"))
    if measure_s:
        before = _read("/proc/stat")
        # bin/replay measures: a sender of its own waits for the same clock in the same way.
        measured = _ask_replay([replay_program(), "lag", "--json", "--duration", f"{measure_s}s"], lag)
        yield steal(before, _read("/proc/stat"))
        yield measured


def quota(text: str) -> float | None:
    """Return how many processors a control group has, from its cpu.max; None: all. Pure."""
    words = text.split()
    if len(words) != 2 or not (words[0].isdigit() and words[1].isdigit() and int(words[1])):
        return None
    return int(words[0]) / int(words[1])


def processors(usable: int, allowed: float | None) -> Check:
    """Judge how many processors there are. Pure."""
    if allowed is not None and allowed < usable:
        value = f"{significant(allowed)} of {usable} (limit of the container)"
        said = "a limit stops all threads at once when it is used up: give the container whole processors"
        return Check("processors", value, "caution", f"{said} (docker run --cpuset-cpus)")
    if usable < 2:
        return Check(
            "processors", "1", "caution", "sending and reading the log share it: provide two or more"
        )
    return Check("processors", str(usable))


def clock(source: str) -> Check:
    """Judge the kernel's clock source. Pure."""
    if not source:
        return Check("clock", "unknown", "unknown")
    if source in _SLOW_CLOCKS:
        remedy = "reading it takes microseconds, several times a request: boot with clocksource=tsc"
        return Check("clock", source, "caution", remedy)
    return Check("clock", source)


def governor(found: set[str]) -> Check:
    """Judge how the processors' frequency is governed. Pure."""
    names = sorted(name for name in found if name)
    if not names:
        return Check("governor", "unknown", "unknown", "in a virtual machine its host decides: look there")
    if names != ["performance"]:
        remedy = "processors that slow down wake late: cpupower frequency-set -g performance (linux-cpupower)"
        return Check("governor", ", ".join(names), "caution", remedy)
    return Check("governor", "performance")


def files(limit: int) -> Check:
    """Judge how many files a process may have open (-1: any number). Pure."""
    if limit < 0 or limit >= _MOST_CONNECTIONS + _SPARE_FILES:
        return Check("open files", "unlimited" if limit < 0 else count(limit))
    how = f"raise it: ulimit -Hn {_MOST_CONNECTIONS + _SPARE_FILES} as root, LimitNOFILE in a systemd unit"
    if limit < _FEWEST_CONNECTIONS + _SPARE_FILES:
        return Check("open files", count(limit), "bad", f"bin/replay needs more; {how}")
    said = f"past {count(limit - _SPARE_FILES)} connections, requests wait"
    return Check("open files", count(limit), "caution", f"{said}; {how}")


def ports(text: str) -> Check:
    """Judge the range of ports from which connections go out. Pure."""
    words = text.split()
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return Check("ports", "unknown", "unknown")
    have = int(words[1]) - int(words[0]) + 1
    if have < _MOST_CONNECTIONS:
        remedy = f"past {count(have)} connections to one server, there are none left"
        how = "sysctl net.ipv4.ip_local_port_range='32768 60999', or bin/replay run --source-address"
        return Check("ports", count(have), "caution", f"{remedy}: {how}")
    return Check("ports", count(have))


def steal(before: str, after: str) -> Check:
    """Judge what the hypervisor took between two readings of /proc/stat. Pure."""
    first, last = _ticks(before), _ticks(after)
    whole = sum(last) - sum(first)
    if not first or not last or whole <= 0:
        return Check("steal", "unknown", "unknown")
    stolen = max(0, last[_STEAL - 1] - first[_STEAL - 1])
    if stolen / whole >= _MUCH_STOLEN:
        remedy = "the hypervisor ran other guests: measure from a host that does not share its processors"
        return Check("steal", share(stolen, whole), "caution", remedy)
    return Check("steal", share(stolen, whole))


def lag(measured: dict[str, Any]) -> Check:
    """Judge what `bin/replay lag --json` printed. Pure."""
    figures = measured["lag_ms"]
    value = ", ".join(f"{name} {figures[name]:.3f} ms" for name in ("p50", "p99.9", "max"))
    if measured["in_time"]:
        return Check("timer lag", value)
    remedy = "runs may be marked generator_limited: free the processors, or use another machine"
    return Check("timer lag", value, "bad", remedy)


def _ticks(stat: str) -> list[int]:
    words = stat.partition("\n")[0].split()
    good = len(words) > _STEAL and words[0] == "cpu" and all(word.isdigit() for word in words[1:])
    return [int(word) for word in words[1 : _STEAL + 1]] if good else []


def _ask_replay(words: list[str], judge: Callable[[dict[str, Any]], Check]) -> Check:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 our own program
        return judge(json.loads(done.stdout))
    except OSError:
        return Check("timer lag", "unknown", "unknown", "bin/replay measures it: make build")
    except (ValueError, KeyError, TypeError):
        return Check("timer lag", "unknown", "unknown", "bin/replay is of another version: make build")


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
