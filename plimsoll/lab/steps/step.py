"""Steps, as data: `plimsoll lab plan` prints them, and the very same are carried out. Pure.

`${name}` in a word stands for what an earlier step captured, as in a shell: the device that losetup
chose, the number of a new virtual machine. Nothing that a user wrote is ever read that way.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

_REFERENCE = re.compile(r"\$\{([a-z][a-z0-9_]*)\}")
_NO_REFERENCE = "${"


@dataclass(frozen=True)
class Command:
    """A command on the backend's machine, by a list of arguments.

    With `capture` its output, without white space around it, is kept under that name. With `until_s` it is
    tried again each second until it succeeds, at most so long. With `may_fail` any status will do.
    """

    says: str
    words: tuple[str, ...]
    capture: str | None = None
    stdin: str | None = None
    timeout_s: float = 60.0
    until_s: float = 0.0
    may_fail: bool = False


@dataclass(frozen=True)
class Call:
    """A request to an API, such as Proxmox's. With `task_timeout_s` the task that it starts is waited for.

    `capture` keeps what it answers (`data`), or the value there under `field`. With `until_s` it is tried
    again while it may yet succeed, for at most `until_s` seconds. `expects` are values that the answer must
    have: anything else is not the lab's. With `may_be_gone` there may be nothing left at `path`.
    """

    says: str
    method: str
    path: str
    params: tuple[tuple[str, str], ...] = ()
    capture: str | None = None
    field: str | None = None
    task_timeout_s: float | None = None
    until_s: float = 0.0
    expects: tuple[tuple[str, str], ...] = ()
    may_be_gone: bool = False


@dataclass(frozen=True)
class Serve:
    """Wait until `url` is answered by a status below 400, asked from where the load comes from."""

    says: str
    url: str
    connect_to: str | None = None
    timeout_s: float = 300.0


@dataclass(frozen=True)
class Room:
    """See that `folder` has room for `bytes` more, and for what the folder `like` takes."""

    says: str
    folder: str
    bytes: int = 0
    like: str | None = None


Step = Command | Call | Serve | Room


def shown(step: Step) -> str:
    """Return the line that `lab plan` prints: to be read, and where it is a command, to be pasted."""
    if isinstance(step, Command):
        line = " ".join(_quoted(word) for word in step.words)
        if step.stdin is not None:
            line = f"printf %s {_quoted(step.stdin)} | {line}"
        return f"{step.capture}=$({line})" if step.capture else line
    if isinstance(step, Call):
        words = [step.method, step.path, *(f"{key}={_quoted(value)}" for key, value in step.params)]
        return " ".join([*([f"{step.capture} ="] if step.capture else []), *words])
    if isinstance(step, Serve):
        there = f" (at {step.connect_to})" if step.connect_to else ""
        return f"GET {step.url}{there} until it is answered, {step.timeout_s:g} s at most"
    like = [f"what {step.like} takes"] if step.like else []
    size = [f"{step.bytes} bytes"] if step.bytes else []
    return f"room in {step.folder} for {' and '.join(like + size) or 'nothing'}"


def filled(step: Step, captured: Mapping[str, str]) -> Step:
    """Return `step` with what was captured in place of `${…}`. Raises KeyError where that is not known."""
    if isinstance(step, Command):
        stdin = None if step.stdin is None else fill(step.stdin, captured)
        return replace(step, words=tuple(fill(word, captured) for word in step.words), stdin=stdin)
    if isinstance(step, Call):
        params = tuple((key, fill(value, captured)) for key, value in step.params)
        return replace(step, path=fill(step.path, captured), params=params)
    if isinstance(step, Serve):
        connect_to = None if step.connect_to is None else fill(step.connect_to, captured)
        return replace(step, url=fill(step.url, captured), connect_to=connect_to)
    return replace(step, folder=fill(step.folder, captured))


def fill(text: str, captured: Mapping[str, str]) -> str:
    """Return `text` with what was captured in place of `${…}`. Raises KeyError where that is not known."""
    return _REFERENCE.sub(lambda found: captured[found[1]], text)


def no_reference(value: Any) -> Any:
    """Refuse text of a user that reads as a reference; to be used on every free text that becomes a word."""
    if isinstance(value, str) and _NO_REFERENCE in value:
        raise ValueError("must not contain ${")
    return value


def _quoted(word: str) -> str:
    """Quote for a shell, and leave references to be expanded."""
    if _REFERENCE.search(word) and shlex.quote(_REFERENCE.sub("x", word)) == _REFERENCE.sub("x", word):
        return word if _REFERENCE.fullmatch(word) is None else f'"{word}"'
    return shlex.quote(word)
