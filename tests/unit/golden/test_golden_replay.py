"""What bin/replay says of logs, of two sites, and of a replay."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.golden import Row, check_golden, run, settle, transcript

LINE = '{} - - [20/Nov/2026:23:55:{} +0000] "{}" {} {} "-" "{}"\n'
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
FILES = {
    "small.log": (
        LINE.format("203.0.113.7", "01", "GET / HTTP/1.1", 200, 5120, FIREFOX)
        + LINE.format("203.0.113.7", "02", "GET /news?id=5 HTTP/1.1", 200, 2048, FIREFOX)
        + LINE.format("203.0.113.8", "02", "GET /old HTTP/1.1", 301, 0, "curl/8.5.0")
        + LINE.format("203.0.113.8", "03", "POST /wp-login.php HTTP/1.1", 200, 900, "curl/8.5.0")
    ),
    "odd.log": (
        LINE.format("2001:db8::1", "01", "GET /caf%C3%A9 HTTP/2.0", 200, 10, "\\x1b[31mred\\x1b[0m")
        + LINE.format("web.example", "02", "\\x16\\x03\\x01", 400, 0, "-")
        + LINE.format("10.0.0.1", "61", "GET /late HTTP/1.1", 200, 1, "-")
        + LINE.format("10.0.0.2", "03", 'GET /?q="a" HTTP/1.1', 200, "-", 'say "hi"')
        + "half a li"
    ),
    "squid.log": "1763682922.123    110 10.0.0.1 TCP_MISS/200 512 GET http://a.example/x - NONE/- text\n",
    "caddy.log": (
        '{"level":"info","ts":1763682922.5,"msg":"handled request","request":{"remote_ip":"10.0.0.1",'
        '"proto":"HTTP/2.0","method":"GET","host":"a.example","uri":"/x","headers":{"User-Agent":["curl"]}},"duration":0.11,"size":512,'
        '"status":200}\n'
    ),
    "timed.log": '10.0.0.1 [20/Nov/2026:23:55:01 +0100] "GET /a HTTP/1.1" 200 7 0.250\n',
}
PARSE: list[Row] = [
    ("totals of a log", "replay parse --stats examples/access.log"),
    ("totals of a log that is packed", "replay parse --stats examples/site.log.gz"),
    ("totals of both, in order of time", "replay parse --stats examples/access.log examples/site.log.gz"),
    ("each request of a small log", "replay parse small.log"),
    (
        "standard input",
        f"printf '{LINE.format('10.0.0.1', '01', 'GET / HTTP/1.1', 200, 5, '-').strip()}' | replay parse -",
    ),
    ("lines that are not requests", "replay parse odd.log"),
    ("lines that are not requests, with --allow-rejects", "replay parse --allow-rejects odd.log"),
    ("only totals of these", "replay parse --allow-rejects --stats --quiet odd.log"),
    ("only addresses as clients", "replay parse --allow-rejects --strict-hosts --stats odd.log"),
    ("Squid's log", "replay parse squid.log"),
    ("Caddy's log", "replay parse caddy.log"),
    ("a format of one's own", """replay parse --format '%h [%d:%t %^] "%r" %s %b %T' timed.log"""),
    ("a goaccess.conf", "replay parse --config goaccess.conf timed.log"),
]
RUN: list[Row] = [
    ("a replay as fast as it goes", "replay run examples/access.log --speed max --limit 40 --connections 1"),
    ("its limits kept", "replay run small.log --speed max --fail-over p50=20s --fail-over errors=50%"),
    ("a limit that is not kept", "replay run small.log --speed max --fail-over max=1ms --target {slow}"),
    ("a limit that needs more requests", "replay run small.log --speed max --fail-over p99.9=800ms"),
    ("a site that fails", "replay run small.log --speed max --target {broken}"),
    ("the summary as JSON", "replay run small.log --speed max --json"),
    ("a log with durations, imported", """replay import timed.log --format '%h [%d:%t %^] "%r" %s %b %T'"""),
]
SAME: list[Row] = [
    (
        "a site and itself",
        "replay same small.log --concurrency 1 --pause 1ms --baseline {site} --candidate {site}",
    ),
    (
        "a site and its copy, one page of which is another",
        "replay same small.log --concurrency 1 --pause 1ms --baseline {site} --candidate {copy}",
    ),
    (
        "the same as JSON",
        "replay same small.log --concurrency 1 --pause 1ms --baseline {site} --candidate {copy} --json",
    ),
    (
        "a site and one that fails",
        "replay same small.log --concurrency 1 --pause 1ms --baseline {site} --candidate {broken}",
    ),
    (
        "no page to compare",
        "replay same small.log --baseline {site} --candidate {copy} --include nothing",
    ),
]


class _Server(ThreadingHTTPServer):
    """A server that says nothing of clients that hang up."""

    def handle_error(self, request: object, client_address: object) -> None:
        pass


class _Site(BaseHTTPRequestHandler):
    """Answers as the server is told to: `site`, `copy`, `slow` or `broken`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind = getattr(self.server, "kind", "site")
        news = kind == "copy" and self.path.startswith("/news")
        body = b"<p>other news</p>" if news else f"<p>{self.path.partition('?')[0]}</p>".encode()
        if kind == "slow":
            threading.Event().wait(0.002)
        self.send_response(500 if kind == "broken" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def sites() -> Iterator[dict[str, str]]:
    """Serve sites of each kind, and return their base URLs."""
    servers = {kind: _Server(("127.0.0.1", 0), _Site) for kind in ("site", "copy", "slow", "broken")}
    for kind, server in servers.items():
        server.kind = kind  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield {kind: f"http://127.0.0.1:{server.server_port}" for kind, server in servers.items()}
    for server in servers.values():
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settle(tmp_path, monkeypatch)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "goaccess.conf").write_text(
        'log-format %h [%d:%t %^] "%r" %s %b %T\ndate-format %d/%b/%Y\ntime-format %T\n'
    )
    return tmp_path


def _filled(rows: list[Row], sites: dict[str, str]) -> list[Row]:
    return [(why, line.format(**sites)) for why, line in rows]


def _ports(sites: dict[str, str]) -> dict[str, str]:
    return {rf"{url.removeprefix('http://')}\b": f"{kind}.example" for kind, url in sites.items()}


def test_parse() -> None:
    check_golden("replay-parse.txt", transcript(PARSE, run(PARSE)))


def test_run(sites: dict[str, str]) -> None:
    rows = _filled(RUN, sites)
    figures = {
        r"^(\d \S+|Total) +(\d+) +(\d+) .*": r"\1  \2  \3  …",
        r'("(?:mean|stddev|min|max|p[\d.]+|duration_s|M?TT[A-Z]*_ms|TT|TPS|RBPS)": )[\d".:]+': r"\1#",
        r'("records_sha256": )"\w+"': r'\1"…"',
        r"took [\d.]+ ms": "took # ms",
        r"(?<![\w.])\d+\.\d+(?![\w.])": "#",
        r"(?<=\S)  +": "  ",
    }
    check_golden("replay-run.txt", transcript(rows, run(rows), _ports(sites) | figures))


def test_same(sites: dict[str, str]) -> None:
    rows = _filled(SAME, sites)
    facts = {r'("(?:(?:started|ended)_at|version|go)": )"[^"]*"': r'\1"…"'}
    check_golden("replay-same.txt", transcript(rows, run(rows), _ports(sites) | facts))
