"""`plimsoll doctor`: what is installed, what is missing, and whether this machine can generate load."""

import json
import os
import platform
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import click

from plimsoll import __version__
from plimsoll.common.commands import json_option
from plimsoll.common.hostile import printable
from plimsoll.common.programs import replay_program
from plimsoll.common.units import count, share, significant

_ALWAYS = "replay"

# Under these, only who works on Plimsoll itself needs something.
CONTRIBUTORS = frozenset({"LAB", "LIBVIRT", "DOCKER", "LINT"})

_TABLE = Path(__file__).with_name("programs.txt")
_PATH = os.pathsep.join(("/usr/sbin", "/sbin"))  # where Debian has programs that a user's PATH lacks
_OLDEST_GO = 21  # 1.21: older ones do not fetch the Go that go.mod names
_ASKED_S = 20.0

# As in bin/replay: files other than connections, and how many connections it needs at least, opens at most.
_SPARE_FILES = 64
_FEWEST_CONNECTIONS = 256
_MOST_CONNECTIONS = 10_000
_MUCH_STOLEN = 0.01
_SLOW_CLOCKS = ("hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies")
_STEAL = 8  # the column of /proc/stat's first line

Verdict = Literal["good", "caution", "bad", "unknown"]


@dataclass(frozen=True)
class Use:
    """One use: what it is for, and which programs of ours, Python modules and other uses it needs.

    `modules` says how to get each.
    """

    what: str
    own: tuple[str, ...] = ()
    modules: Mapping[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()


USES = {
    "replay": Use("make replay, bin/replay, plimsoll report", own=("replay",)),
    "build": Use("make build"),
    "site": Use("make site"),
    "compose": Use("clones of lab.yml with `driver: compose`"),
    "qemu": Use("clones of lab.yml with `driver: qemu`"),
    "libvirt": Use("clones of lab.yml with `driver: libvirt`"),
    "emulated": Use("disks of lab.yml with `kind: emulated`"),
    "zfs": Use("pools and the saturators of ZFS"),
    "btrfs": Use("the saturator btrfs-send"),
    "rsync": Use("the saturator rsync"),
    "fio": Use("the saturator fio"),
    "fileio": Use("plimsoll fileio, and `fileio` of lab.yml"),
    "precondition": Use("`precondition` of lab.yml"),
    "visitors": Use("plimsoll scenario visitors"),
    "browser": Use("plimsoll scenario browser"),
    "schedule": Use("plimsoll schedule"),
    "regress": Use("plimsoll regress", modules={"otava": "make .venv/.regress"}),
    "parquet": Use(
        "plimsoll export --to parquet", modules={"pyarrow": ".venv/bin/pip install 'pyarrow>=18'"}
    ),
    "signoff-pdf": Use("the PDF of plimsoll signoff"),
    "signoff-sign": Use("signatures of plimsoll signoff"),
    "bench": Use("make bench", also=("build", "site")),
}


@click.command()
@click.option(
    "--for",
    "wanted",
    metavar="USE",
    multiple=True,
    type=click.Choice(list(USES)),
    help=f"A use that must be possible here, in addition to replays: {', '.join(USES)}. May be repeated.",
)
@click.option(
    "--measure-s",
    metavar="NUMBER",
    default=5,
    show_default=True,
    type=click.IntRange(0, 3600),
    help="Seconds to measure how late the machine wakes a sender, and what a hypervisor takes; 0: neither.",
)
@json_option
@click.pass_context
def doctor(ctx: click.Context, wanted: tuple[str, ...], measure_s: int, as_json: bool) -> None:
    """Show what is installed, what is missing for which command, and whether this machine can generate load.

    \b
    Examples:
        plimsoll doctor --for site --for browser
        plimsoll doctor --measure-s 1 --json

    It changes nothing and sends nothing. Package names are Debian's.

    Exit codes: 0 this machine can replay, and do what --for names; 1 it cannot, or wakes senders too
    late; 2 wrong usage.
    """  # noqa: D301 \b is click's: keep these lines as they are
    needed = read_table()
    lacking = {name: find_missing(name, needed) for name in USES}
    found = list(check_machine(measure_s))
    ready = not any(lacking[name] for name in {_ALWAYS, *wanted}) and all(
        check.verdict != "bad" for check in found
    )
    if as_json:
        click.echo(json.dumps(_result_json(lacking, found, ready), indent=2))
    else:
        for line in [*_machine_lines(found), "", *_use_lines(lacking), "", _answer(lacking, found, wanted)]:
            click.echo(printable(line, 2000))
    ctx.exit(0 if ready else 1)


@dataclass(frozen=True)
class Check:
    """One check: its value in words, whether that is good, and what to do if not."""

    name: str
    value: str
    verdict: Verdict = "good"
    remedy: str = ""


@dataclass(frozen=True)
class Missing:
    """Something that is missing: what, how to get it, and its Debian package."""

    what: str
    get: str
    package: str | None = None


def _result_json(lacking: dict[str, list[Missing]], found: Sequence[Check], ready: bool) -> dict[str, object]:
    uses = [
        {"use": name, "what": USES[name].what, "missing": [asdict(one) for one in lack]}
        for name, lack in lacking.items()
    ]
    return {
        "version": __version__,
        "python": platform.python_version(),
        "ready": ready,
        "machine": [asdict(check) | {"remedy": check.remedy or None} for check in found],
        "uses": uses,
        "packages": _packages(lacking.values()),
    }


def _machine_lines(found: Sequence[Check]) -> Iterator[str]:
    yield f"plimsoll {__version__}, Python {platform.python_version()}. This machine as a generator of load:"
    for check in found:
        mark = {"good": " ", "unknown": "?", "caution": "!", "bad": "x"}[check.verdict]
        yield f"  {mark} {check.name:<11} {check.value}"
        if check.remedy:
            yield f"{'':16}{check.remedy}"


def _use_lines(lacking: dict[str, list[Missing]]) -> Iterator[str]:
    yield "Ready for: " + (", ".join(name for name, lack in lacking.items() if not lack) or "nothing yet")
    if any(lacking.values()):
        yield "Missing:"
    for name, lack in lacking.items():
        if lack:
            yield f"  {name:<13} {USES[name].what}"
            yield from (f"{'':16}{one.what}: {one.get}" for one in lack)
    if packages := _packages(lacking.values()):
        yield f"All of these: apt-get install {' '.join(packages)}"


def _answer(lacking: dict[str, list[Missing]], found: Sequence[Check], wanted: Sequence[str]) -> str:
    asked = [_ALWAYS, *(name for name in dict.fromkeys(wanted) if name != _ALWAYS)]
    missing = [name for name in asked if lacking[name]]
    bad = [check.name for check in found if check.verdict == "bad"]
    if missing:
        answer = f"Not ready: something is missing for {', '.join(missing)}."
    else:
        answer = f"Ready for {', '.join(asked)}."
    return f"{answer} This machine is not fit to generate load: {', '.join(bad)}." if bad else answer


def _packages(lacking: Iterable[list[Missing]]) -> list[str]:
    return sorted({one.package for lack in lacking for one in lack if one.package})


def check_machine(measure_s: int) -> Iterator[Check]:
    """Yield what was looked at; the clock of a sender and stolen time are measured for so long, 0: not."""
    yield judge_processors(len(os.sched_getaffinity(0)), read_quota(_read("/sys/fs/cgroup/cpu.max")))
    yield judge_clock(_read("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
    yield judge_governor(
        {_read(path) for path in Path("/sys/devices/system/cpu").glob("cpu*/cpufreq/scaling_governor")}
    )
    yield judge_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    yield judge_ports(_read("/proc/sys/net/ipv4/ip_local_port_range"))
    if measure_s:
        before = _read("/proc/stat")
        # bin/replay measures: a sender of its own waits for the same clock in the same way.
        measured = _ask_replay([replay_program(), "lag", "--json", "--duration", f"{measure_s}s"], judge_lag)
        yield judge_steal(before, _read("/proc/stat"))
        yield measured


def read_quota(text: str) -> float | None:
    """Return how many processors a control group has, from its cpu.max; None: all. Pure."""
    words = text.split()
    if len(words) != 2 or not (words[0].isdigit() and words[1].isdigit() and int(words[1])):
        return None
    return int(words[0]) / int(words[1])


def judge_processors(usable: int, allowed: float | None) -> Check:
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


def judge_clock(source: str) -> Check:
    """Judge the kernel's clock source. Pure."""
    if not source:
        return Check("clock", "unknown", "unknown")
    if source in _SLOW_CLOCKS:
        remedy = "reading it takes microseconds, several times a request: boot with clocksource=tsc"
        return Check("clock", source, "caution", remedy)
    return Check("clock", source)


def judge_governor(found: set[str]) -> Check:
    """Judge how the processors' frequency is governed. Pure."""
    names = sorted(name for name in found if name)
    if not names:
        return Check("governor", "unknown", "unknown", "in a virtual machine its host decides: look there")
    if names != ["performance"]:
        remedy = "processors that slow down wake late: cpupower frequency-set -g performance (linux-cpupower)"
        return Check("governor", ", ".join(names), "caution", remedy)
    return Check("governor", "performance")


def judge_files(limit: int) -> Check:
    """Judge how many files a process may have open (-1: any number). Pure."""
    if limit < 0 or limit >= _MOST_CONNECTIONS + _SPARE_FILES:
        return Check("open files", "unlimited" if limit < 0 else count(limit))
    how = f"raise it: ulimit -Hn {_MOST_CONNECTIONS + _SPARE_FILES} as root, LimitNOFILE in a systemd unit"
    if limit < _FEWEST_CONNECTIONS + _SPARE_FILES:
        return Check("open files", count(limit), "bad", f"bin/replay needs more; {how}")
    said = f"past {count(limit - _SPARE_FILES)} connections, requests wait"
    return Check("open files", count(limit), "caution", f"{said}; {how}")


def judge_ports(text: str) -> Check:
    """Judge the range of ports from which connections go out. Pure."""
    words = text.split()
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return Check("ports", "unknown", "unknown")
    have = int(words[1]) - int(words[0]) + 1
    if have < _MOST_CONNECTIONS:
        remedy = f"past {count(have)} connections to one server, no port is left"
        how = "sysctl net.ipv4.ip_local_port_range='32768 60999', or plimsoll replay --source-address"
        return Check("ports", count(have), "caution", f"{remedy}: {how}")
    return Check("ports", count(have))


def judge_steal(before: str, after: str) -> Check:
    """Judge what the hypervisor took between two readings of /proc/stat. Pure."""
    first, last = _read_ticks(before), _read_ticks(after)
    whole = sum(last) - sum(first)
    if not first or not last or whole <= 0:
        return Check("steal", "unknown", "unknown")
    stolen = max(0, last[_STEAL - 1] - first[_STEAL - 1])
    if stolen / whole >= _MUCH_STOLEN:
        remedy = "the hypervisor ran other guests: measure from a host that does not share its processors"
        return Check("steal", share(stolen, whole), "caution", remedy)
    return Check("steal", share(stolen, whole))


def judge_lag(measured: dict[str, Any]) -> Check:
    """Judge what `plimsoll lag --json` printed. Pure."""
    figures = measured["lag_ms"]
    value = ", ".join(f"{name} {figures[name]:.3f} ms" for name in ("p50", "p99.9", "max"))
    if measured["in_time"]:
        return Check("timer lag", value)
    remedy = "runs may be marked generator_limited: free the processors, or use another machine"
    return Check("timer lag", value, "bad", remedy)


def _read_ticks(stat: str) -> list[int]:
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
    """Return what a file of the kernel holds, or nothing if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class Needed:
    """A line of the table: programs of which one is enough, packages of which one has them, who needs it."""

    programs: tuple[str, ...]
    packages: tuple[str, ...]
    uses: frozenset[str]


def read_table(text: str | None = None) -> list[Needed]:
    """Return the lines of programs.txt. Raises ValueError for a malformed line."""
    lines = (_TABLE.read_text(encoding="utf-8") if text is None else text).splitlines()
    return [_parse_needed(line) for line in lines if line.strip() and not line.startswith("#")]


def _parse_needed(line: str) -> Needed:
    words = line.split()
    if len(words) < 3 or (unknown := set(words[2:]) - USES.keys() - CONTRIBUTORS):
        raise ValueError(f"{line!r}: {'needs three columns' if len(words) < 3 else f'no use is {unknown}'}")
    return Needed(tuple(words[0].split("|")), tuple(words[1].split("|")), frozenset(words[2:]))


def find_missing(use: str, among: Sequence[Needed] | None = None) -> list[Missing]:
    """Return what `use` lacks on this machine."""
    found = [one for other in USES[use].also for one in find_missing(other, among)]
    found += [
        _missing_program(needed)
        for needed in (read_table() if among is None else among)
        if use in needed.uses and not any(map(is_here, needed.programs))
    ]
    found += [Missing(f"bin/{name}", "make build") for name in USES[use].own if not is_here(f"bin/{name}")]
    found += [
        Missing(f"Python's {name}", get) for name, get in USES[use].modules.items() if not find_spec(name)
    ]
    return list(dict.fromkeys([*found, *_find_unusable(use)]))


def is_here(program: str) -> bool:
    """Return whether this machine has a program, or a path that fits the pattern `program`."""
    if "/" not in program:
        return (
            shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", os.defpath), _PATH)))
            is not None
        )
    path = Path(program).expanduser()
    root = Path("/") if path.is_absolute() else Path(replay_program()).parents[1]
    return next(root.glob(str(path.relative_to("/") if path.is_absolute() else path)), None) is not None


def _missing_program(needed: Needed) -> Missing:
    package = needed.packages[0]
    others = f" (or {' or '.join(needed.packages[1:])})" if len(needed.packages) > 1 else ""
    return Missing(Path(needed.programs[0]).name, f"apt-get install {package}{others}", package)


def _find_unusable(use: str) -> Iterator[Missing]:
    """Yield what is installed but not usable."""
    if (
        use == "build"
        and is_here("go")
        and (old := find_outdated_go(_read_output(["go", "env", "GOVERSION"])))
    ):
        yield Missing(
            f"Go 1.26 (this is {old})", "see docs/install.md: Debian 12 has it in bookworm-backports"
        )
    if (
        use in ("site", "compose")
        and is_here("docker")
        and _read_output(["docker", "info", "-f", "{{.ID}}"]) is None
    ):
        yield Missing(
            "an answer from Docker", "systemctl start docker; unless you are root, join the group docker"
        )


def find_outdated_go(version: str | None) -> str | None:
    """Return the version of Go if it is too old to build Plimsoll. Pure."""
    found = re.match(r"go1\.(\d+)", version or "")
    return version if found and int(found[1]) < _OLDEST_GO else None


def _read_output(words: list[str]) -> str | None:
    """Return what a program prints, or None if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 words of our own
            words, capture_output=True, text=True, errors="replace", timeout=_ASKED_S, check=False, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
