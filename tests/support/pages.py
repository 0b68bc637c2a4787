"""Pages and what is in them: hostile names, figures, text; and plimsoll serve, asked without a network."""

import asyncio
import html
import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.analysis.report.contents import Report, render_report
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import regress, runs_of, write_both, write_night
from tests.support.experiment import SLOW, write_one
from tests.support.rundir import change, records, write_run

HOSTILE = [
    "<script>window.owned = 1</script>",
    '"><img src=x onerror="window.owned = 1">',
    "</script><script>window.owned = 1</script>",
    "<b onmouseover='window.owned = 1'>b</b>",
    '<a href="javascript:window.owned = 1">a</a>',
    "%{customdata} ${window.owned = 1} {{ 7 * 7 }} {% raw %}",
    "\x1b[31m\x00\u202e\u2028 <!--",
    "&lt;script&gt;",
    "half a character: \ud800",
    "$\\href{javascript:1}{x}$",
    "var(--run-1)",
]
# The same in one line, with what JUnit, Markdown and a chat obey.
_HOSTILE_LINE = HOSTILE[0] + "]]>\"'&\x1b[31m\x01|`[x](javascript:owned=1)\u202e@everyone #1 %{x}"


def write_hostile_run(path: Path) -> Path:
    """Write a run whose every name is an attack."""
    table = records(3000)
    table["route"] = table["due_ns"] // 10**6 % len(HOSTILE)
    table["error"] = table["due_ns"] // 10**6 % 7
    text = HOSTILE[0]
    events = [{"t_ns": n * 10**8, "event": name, "phase": "start"} for n, name in enumerate(HOSTILE)]
    events += [
        {"t_ns": 10**9, "event": text, "phase": "start", "saturator": True},
        {"t_ns": 15 * 10**8, "event": text, "bytes": 10**6},
        {"t_ns": 2 * 10**9, "event": text, "phase": "stop"},
    ]
    return write_run(
        path,
        table,
        routes=HOSTILE,
        errors=["none", *HOSTILE],
        events=events,
        summary={"requests": {"sent": 3000, "skipped": dict.fromkeys(HOSTILE, 3)}, "duration_s": 3.0},
        scenario=HOSTILE[1],
        backend=HOSTILE[2],
        repeat=HOSTILE[3],
        status="failed",
        reason=HOSTILE[1],
        generator_limited=True,
        generator_limited_reason=HOSTILE[2],
        target={"url": HOSTILE[4], "connect_to": text, "addresses": HOSTILE},
        command=HOSTILE,
        speed=text,
        logs=[{"path": name, "format": name, "first": name, "last": name} for name in HOSTILE],
        program={"name": text, "version": text},
        host={"hostname": text, "kernel": text, "cpu": HOSTILE[1]},
    )


def write_hostile_experiment(folder: Path) -> list[Path]:
    """Write two runs on each of two backends; every name in them is an attack."""
    paths = []
    for number, (backend, scenario) in enumerate([(0, 1), (2, 1), (0, 1), (2, 1)]):
        kind = SLOW | {"emulated": HOSTILE[4]}
        path = write_one(
            folder / f"<img src=x onerror=window.owned=1>{number}",
            f"{HOSTILE[backend]}{HOSTILE[1]}",
            number // 2 + 1,
            scenario=HOSTILE[scenario],
            experiment=HOSTILE[5],
            **kind,
        )
        facts = {HOSTILE[0]: f"{HOSTILE[3]}{number}", "kernel": f"{HOSTILE[1]}{number}", "disks": HOSTILE}
        storage = {"emulated": HOSTILE[4], "clone": {"driver": HOSTILE[0]}, "facts": facts}
        change(path, storage=storage)
        (path / "host.csv").write_text("<script>window.owned = 1</script>\n")
        paths.append(path)
    return paths


def write_hostile_history(folder: Path) -> Path:
    """Write fifteen nights of a backend and a scenario with hostile names, a step, an unfit night."""
    history = folder / "history.sqlite"
    nights = [
        write_night(
            folder / "results",
            number,
            {_HOSTILE_LINE: 50.0 * (3 if number > 10 else 1) * (1 + number % 3 / 100)},
            repeats=1,
            program={"name": _HOSTILE_LINE},
            generator_limited=number == 8,
            generator_limited_reason=_HOSTILE_LINE,
        )
        for number in range(15)
    ]
    regress(history, *nights, "--set-baseline", "latest")
    return history


def write_hostile_sides(folder: Path) -> tuple[Path, Path]:
    """Write two sides whose every name is an attack, and return their folders."""
    names = (HOSTILE[0], HOSTILE[6])
    write_both(folder, 1.5, 5, names=("a", "b"), measures=[(HOSTILE[2], 4.0)], saturator=None)
    sides = []
    for side, name in zip(("a", "b"), names, strict=True):
        there = folder / f"<b onmouseover=window.owned=1>{side}"
        there.mkdir()
        for path in runs_of(folder, side):
            moved = path.rename(there / path.name)
            (moved / "routes.json").write_text(json.dumps(HOSTILE))
            storage = {"emulated": HOSTILE[4], "facts": {HOSTILE[3]: f"{HOSTILE[5]}{side}"}}
            change(moved, backend=name, scenario=HOSTILE[3], storage=storage, reason=HOSTILE[1])
        sides.append(there)
    change(sorted(sides[0].iterdir())[0], status="failed")
    return sides[0], sides[1]


def page_of_runs(*paths: Path) -> str:
    """Return the page of these runs, which is written nowhere."""
    opened = [RunDirectory.open(path) for path in paths]
    runs = [ReportRun.of(measure_in_detail(run), number) for number, run in enumerate(opened)]
    return render_report(Report(Path("report.html"), runs))


def text_of(made: Report) -> str:
    """Return the HTML of a report, without the figures after it."""
    page = made.path.read_text(encoding="utf-8")
    return page[: page.index('<script type="application/json"')]


def warnings_of(made: Report) -> str:
    text = text_of(made)
    start = text.index('id="warnings"')
    return text[start : text.index('class="card', start)]


def words_of(made: Report) -> str:
    """Return what a reader sees of a report: no tags, and one space between two words."""
    page = made.path.read_text(encoding="utf-8")
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def figures_of(made: Report) -> dict[str, Any]:
    return figures_in(made.path.read_text(encoding="utf-8"))


def figures_in(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page)
    assert found
    return dict(json.loads(found[1]))


def check_figure(figure: Any) -> None:
    """Raise for a property or a value that plotly does not know."""
    go.Figure(_coloured(figure))


def _coloured(value: Any) -> Any:
    """Do what the page's script does: a name of a colour becomes one."""
    if isinstance(value, str):
        return "#123456" if value.startswith("var(--") else value
    if isinstance(value, list):
        return [_coloured(item) for item in value]
    return {k: _coloured(v) for k, v in value.items()} if isinstance(value, dict) else value


def elements_in(page: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return each element of a page with its attributes."""
    reader = _Elements()
    reader.feed(page)
    return reader.found


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


_OWN = {"host": "127.0.0.1:8090", "accept": "text/html"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(
    app: Any, path: str, method: str = "GET", body: bytes = b"", headers: dict[str, str] | None = None
) -> Answer:
    """Ask an application of `plimsoll serve` as a browser that means this server does.

    `headers` come beside those of that browser; None takes one away.
    """
    given = {name: value for name, value in {**_OWN, **(headers or {})}.items() if value is not None}
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8090),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    start = sent[0]
    return Answer(
        start["status"],
        {name.decode(): value.decode() for name, value in start["headers"]},
        b"".join(message.get("body", b"") for message in sent[1:]),
    )
