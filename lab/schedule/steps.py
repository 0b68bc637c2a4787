"""What installing and removing do, as data: `--dry-run` prints it, and the very same is carried out."""

import os
import shlex
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from analysis.errors import OutputError
from lab.errors import LabError, MachineError
from lab.experiment.files import sync_folder
from lab.steps import Command


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


Step = Write | Remove | Command


def shown(step: Step) -> str:
    """Return what `--dry-run` prints: to be pasted. Pure."""
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


def carry_out(steps: Iterable[Step]) -> None:
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
    hidden = step.path.with_name(f".{step.path.name}.new")
    try:
        step.path.parent.mkdir(parents=True, exist_ok=True)
        with hidden.open("wb") as file:
            file.write(step.text.encode())
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(step.path)
        sync_folder(step.path.parent)
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
