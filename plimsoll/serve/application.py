"""The addresses of the application, and their pages.

It only reads: nothing that a browser asks for changes the folder.
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from plimsoll import __version__
from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.page.shell import TEMPLATES as PAGE_TEMPLATES
from plimsoll.analysis.page.shell import read_plotly, template_environment
from plimsoll.analysis.report.charts import run_charts
from plimsoll.analysis.report.run_findings import check_load
from plimsoll.analysis.report.runs import storages_by_backend
from plimsoll.analysis.report.sections.headline import headline
from plimsoll.analysis.report.sections.single_runs import (
    list_facts,
    measure_table,
    percentile_table,
    route_table,
    status_table,
)
from plimsoll.analysis.report.sections.storage import differences_table
from plimsoll.common.errors import PlimsollError, Severity
from plimsoll.common.hostile import script_json
from plimsoll.lab.experiment.folder import ExperimentFolder
from plimsoll.lab.experiment.status.text import lines
from plimsoll.lab.experiment.status.watch import StatusReader
from plimsoll.serve.catalogue import (
    SORTS,
    Catalogue,
    Document,
    ExperimentItem,
    Kind,
    RunQuery,
    filter_runs,
    filter_values,
    is_inside,
    newest_first,
    open_inside,
)
from plimsoll.serve.finished import (
    NO_VERDICT,
    NightHistory,
    RunCache,
    find_differences,
    read_nights,
    side_by_side,
)
from plimsoll.serve.guard import COOKIE, LOGIN, Guard, is_same, session_token
from plimsoll.serve.live import LiveRuns, Viewer, live_charts

_LARGEST_PAGE_BYTES = 128 << 20
_LARGEST_FORM_BYTES = 4096
_WRONG_TOKEN_S = 1.0
_LOOK_S = 1.0
TEMPLATES = Path(__file__).parent / "templates"
_FOREVER = "private, max-age=31536000, immutable"

_PAGES: dict[str, tuple[Kind, str, str]] = {
    "comparisons": (
        "comparison",
        "Comparisons",
        "Pages of plimsoll compare --html in this folder. To compare two runs side by side, pick them in "
        "the list of runs.",
    ),
    "sign-offs": ("sign-off", "Sign-offs", "Documents of plimsoll signoff in this folder."),
    "reports": ("report", "Reports", "Pages of plimsoll report in this folder."),
}


@dataclass
class Application:
    """The pages over one folder."""

    root: Path
    token: str | None = None
    index: Path | None = None
    catalogue: Catalogue = field(init=False)
    measuring: RunCache = field(init=False)
    following: LiveRuns = field(init=False)

    def __post_init__(self) -> None:
        self.catalogue, self.measuring = Catalogue(self.root, self.index), RunCache(self.root)
        self.following = LiveRuns(self.catalogue)

    def app(self, names: frozenset[str] = frozenset()) -> ASGIApp:
        """Return the application behind its guard. `names` are accepted beside localhost and IP addresses."""
        routes = [
            Route("/", self.runs),
            Route("/runs/{key}", self.run),
            Route("/runs/{key}/report", self.report),
            Route("/live", self.live),
            Route("/live/stream", self.stream),
            Route("/compare", self.compare),
            Route("/experiments", self.experiments),
            Route("/experiments/{key}", self.experiment),
            Route("/nights", self.nights),
            *(Route(f"/{name}", self.documents) for name in _PAGES),
            Route("/documents/{key}", self.document),
            Route("/documents/{key}/pdf", self.pdf),
            Route("/static/{name}", self.static),
            Route(LOGIN, self.login_form),
            Route(LOGIN, self.login, methods=["POST"]),
        ]
        handlers: Any = {HTTPException: _answer_error, PlimsollError: _answer_unreadable}
        return Guard(Starlette(routes=routes, exception_handlers=handlers), names, self.token)

    def runs(self, request: Request) -> Response:
        """The list of runs, with search and filters."""
        contents, choice = self.catalogue.contents(), RunQuery.of(request.query_params)
        everything = newest_first(list(contents.runs.values()))
        return page(
            "runs.html",
            scripts=["runs.js"],
            here="runs",
            folder=str(self.root),
            listed=filter_runs(everything, choice),
            choice=choice,
            values=filter_values(everything),
            orders={name: title for name, (title, _) in SORTS.items()},
            running=contents.running(),
            left_out=contents.left_out,
            any=bool(everything),
        )

    def run(self, request: Request) -> Response:
        """One run: its figures as the report has them, or where to see it live."""
        contents = self.catalogue.contents()
        item = _find_item(contents.runs, request)
        shared = {"item": item, "experiment": contents.around(item), "here": "runs"}
        if item.status == "running" or item.damage:
            return page("run.html", run=None, trouble=item.damage, **shared)
        try:
            run = self.measuring.measure([self.catalogue.path(item)])[0]
        except PlimsollError as error:
            return page("run.html", run=None, trouble=str(error), **shared)
        found = check_load(run)
        tables = [percentile_table(run), route_table(run), measure_table(run), status_table(run)]
        return page(
            "run.html",
            run_charts([run]),
            run=run,
            trouble=None,
            headline=headline(run, found),
            warnings=[finding for finding in found if finding.level != Severity.NOTE],
            tables=[table for table in tables if table],
            facts=list_facts(run),
            **shared,
        )

    def report(self, request: Request) -> Response:
        """The report of a run: the one beside it, or one rendered now and not kept."""
        contents = self.catalogue.contents()
        item = _find_item(contents.runs, request)
        if written := contents.report_of(item):
            return self._document(written)
        return sandbox_page(self.measuring.report(self.catalogue.path(item)))

    def live(self, request: Request) -> Response:
        """The run that is running now, or the one that was picked."""
        picked = request.query_params.get("run", "")
        if picked and picked not in self.catalogue.contents().runs:
            raise HTTPException(404)
        return page(
            "live.html",
            here="live",
            scripts=["plotly.js", "live.js"],
            data={"picked": picked, "charts": {chart.key: chart.as_json() for chart in live_charts()}},
            live=live_charts(),
            picked=picked,
        )

    async def stream(self, request: Request) -> Response:
        """One message a second, as server-sent events."""
        viewer = Viewer(request.query_params.get("run", ""))

        async def messages() -> AsyncIterator[str]:
            while True:
                message = await run_in_threadpool(self.following.look, viewer)
                yield f"data: {json.dumps(message, allow_nan=False)}\n\n"
                await asyncio.sleep(_LOOK_S)

        return StreamingResponse(messages(), media_type="text/event-stream")

    def compare(self, request: Request) -> Response:
        """Two runs side by side."""
        contents = self.catalogue.contents()
        keys = list(dict.fromkeys(request.query_params.getlist("run")))
        if len(keys) != 2:
            return page(
                "compare.html", here="runs", status=400, trouble=f"Pick two runs (picked: {len(keys)})."
            )
        if not all(key in contents.runs for key in keys):
            raise HTTPException(404)
        items = newest_first([contents.runs[key] for key in keys])[::-1]
        try:
            first, second = self.measuring.measure([self.catalogue.path(item) for item in items])
        except PlimsollError as error:
            return page("compare.html", here="runs", status=409, trouble=str(error))
        return page(
            "compare.html",
            run_charts([first, second]),
            here="runs",
            trouble=None,
            items=items,
            runs=[first, second],
            warnings=[NO_VERDICT, *find_differences(first, second)],
            table_of=side_by_side(first, second),
            differences=differences_table(storages_by_backend([first, second])),
        )

    def experiments(self, request: Request) -> Response:
        """The experiments of the folder."""
        contents = self.catalogue.contents()
        words = request.query_params.get("q", "")[:200].casefold().split()
        found = sorted(contents.experiments.values(), key=lambda each: each.changed_at, reverse=True)
        return page(
            "experiments.html",
            here="experiments",
            words=" ".join(words),
            experiments=[
                (each, len(contents.inside(each)), contents.report_of(each))
                for each in found
                if all(word in f"{each.name}\n{each.place}".casefold() for word in words)
            ],
        )

    def experiment(self, request: Request) -> Response:
        """One experiment: what it does or did, and its runs."""
        contents = self.catalogue.contents()
        item = _find_item(contents.experiments, request)
        return page(
            "experiment.html",
            here="experiments",
            item=item,
            status_lines=self._status(item),
            runs=contents.inside(item),
            report=contents.report_of(item),
        )

    def _status(self, item: ExperimentItem) -> list[str]:
        folder = self.catalogue.path(item)
        if not all(is_inside(self.root, path) for path in folder.glob("*.json*")):
            return ["a file of this experiment leads out of the folder that is served"]
        try:
            return lines(StatusReader(ExperimentFolder(folder)).read())
        except (PlimsollError, OSError) as error:
            return [str(error)]

    def nights(self, request: Request) -> Response:
        """The histories of the folder, and pages of nights in it."""
        contents = self.catalogue.contents()
        found: list[tuple[str, list[NightHistory], str | None]] = []
        for each in contents.histories.values():
            try:
                found.append((str(each.place), read_nights(self.catalogue.path(each)), None))
            except PlimsollError as error:
                found.append((str(each.place), [], str(error)))
        charts = [one.chart for _, experiments, _ in found for one in experiments if one.chart]
        return page(
            "nights.html", charts, here="nights", histories=found, documents=contents.of_kind("nights")
        )

    def documents(self, request: Request) -> Response:
        """Comparisons, sign-offs or reports: the pages that lie in the folder."""
        name = request.url.path.strip("/")
        kind, title, about = _PAGES[name]
        words = request.query_params.get("q", "")[:200].casefold().split()
        verdict = request.query_params.get("verdict", "")
        found = self.catalogue.contents().of_kind(kind)
        return page(
            "documents.html",
            here=name,
            title=title,
            about=about,
            words=" ".join(words),
            verdict=verdict,
            verdicts=sorted({each.verdict for each in found if each.verdict}),
            documents=[
                (each, self._find_pdf(each) is not None)
                for each in found
                if all(word in f"{each.title}\n{each.place}".casefold() for word in words)
                and verdict in ("", each.verdict)
            ],
        )

    def document(self, request: Request) -> Response:
        """A page that lies in the folder, in a sandbox."""
        return self._document(_find_item(self.catalogue.contents().documents, request))

    def pdf(self, request: Request) -> Response:
        """The PDF of a sign-off, to be saved."""
        text = self._find_pdf(_find_item(self.catalogue.contents().documents, request))
        if text is None:
            raise HTTPException(404)
        return Response(
            text,
            media_type="application/pdf",
            headers={"content-disposition": 'attachment; filename="signoff.pdf"'},
        )

    def _document(self, item: Document) -> Response:
        text = self._read(item.place)
        if text is None:
            raise HTTPException(404)
        return sandbox_page(text)

    def _find_pdf(self, item: Document) -> bytes | None:
        return self._read(item.place.with_suffix(".pdf")) if item.kind == "sign-off" else None

    def _read(self, place: Any) -> bytes | None:
        try:
            with open_inside(self.root, place) as file:
                text = file.read(_LARGEST_PAGE_BYTES + 1)
        except OSError:
            return None
        return None if len(text) > _LARGEST_PAGE_BYTES else text

    def static(self, request: Request) -> Response:
        """Our scripts and style sheets."""
        found = asset(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return found

    def login_form(self, _: Request) -> Response:
        """The form that asks for the token."""
        if self.token is None:
            return RedirectResponse("/", 303)
        return page("login.html", here="", trouble=None)

    async def login(self, request: Request) -> Response:
        """Check the token and open a session for the browser."""
        given = await _form_token(request)
        if self.token is None or not is_same(given, self.token):
            await asyncio.sleep(_WRONG_TOKEN_S)
            return page("login.html", here="", status=403, trouble="Wrong token.")
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, session_token(self.token), httponly=True, samesite="strict", path="/")
        return answer


async def _form_token(request: Request) -> str:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST_FORM_BYTES:
            raise HTTPException(413)
    fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=4)
    return fields.get("token", [""])[0].strip()


def _find_item(items: dict[str, Any], request: Request) -> Any:
    found = items.get(request.path_params["key"])
    if found is None:
        raise HTTPException(404)
    return found


def _answer_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    text = {404: "No such page in this folder.", 405: "This request is not allowed."}.get(
        status, "That went wrong."
    )
    return page("trouble.html", here="", status=status, text=text)


def _answer_unreadable(_: Request, error: Exception) -> Response:
    return page("trouble.html", here="", status=409, text=str(error))


# What lies on the disk carries scripts of its own. It gets an origin of its own, which is nobody's, and so
# neither cookie nor answer of this server; and it loads nothing.
SANDBOX = (
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


@dataclass(frozen=True)
class Asset:
    """A script or a style sheet, and the digest that changes its address when it changes."""

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
    return {**found, "plotly.js": Asset(read_plotly(), "text/javascript")}


def asset(name: str) -> Response | None:
    """Return the script or style sheet of that name, or None."""
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
    """Return a page with charts, `data` for its `scripts`, and a policy that blocks all other scripts."""
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


def sandbox_page(text: bytes) -> Response:
    """Return somebody else's page, isolated so that it cannot affect ours."""
    return Response(text, media_type="text/html", headers={"content-security-policy": SANDBOX})
