"""The steps of installing and removing, as data: `--dry-run` prints the very ones that are carried out."""

import shlex
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from plimsoll.common.errors import OutputError
from plimsoll.common.files import replace_text
from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.steps.step import Command


@dataclass(frozen=True)
class Write:
    """Write `text` to `path`, whole, and make its folder where it is missing."""

    says: str
    path: Path
    text: str


@dataclass(frozen=True)
class Remove:
    """Remove the file at `path`, or with `folder` the folder if nothing is in it; it may be gone."""

    says: str
    path: Path
    folder: bool = False


TimerStep = Write | Remove | Command


def shown(step: TimerStep) -> str:
    """Return the text that `--dry-run` prints, ready to be pasted. Pure."""
    if isinstance(step, Write):
        path = shlex.quote(str(step.path))
        return f"install -D -m 644 /dev/stdin {path} <<'END'\n{step.text.rstrip()}\nEND"
    if isinstance(step, Remove):
        path = shlex.quote(str(step.path))
        return f"rmdir -- {path} 2>/dev/null || true" if step.folder else f"rm -f -- {path}"
    line = shlex.join(step.words)
    if step.stdin is not None:
        return f"{line} <<'END'\n{step.stdin.rstrip()}\nEND"
    return f"{line} || true" if step.may_fail else line


def carry_out(steps: Iterable[TimerStep]) -> None:
    """Do `steps` in order. Raises LabError or OutputError at the first that fails; what was done stays."""
    for step in steps:
        if isinstance(step, Write):
            _write(step)
        elif isinstance(step, Remove):
            _remove(step)
        else:
            run(step)


def run(command: Command) -> str:
    """Run `command` here, and return what it printed. Raises LabError."""
    try:
        done = subprocess.run(  # noqa: S603 words of our own, by a list
            command.words,
            input=None if command.stdin is None else command.stdin.encode(errors="surrogateescape"),
            stdin=subprocess.DEVNULL if command.stdin is None else None,
            capture_output=True,
            timeout=command.timeout_s,
            check=False,
        )
    except FileNotFoundError:
        if command.may_fail:
            return ""
        raise LabError(f"{command.words[0]}: is not installed here") from None
    except subprocess.TimeoutExpired:
        raise MachineError("local", f"took over {command.timeout_s:g} s", command.words) from None
    if done.returncode and not command.may_fail:
        err = done.stderr.decode(errors="replace")
        raise MachineError("local", f"ended with {done.returncode}", command.words, err, done.returncode)
    return done.stdout.decode(errors="surrogateescape")


def _write(step: Write) -> None:
    try:
        replace_text(step.path, step.text, sync=True, parents=True)
    except OSError as error:
        raise OutputError(f"{step.path}: cannot be written: {error.strerror}") from None


def _remove(step: Remove) -> None:
    try:
        if not step.folder:
            step.path.unlink(missing_ok=True)
        elif step.path.is_dir() and not any(step.path.iterdir()):
            step.path.rmdir()
    except OSError as error:
        raise OutputError(f"{step.path}: cannot be removed: {error.strerror}") from None
