"""A run of `plimsoll scenario visitors`, and what it says and leaves."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT


def command(target: str, out: Path, *options: str) -> list[str]:
    line = [sys.executable, "-m", "plimsoll", "scenario", "visitors", "--target", target, "--out", str(out)]
    return [*line, "--duration-s", "3", "--think-s", "0.1", *options]


def visit(target: str, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(target, out, *options), capture_output=True, text=True, timeout=300, check=False, cwd=ROOT
    )


def facts(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "run.json").read_text())
    return found


def requests(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_text())["requests"]
    return found


def nobody_came(elsewhere: socket.socket) -> bool:
    """Whether nobody connected to that socket."""
    try:
        elsewhere.accept()
    except BlockingIOError:
        return True
    return False
