"""The files that visitors fetch for a page are those that a real Chromium fetches, on four screens."""

import json
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser

from tests.support.programs import LONGEST_S, ROOT

SETS = {
    "wordpress": ("s 300w, m 768w, l 1024w, x 1536w", "(max-width: 652px) 100vw, 652px"),
    "lazy": ("s 300w, m 768w, l 1024w", "(max-width: 500px) 100vw, 290px"),
    "whole": ("s 300w, m 768w, l 1024w, x 1536w, y 3000w", ""),
    "sum": ("s 300w, m 768w, l 1024w", "calc(100vw - 60px)"),
    "near": ("s 600w, m 660w, l 1000w", "610px"),
    "fine": ("one, two 2x, three 3x", ""),
    "half": ("half 1.5x, two 2x", ""),
    "far": ("three 3x", ""),
    "range": ("s 300w, l 900w", "(width < 500px) 900px, 300px"),
}
SOURCES = {
    "format": '<source srcset="{0}.no" type="image/x-no"><source srcset="{0}.webp" type="image/webp">',
    "width": (
        '<source srcset="{0}-s" media="(max-width: 600px)">'
        '<source srcset="{0}-l" media="(min-width: 37.6em)">'
    ),
    "none": '<source srcset="{0}-p" media="print">',
    "fine-only": '<source srcset="{0}-fine 3x">',
}
SCREENS = [
    ("a laptop", 1366, 1.0),
    ("a phone", 412, 2.6),
    ("a tablet", 820, 2.0),
    ("a wide screen", 2560, 1.25),
]
SCRIPT = """
import {{ filesOf }} from '{root}/scenarios/k6/files.js';
import {{ Site }} from '{root}/scenarios/k6/address.js';
const html = open('{page}');
export default function () {{
  const screen = {{ width_px: {width}, pixel_ratio: {ratio} }};
  console.log(JSON.stringify(filesOf(html, '{url}/', new Site('{url}'), screen, null)));
}}
"""


HEAD = """<!DOCTYPE html><html><head><link rel="stylesheet" href="/a.css"><script src="/b.js"></script>
<link rel="preload" as="image" imagesrcset="/early/s 300w, /early/l 900w" imagesizes="100vw"></head><body>"""


def _image(name: str, offered: str, sizes: str) -> str:
    addresses = ", ".join(f"/{name}/{one}" for one in offered.split(", "))
    lazy = ' loading="lazy"' if name == "lazy" else ""
    within = f' sizes="{sizes}"' if sizes else ""
    return f'<img src="/{name}/own" srcset="{addresses}"{within}{lazy}>'


def _page() -> str:
    images = [_image(name, *offered) for name, offered in SETS.items()]
    pictures = [
        f'<picture>{sources.format(f"/{name}/it")}<img src="/{name}/own"></picture>'
        for name, sources in SOURCES.items()
    ]
    return "\n".join([HEAD, *images, *pictures, "</body></html>"])


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)
        self.server.asked.add(self.path)
        body = self.server.page.encode() if self.path == "/" else b""
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if body else "image/png")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    """Serves the page, and for all else an empty answer; `asked` are the paths."""

    def __init__(self, page: str) -> None:
        self.page, self.asked = page, set[str]()
        super().__init__(("127.0.0.1", 0), _Handler)


@pytest.fixture
def server() -> Iterator[_Server]:
    served = _Server(_page())
    Thread(target=served.serve_forever, daemon=True).start()
    yield served
    served.shutdown()
    served.server_close()


@pytest.mark.parametrize(("width", "ratio"), [row[1:] for row in SCREENS], ids=[row[0] for row in SCREENS])
def test_visitors_fetch_what_a_browser_fetches(
    server: _Server, browser: Browser, k6: Path, tmp_path: Path, width: int, ratio: float
) -> None:
    url = f"http://127.0.0.1:{server.server_port}"
    opened = browser.new_page(viewport={"width": width, "height": 900}, device_scale_factor=ratio)
    opened.goto(url, wait_until="networkidle")
    opened.close()
    (tmp_path / "page.html").write_text(_page())
    said = SCRIPT.format(root=ROOT, page=tmp_path / "page.html", url=url, width=width, ratio=ratio)
    (tmp_path / "script.js").write_text(said)
    line = [str(k6), "run", "--quiet", "--address=", "--summary-mode=disabled", "--log-format=json"]
    done = subprocess.run(
        [*line, str(tmp_path / "script.js")], capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    (told,) = [json.loads(text)["msg"] for text in done.stderr.splitlines() if text.startswith("{")]
    ours = {file.removeprefix(url) for file in json.loads(told)}
    assert sorted(ours) == sorted(server.asked - {"/", "/favicon.ico"})
