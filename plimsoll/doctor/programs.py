"""What a use lacks here: programs.txt and uses.py, held against this machine."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from plimsoll.common.programs import replay_program
from plimsoll.doctor.uses import CONTRIBUTORS, USES

_TABLE = Path(__file__).with_name("programs.txt")
_PATH = os.pathsep.join(("/usr/sbin", "/sbin"))  # where Debian has programs that a user's PATH lacks
_OLDEST_GO = 21  # 1.21: older ones do not fetch the Go that go.mod names
_ASKED_S = 20.0


@dataclass(frozen=True)
class Needed:
    """A line of the table: programs of which one is enough, packages of which one has them, who needs it."""

    programs: tuple[str, ...]
    packages: tuple[str, ...]
    uses: frozenset[str]


@dataclass(frozen=True)
class Lack:
    """Something that is not here: what, how to get it, the Debian package that has it."""

    what: str
    get: str
    package: str | None = None


def table(text: str | None = None) -> list[Needed]:
    """Return the lines of programs.txt. Raises ValueError for a line that is none."""
    lines = (_TABLE.read_text(encoding="utf-8") if text is None else text).splitlines()
    return [_needed(line) for line in lines if line.strip() and not line.startswith("#")]


def _needed(line: str) -> Needed:
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
    found += [Lack(f"Python's {name}", get) for name, get in USES[use].modules.items() if not _has(name)]
    return list(dict.fromkeys([*found, *_unfit(use)]))


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


def _has(module: str) -> bool:
    return find_spec(module) is not None


def _unfit(use: str) -> Iterator[Lack]:
    """Yield what is here, but does not do."""
    if use == "build" and is_here("go") and (old := too_old(_said(["go", "env", "GOVERSION"]))):
        yield Lack(f"Go 1.26 (this is {old})", "see docs/install.md: Debian 12 has it in bookworm-backports")
    if (
        use in ("site", "compose")
        and is_here("docker")
        and _said(["docker", "info", "-f", "{{.ID}}"]) is None
    ):
        yield Lack(
            "an answer of Docker", "systemctl start docker; as another user than root: join the group docker"
        )


def too_old(version: str | None) -> str | None:
    """Return the version of Go if no Plimsoll can be built with it. Pure."""
    found = re.match(r"go1\.(\d+)", version or "")
    return version if found and int(found[1]) < _OLDEST_GO else None


def _said(words: list[str]) -> str | None:
    """Return what a program prints, None where it fails."""
    try:
        done = subprocess.run(  # noqa: S603 words of our own
            words, capture_output=True, text=True, errors="replace", timeout=_ASKED_S, check=False, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
