"""Places of this checkout; programs found or the test skipped, waited for, killed."""

import asyncio
import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FIXTURES = ROOT / "tests" / "fixtures"
ACCESS_LOG = ROOT / "examples" / "access.log"
REPLAY = ROOT / "bin" / "replay"
PLIMSOLL = ROOT / ".venv" / "bin" / "plimsoll"
LONGEST_S = 1200  # a measure of nothing: it only ends what hangs
Replay = Callable[..., subprocess.CompletedProcess[str]]
_GRINDER_ROW = re.compile(r"^(Test \d+|Totals) +(\d+) +(\d+) +(\S+) +(\S+) ", re.MULTILINE)


def eventually(holds: Callable[[], object], most_s: float = LONGEST_S) -> bool:
    """Whether something comes true within a bounded time."""
    until_s = time.monotonic() + most_s
    while not (held := holds()) and time.monotonic() < until_s:
        time.sleep(0.05)
    return bool(held)


def wait_for(what: str, holds: Callable[[], object], most_s: float = LONGEST_S) -> None:
    """Returns as soon as `holds`."""
    assert eventually(holds, most_s), f"{what}: not within {most_s} s"


async def awaited(what: str, holds: Callable[[], object], most_s: float = LONGEST_S) -> None:
    """Returns as soon as `holds`; other tasks go on."""
    until_s = time.monotonic() + most_s
    while not holds():
        assert time.monotonic() < until_s, f"{what}: not within {most_s} s"
        await asyncio.sleep(0.05)


def need(program: str | Path) -> str:
    """The program's path; skips the test where it is missing, fails it in the lab's own CI."""
    found = shutil.which(str(program))
    return found or skip_or_fail(f"{program} is not installed: make test-lab installs or builds it")


def skip_or_fail(reason: str) -> NoReturn:
    """Skips the test; fails it in the lab's own CI, where nothing may be missing."""
    if os.environ.get("CI") == "true" and os.environ.get("PLIMSOLL_LAB") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def free_port() -> int:
    """A TCP port on loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def open_to_all(folder: Path) -> None:
    """Let every user enter a folder of pytest's, as nginx's workers and QEMU must."""
    top = Path(tempfile.gettempdir())
    for each in (folder, *folder.parents):
        if each == top or top not in each.parents:
            return
        each.chmod(0o755)


def jars(pom: Path, folder: Path) -> str:
    """A class path of what `pom` depends on; `skip_or_fail` where it cannot be had."""
    need("java")
    command = [
        need("mvn"),
        "-B",
        "-q",
        "-f",
        str(pom),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={folder}",
    ]
    maven = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if maven.returncode != 0 or not list(folder.glob("*.jar")):
        skip_or_fail(f"Maven brought nothing: {(maven.stdout + maven.stderr).strip()[-300:]}")
    return f"{folder}/*"


def killed(words: Sequence[str | Path], after_s: float, program: Sequence[str | Path] = (PLIMSOLL,)) -> bool:
    """Run plimsoll and kill it after that time; whether it still ran."""
    process = subprocess.Popen(
        [*program, *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after_s)
    still = process.poll() is None
    process.kill()
    assert process.wait() == 0 or still, "it ended by itself, and not well"
    return still


def grinder_table(worker_log: Path) -> dict[str, tuple[str, str, str, str]]:
    """The Grinder's own tests, errors, mean and deviation of each test that encloses no other, and of all."""
    rows = _GRINDER_ROW.findall(worker_log.read_text())
    return {name: (tests, errors, mean, deviation) for name, tests, errors, mean, deviation in rows}
