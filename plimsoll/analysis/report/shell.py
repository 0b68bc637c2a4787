"""The shell of every page: templates that escape, scripts that the policy names, a file written whole."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from plimsoll import __version__
from plimsoll.analysis.charts.style import Chart
from plimsoll.common.errors import OutputError
from plimsoll.common.files import replace_text
from plimsoll.common.hostile import printable, script_json

TEMPLATES = Path(__file__).parent / "templates"
_LONGEST_TEXT = 4000


@cache
def environment(*further: Path) -> Environment:
    """Return what renders templates of the report, and of the folders `further`; all text is escaped."""
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


def rendered(
    template: str, figures: Sequence[Chart], *folders: Path, styles: Sequence[str] = (), **values: object
) -> str:
    """Return a page: a template that extends `frame.html`, with `values` in it and `figures` to be drawn.

    Templates and `styles`, which come after the report's own, are looked for in the report's folder and in
    `folders`.
    """
    behaviour, contents = (
        script((TEMPLATES / name).read_text(encoding="utf-8")) for name in ("report.js", "contents.js")
    )
    plotly = _plotly()
    pages = environment(*folders)
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
    return script(get_plotlyjs())


def _source(pages: Environment, name: str) -> str:
    assert pages.loader is not None  # noqa: S101 environment() gives it one
    return pages.loader.get_source(pages, name)[0]


def script(text: str) -> Markup:
    """Return a script of ours or of plotly's, as it may stand in a `<script>` element."""
    if "</script" in text.lower() or "<!--" in text or "\r" in text:
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
