"""The page on paper: printed by the Chromium that the system has, which reaches no network meanwhile."""

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from analysis.hostile import printable

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_PATIENCE_S = 180
# As wide as an A4 page between its margins, so that figures are drawn as wide as they are printed.
_WINDOW = "740,1000"


class PrintingError(Exception):
    """There is no PDF; the message is a sentence (hostile) that says why."""


def chromium() -> str | None:
    """Return the browser, where there is one."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def print_command(browser: str, page: Path, target: Path, profile: Path, as_root: bool) -> list[str]:
    """Return what prints `page`. Chromium as root runs only without its sandbox. Pure."""
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
        f"--window-size={_WINDOW}",
        "--virtual-time-budget=20000",
        "--no-pdf-header-footer",
        f"--print-to-pdf={target}",
        page.as_uri(),
    ]


def print_pdf(page: Path, target: Path, profile: Path) -> None:
    """Print `page` to `target`; `profile` is a folder of the browser's own. Raises PrintingError."""
    browser = chromium()
    if browser is None:
        raise PrintingError("no Chromium is installed (Debian: chromium)")
    command = print_command(browser, page, target, profile, os.geteuid() == 0)
    try:
        process = subprocess.Popen(  # noqa: S603 a list of our own
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise PrintingError(f"{browser} cannot be run: {error.strerror}") from None
    try:
        _, said = process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise PrintingError(f"{browser} has not printed in {_PATIENCE_S} s") from None
    finally:
        # its helpers too: they would go on writing into a folder that is about to be removed
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode or not _is_pdf(target):
        last = said.strip().splitlines()[-1:] or ["it says nothing"]
        raise PrintingError(f"{browser} failed with exit code {process.returncode}: {printable(last[0])}")


def _is_pdf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(5) == b"%PDF-"
    except OSError:
        return False
