"""The page on paper: printed by the Chromium that the system has, which reaches no network, and read back."""

import io
import os
import resource
import subprocess
import sys
from pathlib import Path

from plimsoll.common.programs import (
    BrowserError,
    browser_command,
    describe_failure,
    find_chromium,
    run_browser,
)

_PATIENCE_S = 180
_READING_S = 60
_MEMORY_BYTES = 1 << 30  # of the process that reads a PDF
# As wide as an A4 page between its margins, so that figures are drawn as wide as they are printed.
_WINDOW = "740,1000"


class PrintingError(Exception):
    """There is no PDF; the message is a sentence (hostile) that says why."""


def print_command(browser: str, page: Path, target: Path, profile: Path, as_root: bool) -> list[str]:
    """Return what prints `page`. Pure."""
    return [
        *browser_command(browser, profile, as_root),
        f"--window-size={_WINDOW}",
        "--virtual-time-budget=20000",
        "--no-pdf-header-footer",
        f"--print-to-pdf={target}",
        page.as_uri(),
    ]


def print_pdf(page: Path, target: Path, profile: Path) -> None:
    """Print `page` to `target`; `profile` is a folder of the browser's own. Raises PrintingError."""
    browser = find_chromium()
    if browser is None:
        raise PrintingError("no Chromium is installed (Debian: chromium)")
    try:
        code, _, said = run_browser(
            print_command(browser, page, target, profile, os.geteuid() == 0), _PATIENCE_S
        )
    except BrowserError as error:
        raise PrintingError(str(error)) from None
    if code or not _is_pdf(target):
        raise PrintingError(describe_failure(browser, code, said))


class UnreadablePdfError(Exception):
    """The text of a PDF cannot be read; the message says so."""


def has_on_each_page(pdf: bytes, word: str) -> bool:
    """Return whether each page of `pdf` has `word`. Raises UnreadablePdfError.

    A PDF can be made to take any time and memory, so a process of its own reads it, with little of both.
    """
    command = [sys.executable, "-P", "-m", "plimsoll.analysis.signoff.pdf", word]
    try:
        ran = subprocess.run(  # noqa: S603 a list of our own
            command,
            input=pdf,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_READING_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnreadablePdfError(f"its text cannot be read within {_READING_S} s") from None
    if ran.returncode:
        raise UnreadablePdfError("its text cannot be read")
    return ran.stdout == b"True\n"


def _is_pdf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(5) == b"%PDF-"
    except OSError:
        return False


def each_page_has(pdf: bytes, word: str) -> bool:
    """Return whether each page has `word`, of which the parts may stand apart. Raises whatever pypdf does."""
    from pypdf import PdfReader  # slow to import, and only the process that reads a PDF needs it

    pages = PdfReader(io.BytesIO(pdf)).pages
    return bool(pages) and all(word in "".join(page.extract_text().split()) for page in pages)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    print(each_page_has(sys.stdin.buffer.read(), sys.argv[1]))
