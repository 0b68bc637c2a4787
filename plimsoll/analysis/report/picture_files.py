"""The charts of a page as files beside it, drawn by the page itself in the system's Chromium."""

import base64
import json
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from plimsoll.analysis.report.chromium import BrowserError, chromium, command, failure, run_browser
from plimsoll.common.errors import OutputError

FORMATS = ("svg", "png")
_PATIENCE_S = 180
_LEFT = re.compile(r'<script type="application/json" id="pictures">(.*?)</script>', re.DOTALL)
_KEY = re.compile(r"[a-z][a-z0-9-]{0,59}")
_SVG, _PNG = "data:image/svg+xml,", "data:image/png;base64,"


def draw_pictures(page: Path, formats: Sequence[str]) -> list[Path]:
    """Draw each chart of `page` in each of `formats` into the folder `NAME-figures` beside it.

    Returns the files. Raises OutputError, which says that the page is there all the same.
    """
    written = f"{page} is written, but its charts are not"
    browser = chromium()
    if browser is None:
        raise OutputError(
            f"--figures: {written}: they are drawn by Chromium, and none is installed (Debian: apt-get "
            "install chromium). Or open the page in any browser: each chart has a button to "
            "download it as SVG"
        )
    with tempfile.TemporaryDirectory(prefix="plimsoll-", ignore_cleanup_errors=True) as profile:
        try:
            arguments = picture_command(browser, page.resolve(), formats, Path(profile), os.geteuid() == 0)
            code, dom, said = run_browser(arguments, _PATIENCE_S)
        except BrowserError as error:
            raise OutputError(f"--figures: {written}: {error}") from None
    pictures = pictures_in(dom, formats)
    if code or not pictures:
        raise OutputError(f"--figures: {written}: {failure(browser, code, said)}")
    folder = page.with_name(f"{page.stem}-figures")
    try:
        folder.mkdir(exist_ok=True)
        for name, content in pictures.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise OutputError(
            f"--figures: {folder}: cannot be written: {error.strerror}; choose another place with --out"
        ) from None
    return [folder / name for name in pictures]


def picture_command(
    browser: str, page: Path, formats: Sequence[str], profile: Path, as_root: bool
) -> list[str]:
    """Return what opens `page` so that it leaves its charts in itself, and prints it as it is then. Pure."""
    return [
        *command(browser, profile, as_root),
        "--window-size=1300,900",
        "--virtual-time-budget=60000",
        "--dump-dom",
        f"file://{quote(str(page))}#pictures={','.join(formats)}",
    ]


def pictures_in(dom: str, formats: Sequence[str]) -> dict[str, bytes]:
    """Return what a page left in itself, by the name of its file; none if that is no such page. Pure.

    The page shows names that came from logs, so nothing of it is trusted: a name is that of a chart of ours,
    and a picture is of a kind that was asked for.
    """
    left = _LEFT.findall(dom)
    try:
        value = json.loads(left[-1]) if left else {}
    except ValueError:
        return {}
    found = {}
    for key, by_format in value.items() if isinstance(value, dict) else ():
        if not _KEY.fullmatch(key) or not isinstance(by_format, dict):
            continue
        for name in formats:
            content = _content(name, by_format.get(name))
            if content:
                found[f"{key}.{name}"] = content
    return found


def _content(name: str, url: object) -> bytes | None:
    if not isinstance(url, str):
        return None
    if name == "svg" and url.startswith(_SVG):
        return unquote_to_bytes(url.removeprefix(_SVG))
    if name == "png" and url.startswith(_PNG):
        try:
            return base64.b64decode(url.removeprefix(_PNG), validate=True)
        except ValueError:
            return None
    return None
