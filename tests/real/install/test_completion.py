"""Completion in real shells: somebody types the beginning of a word and the tabulator, the shell ends it."""

import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.support.programs import LONGEST_S, ROOT, need

ROWS = [
    ("the name of a command", "plimsoll comple<TAB>", "plimsoll completion"),
    ("a command of a command", "plimsoll clone ad<TAB>", "plimsoll clone add"),
    ("an option", "plimsoll doctor --measure<TAB>", "plimsoll doctor --measure-s"),
    ("what an option may be", "plimsoll doctor --for brows<TAB>", "plimsoll doctor --for browser"),
    ("a flag of a command of the engine", "plimsoll parse --strict<TAB>", "plimsoll parse --strict-hosts"),
    (
        "what such a flag may be",
        "plimsoll replay --log-time rece<TAB>",
        "plimsoll replay --log-time received",
    ),
    ("a file for the engine", "plimsoll parse tests-fi<TAB>", "plimsoll parse tests-file.log"),
    ("a command of bin/replay", "replay origi<TAB>", "replay origin"),
    ("a flag without a value", "replay parse --strict<TAB>", "replay parse --strict-hosts"),
    ("what a flag may be", "replay run --log-time rece<TAB>", "replay run --log-time received"),
    ("a file", "replay parse tests-fi<TAB>", "replay parse tests-file.log"),
    ("an argument that is one of three", "replay completion fi<TAB>", "replay completion fish"),
]
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <({} completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "source <({} completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "{} completion fish | source"),
}
_LONG_S = float(LONGEST_S)


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, words: list[str], folder: Path) -> None:
        programs = f"{ROOT / '.venv' / 'bin'}:{ROOT / 'bin'}:{os.environ['PATH']}"
        kept = {"PATH": programs, "HOME": str(folder), "TERM": "dumb", "PS1": "", "LANG": "C.UTF-8"}
        self._ours, theirs = pty.openpty()
        self._shell = subprocess.Popen(
            words,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=kept,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY),
        )
        os.close(theirs)

    def type(self, text: str) -> None:
        """Type it."""
        os.write(self._ours, text.replace("<TAB>", "\t").encode())

    def until(self, pattern: str) -> str:
        """Return what the shell shows until that matches."""
        shown, end = "", time.monotonic() + _LONG_S
        while time.monotonic() < end:
            if select.select([self._ours], [], [], 1.0)[0]:
                shown += os.read(self._ours, 65536).decode(errors="replace")
            shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x07\x08]", "", shown)
            if found := re.search(pattern, shown):
                return found[0]
        raise AssertionError(f"the shell showed no {pattern!r} in {_LONG_S:g} s, but: {shown[-2000:]!r}")

    def close(self) -> None:
        """End the shell."""
        self._shell.kill()
        self._shell.wait()
        os.close(self._ours)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_what_is_typed(shell: str, tmp_path: Path) -> None:
    need(shell)
    (tmp_path / "tests-file.log").touch()
    words, source = SHELLS[shell]
    terminal = Terminal(words, tmp_path)
    try:
        if shell == "zsh":
            terminal.type("autoload -Uz compinit && compinit -u -D\n")
        for program in ("plimsoll", "replay"):
            terminal.type(source.format(program) + "\n")
        terminal.type("echo REA''DY\n")
        terminal.until("READY")
        for _, typed, wanted in ROWS:
            terminal.type(typed)
            # What the shell adds to what was typed, and the blank, = or nothing that it puts behind.
            terminal.until(re.escape(wanted.removeprefix(typed.removesuffix("<TAB>"))))
            terminal.type("\x15")  # ^U: begin the line anew
    finally:
        terminal.close()
