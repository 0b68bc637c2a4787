"""Transcripts for golden files: a command as a person types it, its exit code, and all that it printed.

`plimsoll` is called in this process. Scenarios import Locust, which patches the process that it is in: their
lines go together into a process of their own, `python -m tests.support.transcript`.
"""

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import LONGEST_S, REPLAY, ROOT, need

Row = tuple[str, str]  # a sentence, and the command line; `printf … |` before it gives the command its input
Said = tuple[int, str, str]  # exit code, standard output, standard error

# make in this checkout, which is built and set up: what that says would be another each time.
_MAKE = ("-C", str(ROOT), "--no-print-directory", "-o", "build", "-o", ".venv/.runtime", "together=@:")
# Variables, what the command gets as its input, and the command.
_LINE = re.compile(r"((?:[A-Z_]+=\S+ )*)(?:printf '([^']*)' \| )?(.*)", re.DOTALL)


def settle(folder: Path, patch: pytest.MonkeyPatch, programs: Iterable[str] = ()) -> None:
    """Go to an empty folder that has the examples, with an environment that is the same on every machine.

    On the PATH are `programs` alone, and what the lab takes for granted on every host.
    """
    for name in [
        name for name in os.environ if name.startswith(("PLIMSOLL", "XDG_", "LC_", "MAKE", "MFLAGS"))
    ]:
        patch.delenv(name)
    stubs = folder / "bin"
    stubs.mkdir()
    for name in (
        "sh",
        "env",
        "cat",
        "rm",
        "mkdir",
        "printf",
        "tee",
        "dirname",
        "realpath",
        "setsid",
        *programs,
    ):
        (stubs / name).symlink_to(shutil.which(name) or "/bin/true")
    for name, text in (("id", "echo 0"), ("flock", "exit 0")):
        (stubs / name).write_text(f"#!/bin/sh\n{text}\n")
        (stubs / name).chmod(0o755)
    settings = {"PATH": stubs, "HOME": folder, "USER": "me", "LANG": "C.UTF-8", "TZ": "UTC", "COLUMNS": "100"}
    for name, value in settings.items():
        patch.setenv(name, str(value))
    patch.chdir(folder)
    (folder / "examples").symlink_to(ROOT / "examples")


def transcript(rows: Sequence[Row], said: Sequence[Said], shown: dict[str, str] | None = None) -> str:
    """Return all rows with what was said, in which what is another each time is a word.

    `shown` has further patterns, each with what stands for it.
    """
    patterns = {
        re.escape(str(Path.cwd())): "/here",
        re.escape(str(Path(sys.executable).parent)): "/plimsoll/.venv/bin",
        re.escape(str(ROOT)): "/plimsoll",
        r"\b20\d{6}T\d{6}Z((?:-[a-z]+)*)(?:-\d+)?\b": r"20261126T120000Z\1",
    }
    parts = []
    for (why, line), (code, out, err) in zip(rows, said, strict=True):
        errors = "".join(f"stderr: {each}\n" for each in err.splitlines())
        printed = f"{out.rstrip()}\n" if out.strip() else ""
        parts.append(f"# {why}\n$ {line}\nexit {code}\n{printed}{errors}")
    text = "\n".join(parts)
    for pattern, word in (patterns | (shown or {})).items():
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def run(rows: Sequence[Row]) -> list[Said]:
    """Return what each row's command says: those of `plimsoll` in this process, others in their own."""
    return [_said(line) for _, line in rows]


def run_with_locust(rows: Sequence[Row]) -> list[Said]:
    """Return what each row's command says, all in one process that has Locust."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.transcript"],
        input=json.dumps([line for _, line in rows]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=LONGEST_S,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    return [(code, out, err) for code, out, err in json.loads(ran.stdout)]


def _said(line: str) -> Said:
    parts = _LINE.fullmatch(line)
    assert parts, line
    settings, given, command = parts.groups()
    with pytest.MonkeyPatch.context() as patch:
        for setting in shlex.split(settings or ""):
            patch.setenv(*setting.split("=", 1))
        return _ran(shlex.split(command), (given or "").replace("\\n", "\n"))


def _ran(words: list[str], given: str) -> Said:
    if words[0] == "plimsoll":
        from click.testing import CliRunner

        from plimsoll.cli import main

        done = CliRunner().invoke(main, words[1:], input=given, prog_name="plimsoll")
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr
    if words[0] == "cd":
        os.chdir(words[1])
        return 0, "", ""
    if words[0] == "replay":
        words = [need(REPLAY), *words[1:]]
    path = os.environ["PATH"]
    if words[0] == "make":
        words, path = ["make", *_MAKE, f"OUT={Path.cwd() / 'results'}", *words[1:]], os.defpath
    ran = subprocess.run(
        words,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
        env=os.environ | {"PATH": path},
    )
    return ran.returncode, ran.stdout, ran.stderr


def _answer_with_locust() -> None:
    """Say what each line of a list says, in JSON both, in this process."""
    import locust  # noqa: F401 it patches ssl and subprocess, and has to come before whatever else loads those

    class Here(subprocess.Popen):  # type: ignore[type-arg]
        """Runs the module of scenarios, which the lab starts, here, where Locust is: that saves a second."""

        def __init__(self, words: Any, *rest: Any, **options: Any) -> None:
            self._module = list(words[1:]) if list(words[:2]) == [sys.executable, "-m"] else []
            super().__init__(["/bin/true"] if self._module else words, *rest, **options)

        def communicate(self, given: Any = None, timeout: float | None = None) -> Any:
            said = super().communicate(None if self._module else given, timeout)
            return (_printed_by(self._module, given), "") if self._module else said

    subprocess.Popen = Here  # type: ignore[assignment,misc]
    json.dump([_said(each) for each in json.load(sys.stdin)], sys.stdout)


def _printed_by(module: list[str], given: str) -> str:
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = module[1:], io.StringIO(given)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
            runpy.run_module(module[1], run_name="__main__")
    finally:
        sys.argv, sys.stdin = before
    return printed.getvalue()


if __name__ == "__main__":
    _answer_with_locust()
