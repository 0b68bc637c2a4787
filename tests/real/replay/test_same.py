"""`bin/replay same` against two real nginx that serve copies of one folder, by the log of one of them."""

import gzip
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.signoff.same_pages import read_page_comparison
from tests.support.programs import DOCS, LONGEST_S, REPLAY, eventually, free_port, need, open_to_all

# Pages with a nonce ($request_id) and the time, as real pages have them; compression as usual.
CONFIG = """
daemon off; pid {root}/nginx.pid; error_log {root}/error.log; worker_processes 1;
events {{ }}
http {{
  include /etc/nginx/mime.types; access_log {root}/access.log combined;
  client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3;
  uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
  gzip on; gzip_min_length 20; gzip_types text/css application/javascript; charset utf-8;
  server {{
    listen 127.0.0.1:{port}; root {root}/www; absolute_redirect on;
    location / {{ ssi on; {more} }}
    location = /old {{ return 301 /page1.html; }}
    location = /gone {{ return 410; }}
  }}
}}
"""
PAGE = """<html><head><title>Shop, page {n}</title>
<link rel="canonical" href="http://<!--#echo var="http_host" -->/page{n}.html"></head><body>
<p>Old shoes, and page {n} of them. Größe {n}.</p>
<form><input name="_wpnonce" value="<!--#echo var="request_id" -->"></form>
<p>Rendered on <!--#echo var="date_gmt" -->, at <!--#echo var="msec" --> s.</p>
<img src="/wp-content/uploads/report.png"></body></html>
"""
TARGETS = (
    *(f"/page{n}.html" for n in range(1, 9)),
    "/page1.html?utm=1",
    "/style.css",
    "/wp-content/uploads/report.png",
    "/wp-content/uploads/bench.png",
    "/old",
    "/gone",
    "/never-there",
)


class Site:
    """A real nginx over a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.www = root, root / "www"
        self.port, self.url = 0, ""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, more: str = "") -> None:
        """Serve the folder; `more` is for the configuration of its location."""

        def answers() -> bool:
            if self.process is None or self.process.poll() is not None:
                self._launch(more)  # also where another program took the port meanwhile
            with suppress(OSError):
                urllib.request.urlopen(f"{self.url}/page1.html", timeout=LONGEST_S).read()  # noqa: S310 our own
            return "/page1.html" in _logged(self)  # it was this server that answered, and no other

        assert eventually(answers), (self.root / "error.log").read_text()

    def _launch(self, more: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        config = self.root / "nginx.conf"
        config.write_text(CONFIG.format(root=self.root, port=self.port, more=more))
        open_to_all(self.root)
        self.process = subprocess.Popen([need("nginx"), "-c", config, "-e", self.root / "error.log"])

    def stop(self) -> None:
        """End the server, when it has written its log."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    """The site and a copy of it, neither of them started."""
    need("nginx")
    need(REPLAY)
    first, second = Site(tmp_path / "site"), Site(tmp_path / "clone")
    uploads = first.www / "wp-content" / "uploads"
    uploads.mkdir(parents=True)
    for n in range(1, 9):
        (first.www / f"page{n}.html").write_text(PAGE.format(n=n), encoding="utf-8")
    (first.www / "style.css").write_text("body { color: black; }\n" * 40)
    for name in ("report.png", "bench.png"):
        shutil.copy2(DOCS / name, uploads / name)
    second.root.mkdir()
    shutil.copytree(first.www, second.www)
    yield first, second
    first.stop()
    second.stop()


def _logged(site: Site) -> str:
    log = site.root / "access.log"
    return log.read_text() if log.exists() else ""


def log_of(site: Site, folder: Path) -> Path:
    """Return a log that the site's own nginx wrote of all targets, compressed."""
    for target in TARGETS:
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(site.url + target, timeout=LONGEST_S).read()  # noqa: S310 our own
    # nginx logs a request when it is done with it, which is after its last byte
    assert eventually(lambda: all(f" {target} " in _logged(site) for target in TARGETS)), _logged(site)
    path = folder / "access.log.gz"
    path.write_bytes(gzip.compress((site.root / "access.log").read_bytes()))
    return path


def same(log: Path, sites: tuple[Site, Site], out: Path, *flags: str) -> tuple[int, dict[str, Any]]:
    command = [need(REPLAY), "same", str(log), "--baseline", sites[0].url, "--candidate", sites[1].url]
    command += ["--out", str(out), "--json", "--quiet", "--pause", "1100ms", *flags]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode != 2, ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def test_ten_quiet_pairs_are_the_same(sites: tuple[Site, Site], tmp_path: Path) -> None:
    for site in sites:
        site.start()
    log = log_of(sites[0], tmp_path)
    for _ in range(10):
        code, found = same(log, sites, tmp_path / "results")
        assert (code, found["verdict"], found["shown"]) == (0, "same", [])
        assert found["pages"]["same"] == len(TARGETS), found
        assert found["pages"]["same_2xx"] == len(TARGETS) - 3
    results = sorted((tmp_path / "results").iterdir())
    assert len(results) == 10
    read = read_page_comparison(results[0])
    assert read.is_same
    assert read.sentence == f"{len(TARGETS)} of {len(TARGETS)} pages are the same on both sides"


def _edit(path: str, change: Callable[[bytes], bytes]) -> Callable[[Site], str]:
    def plant(site: Site) -> str:
        file = site.www / path
        file.write_bytes(change(file.read_bytes()))
        return ""

    return plant


def _flip(data: bytes) -> bytes:
    return data[:5000] + bytes([data[5000] ^ 1]) + data[5001:]


def _missing(site: Site) -> str:
    (site.www / "wp-content/uploads/bench.png").unlink()
    return ""


def _forbidden(site: Site) -> str:
    (site.www / "page4.html").chmod(0)
    return "location = /page4.html { deny all; }"


def _header(_: Site) -> str:
    return 'add_header Cache-Control "no-store";'


IMAGE = "wp-content/uploads/report.png"
PLANTED: list[tuple[str, Callable[[Site], str], set[str], str]] = [
    ("a word of a text", _edit("page3.html", lambda t: t.replace(b"Old", b"New")), {"/page3.html"}, "text"),
    ("a byte of an image", _edit(IMAGE, _flip), {f"/{IMAGE}"}, "image"),
    ("an image cut off", _edit(IMAGE, lambda data: data[:4096]), {f"/{IMAGE}"}, "image"),
    ("a missing upload", _missing, {"/wp-content/uploads/bench.png"}, "status"),
    ("another theme", _edit("style.css", lambda t: t.replace(b"black", b"red")), {"/style.css"}, "text"),
    ("a page that is forbidden", _forbidden, {"/page4.html"}, "status"),
    ("a header", _header, {target for target in TARGETS if "." in target}, "header"),
]


@pytest.mark.parametrize(("what", "plant", "pages", "kind"), PLANTED, ids=[row[0] for row in PLANTED])
def test_a_planted_change_is_found_and_nothing_else(
    sites: tuple[Site, Site],
    tmp_path: Path,
    what: str,
    plant: Callable[[Site], str],
    pages: set[str],
    kind: str,
) -> None:
    sites[0].start()
    sites[1].start(plant(sites[1]))
    code, found = same(log_of(sites[0], tmp_path), sites, tmp_path / "results")
    said = [(site.process and site.process.poll(), (site.root / "error.log").read_text()) for site in sites]
    assert (code, found["reason"]) == (1, None), (what, found["says"], found["shown"][:2], said)
    assert {page["path"] for page in found["shown"]} == pages
    assert {page["kind"] for page in found["shown"]} == {kind}
    assert found["pages"]["same"] == len(TARGETS) - len(pages)
    result = read_page_comparison(next((tmp_path / "results").iterdir()))
    assert not result.is_same
    assert {page.path for page in result.different} == pages
