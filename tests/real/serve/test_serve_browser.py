"""`plimsoll serve` in a real Chromium: through a run, by keyboard, with hostile names, from other pages."""

import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from plimsoll.analysis.report.making import make_report
from tests.support.pages import HOSTILE, write_hostile_run
from tests.support.programs import PLIMSOLL, REPLAY, ROOT, need, skip_or_fail
from tests.support.rundir import records, traffic, write_run

AXE = ROOT / "tools" / "node" / "node_modules" / "axe-core" / "axe.min.js"
TOKEN = "0123456789" + "abcdef"
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
WIDE: dict[str, Any] = {"color_scheme": "light", "viewport": {"width": 1200, "height": 900}}
NARROW: dict[str, Any] = {"color_scheme": "dark", "viewport": {"width": 400, "height": 850}}


class Serving:
    """A server over a folder; `url` is where."""

    def __init__(self, folder: Path, **environment: str) -> None:
        command = [str(PLIMSOLL), "serve", str(folder), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        )
        assert self.process.stdout
        found = re.search(r"http://\S+/", self.process.stdout.readline())
        assert found
        self.url = found[0]

    def stop(self) -> None:
        with self.process:
            self.process.send_signal(signal.SIGINT)
        assert self.process.returncode == 0


class Tab:
    """A page, and what it complained of."""

    def __init__(self, browser: Browser, url: str, **context: Any) -> None:
        self.complaints: list[str] = []
        self.page: Page = browser.new_page(**(context or WIDE))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.set_default_timeout(120_000)
        self.page.goto(url)

    def until(self, expression: str) -> None:
        """Wait until it is true: Playwright's own way to wait is one that the page's policy forbids."""
        for _ in range(12_000):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"{expression}: {self.page.inner_text('body')[:500]}")

    def drawn(self) -> None:
        self.until("document.documentElement.dataset.drawn === 'true'")


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        skip_or_fail("axe-core is not in tools/node: make lint installs it")
    return AXE.read_text(encoding="utf-8")


def violations(page: Page, axe: str) -> list[str]:
    page.evaluate(f"{axe}\n;0")
    found = page.evaluate(
        f"axe.run(document, {{runOnly: {{type: 'tag', values: {LEVELS}}}}})"
        ".then((result) => { window.passed = result.passes.length; return result.violations; })"
    )
    assert page.evaluate("window.passed") > 5, "axe looked"
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("results")
    for number, backend in enumerate(["sata", "nvme"]):
        write_run(
            folder / f"run-{number}",
            traffic(120, 60, seed=number, stall_s=(40, 60) if number == 0 else (0, 0)),
            routes=["page", "image", "css-js", "admin-ajax"],
            backend=backend,
            started_at=f"2026-11-2{number}T10:00:00Z",
            summary={"requests": {"sent": 7000}, "duration_s": 120.0},
        )
    write_hostile_run(folder / "<img src=x onerror=window.owned=1>")
    make_report([folder / "run-0"])
    serving = Serving(folder)
    yield serving
    serving.stop()


@pytest.fixture
def serve() -> Iterator[Callable[..., Serving]]:
    """Serves folders until the test ends."""
    started: list[Serving] = []

    def begin(folder: Path, **environment: str) -> Serving:
        started.append(Serving(folder, **environment))
        return started[-1]

    yield begin
    for serving in started:
        serving.stop()


def keys_of(page: Page) -> dict[str, str]:
    """The keys of the runs of the list, by the place that stands there."""
    return dict(
        page.eval_on_selector_all(
            ".things tbody tr",
            "rows => rows.map(row => [row.querySelector('.place').textContent, "
            "row.querySelector('th a').getAttribute('href').split('/').pop()])",
        )
    )


def test_every_page_is_accessible_quiet_and_fits(browser: Browser, served: Serving, axe: str) -> None:
    tab = Tab(browser, served.url)
    keys = keys_of(tab.page)
    compare = f"compare?run={keys['run-0']}&run={keys['run-1']}"
    for path in (
        "",
        f"runs/{keys['run-0']}",
        compare,
        "live",
        "experiments",
        "nights",
        "sign-offs",
        "reports",
    ):
        tab.page.goto(served.url + path)
        if path.startswith(("runs", "compare")):
            tab.drawn()
        for look in (WIDE, NARROW):
            tab.page.set_viewport_size(look["viewport"])
            tab.page.emulate_media(color_scheme=look["color_scheme"])
            assert violations(tab.page, axe) == [], (path, look)
            tab.until(f"document.documentElement.scrollWidth <= {look['viewport']['width']}")
        assert tab.complaints == [], path
    tab.page.close()


def test_two_runs_are_picked_and_compared_by_keyboard(browser: Browser, served: Serving) -> None:
    tab = Tab(browser, served.url)
    page = tab.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.get_by_role("searchbox").focus()
    page.keyboard.type("run-")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=2 runs")
    for name in ("sata", "nvme"):
        page.get_by_role("checkbox", name=re.compile(name)).focus()
        page.keyboard.press("Space")
    assert page.inner_text("#picked") == "Two picked."
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare?**")
    tab.drawn()
    columns = page.locator("thead").first.inner_text().rstrip().split("\t")
    assert columns[1:] == ["sata", "nvme", "second ÷ first"]
    assert page.locator(".js-plotly-plot .main-svg").count() >= 5
    assert page.pdf().startswith(b"%PDF")
    assert tab.complaints == []
    page.close()


def test_nothing_of_a_hostile_run_is_executed(browser: Browser, served: Serving) -> None:
    tab = Tab(browser, served.url)
    keys = keys_of(tab.page)
    hostile = next(key for place, key in keys.items() if "img" in place)
    pages = (
        "",
        f"runs/{hostile}",
        f"compare?run={hostile}&run={keys['run-0']}",
        "?q=<script>window.owned=1</script>",
    )
    for path in pages:
        tab.page.goto(served.url + path)
        if path.startswith(("runs", "compare")):
            tab.drawn()
            for figure in tab.page.locator(".plot").all():
                figure.scroll_into_view_if_needed()
                figure.hover()
        assert tab.page.evaluate("window.owned") is None
        assert tab.page.locator("main img, main iframe, .plot a").count() == 0
        assert tab.complaints == []
    tab.page.goto(f"{served.url}runs/{hostile}/report")
    tab.until("document.documentElement.dataset.drawn === 'true'")
    assert tab.page.evaluate("window.owned") is None
    tab.page.close()


_PROBE = """<meta http-equiv="Content-Security-Policy" content="default-src * 'unsafe-inline'">
<title>Brought along – Plimsoll</title><script>
const said = [];
const note = (what, promise) => promise.then(() => said.push(what), () => {});
note("fetched", fetch("/"));
note("sent away", fetch("http://127.0.0.1:1/", {mode: "no-cors"}));
try { said.push("cookie " + document.cookie); } catch (error) { }
try { localStorage.setItem("a", "b"); said.push("stored"); } catch (error) { }
try { if (open("/")) said.push("opened"); } catch (error) { }
setTimeout(() => { document.documentElement.dataset.said = JSON.stringify([origin, said]); }, 1500);
</script>"""


def test_a_report_that_somebody_brought_along_reaches_nothing(
    browser: Browser, serve: Callable[..., Serving], tmp_path: Path
) -> None:
    (tmp_path / "brought.html").write_text(_PROBE)
    serving = serve(tmp_path, PLIMSOLL_SERVE_TOKEN=TOKEN)
    tab = Tab(browser, serving.url)
    page = tab.page
    assert page.url.endswith("/login")
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Reports").click()
    page.get_by_role("link", name="Brought along").click()
    tab.until("document.documentElement?.dataset.said !== undefined")  # a page that is being left has none
    assert page.evaluate("document.documentElement.dataset.said") == '["null",[]]'
    page.close()


def test_pages_of_other_servers_get_nothing(browser: Browser, served: Serving) -> None:
    text = f"""<title>other</title><iframe src="{served.url}"></iframe>
    <img src="{served.url}static/serve.css"><a href="{served.url}">in</a><script>
    fetch("{served.url}").then((answer) => answer.text()).then((text) => document.title = text, () => 0);
    fetch("{served.url}", {{mode: "no-cors"}}).then((answer) => answer.text())
        .then((text) => document.title += text, () => 0);
    </script>""".encode()

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        tab = Tab(browser, f"http://127.0.0.1:{other.server_address[1]}/")
        tab.page.wait_for_timeout(1000)
        assert tab.page.title() == "other"
        frame = tab.page.frames[1]
        assert "run-0" not in frame.content()
        tab.page.click("a")
        tab.page.wait_for_selector("text=Pages of other servers are refused")
        tab.page.close()
        other.shutdown()


def test_a_run_is_followed_from_before_it_begins_until_after_it_ended(
    browser: Browser, serve: Callable[..., Serving], tmp_path: Path, axe: str
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    serving = serve(results)
    tab = Tab(browser, f"{serving.url}live")
    tab.until("document.getElementById('state').textContent.startsWith('Nothing is running')")
    log = str(ROOT / "examples" / "access.log")
    command = [str(need(REPLAY)), "run", "--quiet", "--out", str(results), "--speed", "0.1", log]
    with subprocess.Popen(command) as replay:
        try:
            tab.drawn()
            tab.until("document.querySelectorAll('#numbers tbody tr').length >= 3")
            assert "runs." in tab.page.inner_text("#state")
            tab.until("document.querySelectorAll('#figure-tail .scatterlayer .trace').length >= 1")
            assert "run start" in tab.page.inner_text("#events")
            tab.page.close()

            again = Tab(browser, f"{serving.url}live", **NARROW)
            again.drawn()
            again.until("document.querySelectorAll('#numbers tbody tr').length >= 5")
            assert violations(again.page, axe) == []
            assert again.page.evaluate("document.documentElement.scrollWidth") <= 400
        finally:  # it would last ten minutes, so that a slow browser is in time
            replay.send_signal(signal.SIGINT)
    again.until("document.getElementById('state').textContent.startsWith('It has ended')")
    assert "interrupted" in again.page.inner_text("#state")
    assert again.page.pdf().startswith(b"%PDF")
    with again.page.expect_navigation():
        again.page.get_by_role("link", name="The finished run").click()
    again.drawn()
    assert again.page.locator("#headline .bigs dd").count() == 4
    assert again.complaints == []
    assert tab.complaints == []
    again.page.close()


def test_hostile_events_are_text_while_a_run_goes_on(
    browser: Browser, serve: Callable[..., Serving], tmp_path: Path
) -> None:
    events = [{"t_ns": n * 10**9, "event": name, "phase": "start"} for n, name in enumerate(HOSTILE)]
    events += [{"t_ns": 20 * 10**9, "event": name, "phase": "stop", "detail": name} for name in HOSTILE]
    run = write_run(
        tmp_path / "<b>run",
        records(3000),
        status="running",
        ended_at=None,
        scenario=HOSTILE[1],
        backend=HOSTILE[2],
        target={"url": HOSTILE[4]},
        started_at=f"{datetime.now(UTC) - timedelta(seconds=30):%Y-%m-%dT%H:%M:%S.%fZ}",
        events=events,
    )
    ended = threading.Event()

    def touch() -> None:  # as its writer does each second
        while not ended.wait(1):
            os.utime(run / "requests.npy")

    threading.Thread(target=touch, daemon=True).start()
    serving = serve(tmp_path)
    tab = Tab(browser, f"{serving.url}live")
    tab.drawn()
    assert tab.page.locator("#events li").count() == 2 * len(HOSTILE)
    for figure in tab.page.locator(".plot").all():
        figure.scroll_into_view_if_needed()
        figure.hover()
    assert tab.page.evaluate("window.owned") is None
    assert tab.page.locator("main img, main iframe, main b, .plot a").count() == 0
    assert tab.complaints == []
    ended.set()
    tab.page.close()
