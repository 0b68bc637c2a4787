"""`plimsoll doctor`: what is installed, what is missing, and whether this machine can generate load."""

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path

import click

from plimsoll import __version__
from plimsoll.common.hostile import printable
from plimsoll.common.programs import replay_program
from plimsoll.doctor.machine import Check, checks

_ALWAYS = "replay"

# Under these, only who works on Plimsoll itself needs something.
CONTRIBUTORS = frozenset({"LAB", "LIBVIRT", "DOCKER", "LINT"})

_TABLE = Path(__file__).with_name("programs.txt")
_PATH = os.pathsep.join(("/usr/sbin", "/sbin"))  # where Debian has programs that a user's PATH lacks
_OLDEST_GO = 21  # 1.21: older ones do not fetch the Go that go.mod names
_ASKED_S = 20.0


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
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")
@click.pass_context
def doctor(ctx: click.Context, wanted: tuple[str, ...], measure_s: int, as_json: bool) -> None:
    """Show what is installed, what is missing for which command, and whether this machine can generate load.

    It changes nothing and sends nothing. Package names are Debian's.

    \b
    Examples:
        plimsoll doctor --for site --for browser
        plimsoll doctor --measure-s 60 --json

    Exit codes: 0 this machine can replay, and do what --for names; 1 it cannot, or wakes senders too
    late; 2 wrong usage.
    """  # noqa: D301 \b is click's: keep these lines as they are
    needed = table()
    lacking = {name: lacks(name, needed) for name in USES}
    found = list(checks(measure_s))
    ready = not any(lacking[name] for name in {_ALWAYS, *wanted}) and all(
        check.verdict != "bad" for check in found
    )
    if as_json:
        click.echo(json.dumps(_data(lacking, found, ready), indent=2))
    else:
        for line in [*_machine(found), "", *_uses(lacking), "", _answer(lacking, found, wanted)]:
            click.echo(printable(line, 2000))
    ctx.exit(0 if ready else 1)


@dataclass(frozen=True)
class Lack:
    """Something that is missing: what, how to get it, and its Debian package."""

    what: str
    get: str
    package: str | None = None


def _data(lacking: dict[str, list[Lack]], found: Sequence[Check], ready: bool) -> dict[str, object]:
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


def _machine(found: Sequence[Check]) -> Iterator[str]:
    yield f"plimsoll {__version__}, Python {platform.python_version()}. This machine as a generator of load:"
    for check in found:
        mark = {"good": " ", "unknown": "?", "caution": "!", "bad": "x"}[check.verdict]
        yield f"  {mark} {check.name:<11} {check.value}"
        if check.remedy:
            yield f"{'':16}{check.remedy}"


def _uses(lacking: dict[str, list[Lack]]) -> Iterator[str]:
    yield "Ready for: " + (", ".join(name for name, lack in lacking.items() if not lack) or "nothing yet")
    if any(lacking.values()):
        yield "Missing:"
    for name, lack in lacking.items():
        if lack:
            yield f"  {name:<13} {USES[name].what}"
            yield from (f"{'':16}{one.what}: {one.get}" for one in lack)
    if packages := _packages(lacking.values()):
        yield f"All of these: apt-get install {' '.join(packages)}"


def _answer(lacking: dict[str, list[Lack]], found: Sequence[Check], wanted: Sequence[str]) -> str:
    asked = [_ALWAYS, *(name for name in dict.fromkeys(wanted) if name != _ALWAYS)]
    missing = [name for name in asked if lacking[name]]
    bad = [check.name for check in found if check.verdict == "bad"]
    if missing:
        answer = f"Not ready: something is missing for {', '.join(missing)}."
    else:
        answer = f"Ready for {', '.join(asked)}."
    return f"{answer} This machine is not fit to generate load: {', '.join(bad)}." if bad else answer


def _packages(lacking: Iterable[list[Lack]]) -> list[str]:
    return sorted({one.package for lack in lacking for one in lack if one.package})


@dataclass(frozen=True)
class Needed:
    """A line of the table: programs of which one is enough, packages of which one has them, who needs it."""

    programs: tuple[str, ...]
    packages: tuple[str, ...]
    uses: frozenset[str]


def table(text: str | None = None) -> list[Needed]:
    """Return the lines of programs.txt. Raises ValueError for a malformed line."""
    lines = (_TABLE.read_text(encoding="utf-8") if text is None else text).splitlines()
    return [_parse_needed(line) for line in lines if line.strip() and not line.startswith("#")]


def _parse_needed(line: str) -> Needed:
    words = line.split()
    if len(words) < 3 or (unknown := set(words[2:]) - USES.keys() - CONTRIBUTORS):
        raise ValueError(f"{line!r}: {'needs three columns' if len(words) < 3 else f'no use is {unknown}'}")
    return Needed(tuple(words[0].split("|")), tuple(words[1].split("|")), frozenset(words[2:]))


def lacks(use: str, among: Sequence[Needed] | None = None) -> list[Lack]:
    """Return what `use` lacks on this machine."""
    found = [one for other in USES[use].also for one in lacks(other, among)]
    found += [
        _lack(needed)
        for needed in (table() if among is None else among)
        if use in needed.uses and not any(map(is_here, needed.programs))
    ]
    found += [Lack(f"bin/{name}", "make build") for name in USES[use].own if not is_here(f"bin/{name}")]
    found += [Lack(f"Python's {name}", get) for name, get in USES[use].modules.items() if not find_spec(name)]
    return list(dict.fromkeys([*found, *_find_unfit(use)]))


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


def _lack(needed: Needed) -> Lack:
    package = needed.packages[0]
    others = f" (or {' or '.join(needed.packages[1:])})" if len(needed.packages) > 1 else ""
    return Lack(Path(needed.programs[0]).name, f"apt-get install {package}{others}", package)


def _find_unfit(use: str) -> Iterator[Lack]:
    """Yield what is installed but not usable."""
    if use == "build" and is_here("go") and (old := too_old(_read_output(["go", "env", "GOVERSION"]))):
        yield Lack(f"Go 1.26 (this is {old})", "see docs/install.md: Debian 12 has it in bookworm-backports")
    if (
        use in ("site", "compose")
        and is_here("docker")
        and _read_output(["docker", "info", "-f", "{{.ID}}"]) is None
    ):
        yield Lack(
            "an answer from Docker", "systemctl start docker; unless you are root, join the group docker"
        )


def too_old(version: str | None) -> str | None:
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
