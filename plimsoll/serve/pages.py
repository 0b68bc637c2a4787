"""Pages of the application: the templates of the report, with scripts that a nonce names."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markupsafe import Markup
from plotly.offline import get_plotlyjs
from starlette.responses import HTMLResponse, Response

from plimsoll import __version__
from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.page.shell import TEMPLATES as PAGE_TEMPLATES
from plimsoll.analysis.page.shell import template_environment
from plimsoll.common.hostile import script_json

TEMPLATES = Path(__file__).parent / "templates"
_FOREVER = "private, max-age=31536000, immutable"
# What lies on the disk carries scripts of its own. It gets an origin of its own, which is nobody's, and so
# neither cookie nor answer of this server; and it loads nothing.
SANDBOX = (
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


@dataclass(frozen=True)
class Asset:
    """A script or a style sheet, and by what its address changes when it does."""

    text: str
    media_type: str

    @property
    def version(self) -> str:
        """The first of its digest."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@cache
def assets() -> dict[str, Asset]:
    """Return all that pages load, by name."""
    own = {name: TEMPLATES / name for name in ("serve.css", "live.js", "runs.js")}
    own |= {name: PAGE_TEMPLATES / name for name in ("report.css", "report.js")}
    kinds = {".css": "text/css", ".js": "text/javascript"}
    found = {name: Asset(path.read_text(encoding="utf-8"), kinds[path.suffix]) for name, path in own.items()}
    return {**found, "plotly.js": Asset(get_plotlyjs(), "text/javascript")}


def asset(name: str) -> Response | None:
    """Return a script or a style sheet, None where there is none of that name."""
    found = assets().get(name)
    if found is None:
        return None
    return Response(found.text, media_type=found.media_type, headers={"cache-control": _FOREVER})


def page(
    template: str,
    figures: Sequence[Chart] = (),
    *,
    status: int = 200,
    data: object = None,
    scripts: Sequence[str] = (),
    **values: object,
) -> HTMLResponse:
    """Return a page with charts in it, `data` for its `scripts`, and a policy that lets no other run."""
    nonce = secrets.token_urlsafe(18)
    drawn = ["plotly.js", "report.js"] if figures else []
    text = (
        template_environment(TEMPLATES)
        .get_template(template)
        .render(
            nonce=nonce,
            scripts=[*drawn, *scripts],
            asset_url=lambda name: f"/static/{name}?{assets()[name].version}",
            figures=figures,
            charts=Markup(script_json({figure.key: figure.as_json() for figure in figures})),  # noqa: S704 escaped
            data=Markup(script_json(data)),  # noqa: S704 escaped
            version=__version__,
            **values,
        )
    )
    return HTMLResponse(text, status, {"content-security-policy": policy(nonce)})


def policy(nonce: str) -> str:
    """Return the policy of a page: its own scripts, named by `nonce`; styles, which plotly sets by itself."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; "
        "img-src data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def sandboxed(text: bytes) -> Response:
    """Return a page of somebody else, where it can do nothing to this one."""
    return Response(text, media_type="text/html", headers={"content-security-policy": SANDBOX})
