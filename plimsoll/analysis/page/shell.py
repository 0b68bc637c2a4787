"""The shell of every page: templates that escape, scripts that the policy names, a file written whole.

The charts of a page become files beside it: the page itself draws them, in the system's Chromium.
"""

import base64
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from plimsoll import __version__
from plimsoll.analysis.page.chart import Chart
from plimsoll.common.errors import OutputError
from plimsoll.common.files import replace_text
from plimsoll.common.hostile import printable, script_json
from plimsoll.common.programs import (
    BrowserError,
    browser_command,
    describe_failure,
    find_chromium,
    run_browser,
)

TEMPLATES = Path(__file__).parent / "templates"
_LONGEST_TEXT = 4000
FORMATS = ("svg", "png")
_PATIENCE_S = 180
_LEFT = re.compile(r'<script type="application/json" id="pictures">(.*?)</script>', re.DOTALL)
_KEY = re.compile(r"[a-z][a-z0-9-]{0,59}")
_SVG, _PNG = "data:image/svg+xml,", "data:image/png;base64,"


@cache
def template_environment(*further: Path) -> Environment:
    """Return what renders the templates of every page and of the folders `further`; all text is escaped."""
    return Environment(
        loader=FileSystemLoader([TEMPLATES, *further]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # whatever reaches the page as text is made printable, so that no template can forget it
        finalize=lambda value: (
            printable(value, _LONGEST_TEXT)
            if isinstance(value, str) and not isinstance(value, Markup)
            else value
        ),
    )


def render_page(
    template: str, figures: Sequence[Chart], *folders: Path, styles: Sequence[str] = (), **values: object
) -> str:
    """Return a page: a template that extends `frame.html`, with `values` in it and `figures` to be drawn.

    Templates and `styles`, which come after those of every page, are looked for in the folder of this
    package and in `folders`.
    """
    behaviour, contents = (
        script((TEMPLATES / name).read_text(encoding="utf-8")) for name in ("report.js", "contents.js")
    )
    plotly = _plotly()
    pages = template_environment(*folders)
    css = "".join(_source(pages, name) for name in ("report.css", *styles))
    return pages.get_template(template).render(
        policy=policy([plotly, behaviour, contents]),
        css=Markup(css),  # noqa: S704 our own files
        plotly=plotly,
        behaviour=behaviour,
        contents=contents,
        figures=figures,
        data=Markup(script_json({figure.key: figure.as_json() for figure in figures})),  # noqa: S704 escaped
        version=__version__,
        **values,
    )


@cache
def _plotly() -> Markup:
    return script(read_plotly())


def read_plotly() -> str:
    """Return plotly.js. It lies in a package that is slow to import, and is read from there."""
    package = find_spec("plotly")
    assert package and package.origin  # noqa: S101 it is installed with us
    return (Path(package.origin).parent / "package_data/plotly.min.js").read_bytes().decode("utf-8")


def _source(pages: Environment, name: str) -> str:
    assert pages.loader is not None  # noqa: S101 environment() gives it one
    return pages.loader.get_source(pages, name)[0]


def script(text: str) -> Markup:
    """Return a script of ours or of plotly's, as it may stand in a `<script>` element."""
    if re.search("</script", text, re.IGNORECASE) or "<!--" in text or "\r" in text:
        raise ValueError("the script cannot stand in a page as it is")
    return Markup(text)  # noqa: S704 our own file, or the package's


def policy(scripts: Sequence[str]) -> str:
    """Return a Content-Security-Policy that lets these scripts run, no other, and nothing be loaded."""
    hashes = " ".join(map(_hash, scripts))
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def write_page(target: Path, text: str, option: str = "--out") -> None:
    """Write by rename: a page that is being read is never half one. Makes its folder where it is missing.

    `option` is what chooses its place.
    Raises OutputError.
    """
    try:
        replace_text(target, text, mode=0o644, parents=True)
    except OSError as error:
        problem = f"{target}: cannot be written: {error.strerror}"
        raise OutputError(f"{problem}; choose another place with {option}") from None


def draw_pictures(page: Path, formats: Sequence[str]) -> list[Path]:
    """Draw each chart of `page` in each of `formats` into the folder `NAME-figures` beside it.

    Returns the files. Raises OutputError, which says that the page is there all the same.
    """
    written = f"{page} is written, but its charts are not"
    browser = find_chromium()
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
    pictures = parse_pictures(dom, formats)
    if code or not pictures:
        raise OutputError(f"--figures: {written}: {describe_failure(browser, code, said)}")
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
        *browser_command(browser, profile, as_root),
        "--window-size=1300,900",
        "--virtual-time-budget=60000",
        "--dump-dom",
        f"file://{quote(str(page))}#pictures={','.join(formats)}",
    ]


def parse_pictures(dom: str, formats: Sequence[str]) -> dict[str, bytes]:
    """Return what a page left in itself, by the name of its file; none if it is not such a page. Pure.

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
