"""Programs that are started: our own that are not Python, in the checkout or installed, and Chromium."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from plimsoll.common.errors import PlimsollError
from plimsoll.common.hostile import printable

_CHECKOUT = Path(__file__).parents[2]
_IS_CHECKOUT = (_CHECKOUT / "replay" / "go.mod").is_file()


def project() -> Path:
    """Return the folder of docker-compose.yml, site/ and examples/."""
    return _CHECKOUT if _IS_CHECKOUT else Path(sys.prefix) / "share" / "plimsoll"


def own_program(name: str) -> Path:
    """Return the path of a program of ours, which need not exist."""
    return (_CHECKOUT if _IS_CHECKOUT else Path(sys.prefix)) / "bin" / name


def replay_program() -> str:
    """Return the path of `bin/replay`, which need not exist: ours, or what PLIMSOLL_REPLAY names."""
    return os.environ.get("PLIMSOLL_REPLAY") or str(own_program("replay"))


def missing_replay() -> str:
    """Return what to say if `bin/replay` is missing."""
    remedy = "run make build" if _IS_CHECKOUT else "run ./install of the release again"
    return f"{replay_program()}: is not there: {remedy}"


def built_replay_program() -> str:
    """Return the path of `bin/replay`. Raises PlimsollError if it is missing."""
    program = replay_program()
    if not Path(program).is_file():
        raise PlimsollError(missing_replay())
    return program


def plimsoll_command() -> list[str]:
    """Return the command `plimsoll` of this very installation."""
    beside = Path(sys.executable).with_name("plimsoll")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "plimsoll"]


_BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


class BrowserError(Exception):
    """The browser failed; the message is a sentence (hostile) that says why."""


def find_chromium() -> str | None:
    """Return the path of the browser, if there is one."""
    return next((found for name in _BROWSERS if (found := shutil.which(name))), None)


def browser_command(browser: str, profile: Path, as_root: bool) -> list[str]:
    """Return what begins every command. Chromium as root runs only without its sandbox. Pure."""
    return [
        browser,
        "--headless",
        *(["--no-sandbox"] if as_root else []),
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={profile}",
    ]


def run_browser(arguments: list[str], patience_s: float) -> tuple[int, str, str]:
    """Run it to its end; return its exit code and its output. Raises BrowserError."""
    browser = arguments[0]
    try:
        process = subprocess.Popen(  # noqa: S603 a list of our own
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise BrowserError(f"{browser} cannot be run: {error.strerror}") from None
    try:
        out, said = process.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        raise BrowserError(f"{browser} did not end within {patience_s:g} s") from None
    finally:
        # its helpers too: they would go on writing into a folder that is about to be removed
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode, out, said


def describe_failure(browser: str, code: int, said: str) -> str:
    """Return why the browser failed, in one sentence (safe for a terminal)."""
    last = said.strip().splitlines()[-1:] or ["it says nothing"]
    return f"{browser} failed with exit code {code}: {printable(last[0])}"
