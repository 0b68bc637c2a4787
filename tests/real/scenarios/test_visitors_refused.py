"""Visitors of sites that are not as they should be: each is told, and no other host is reached."""

import contextlib
import json
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.programs import free_port
from tests.support.scenario import facts_of, nobody_came, requests_of, visit


@contextlib.contextmanager
def answering(pages: dict[str, tuple[int, str]]) -> Iterator[str]:
    """A site with these statuses and bodies by path, and 404 elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body = pages.get(self.path.partition("?")[0], (404, ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_front_page_behind_a_login_is_said(k6: Path, tmp_path: Path) -> None:
    with answering({"/": (401, "")}) as url:
        done = visit(url, tmp_path)
    assert done.returncode == 1, done.stderr
    assert (
        f"failed: front page: status 401: it requires a login: give one with --basic-auth-file: {url}/"
        in done.stdout
    )
    assert facts_of(tmp_path / "latest")["status"] == "failed"


def test_a_front_page_that_leads_away_is_said(k6: Path, redirecting: str, tmp_path: Path) -> None:
    done = visit(f"{redirecting}/elsewhere", tmp_path)
    assert done.returncode == 1, done.stderr
    assert "front page: status 302, which leads to http://127.0.0.1:" in done.stdout


LINKS = [
    ("under another scheme", "https://127.0.0.1/p{}", 1),
    ("on another host", "https://live.test/p{}", 7),
]


@pytest.mark.parametrize(("why", "link", "count"), LINKS)
def test_a_site_whose_links_are_elsewhere_is_refused(
    k6: Path, tmp_path: Path, why: str, link: str, count: int
) -> None:
    page = "".join(f'<a href="{link.format(number)}">a page</a>' for number in range(count))
    with answering({"/": (200, page)}) as url:
        done = visit(url, tmp_path)
        listed = tmp_path / "pages.txt"
        listed.write_text("/\n")
        named = visit(url, tmp_path / "named", "--pages", str(listed))
    assert done.returncode == 1, why
    said = f"failed: {url}/ links to no further page of its own, and by {count} links to {link[:-4]}: give"
    assert said in done.stdout
    assert named.returncode == 0, "whoever names the pages wants them"


def test_files_that_did_not_load_are_named(k6: Path, tmp_path: Path) -> None:
    page = "".join(f'<link rel="stylesheet" href="/{number}.css?token=hunter2">' for number in range(8))
    files = {f"/{number}.css": (200, "x") for number in range(6)}
    with answering({"/": (200, page), **files}) as url:
        done = visit(url, tmp_path, "--rate", "5", "--pages-per-visit", "1")
    assert done.returncode == 1, done.stderr
    run = tmp_path / "latest"
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    details = Counter(event["detail"] for event in events if event.get("kind") == "missing_file")
    visits = details["/6.css: status 404"]
    assert visits > 10
    assert details == {"/6.css: status 404": visits, "/7.css: status 404": visits}
    for detail in details:
        assert f"did not load: {detail}\n" in done.stdout
    assert facts_of(run)["status"] == "complete"
    assert facts_of(run)["reason"].startswith(f"{2 * visits} of ")
    assert "hunter2" not in done.stdout + (run / "events.jsonl").read_text()


def test_nobody_there_is_a_failed_run(k6: Path, tmp_path: Path) -> None:
    done = visit(f"http://127.0.0.1:{free_port()}", tmp_path)
    assert done.returncode == 1, done.stderr
    assert facts_of(tmp_path / "latest")["status"] == "failed"
    assert "connection refused" in facts_of(tmp_path / "latest")["reason"]
    assert requests_of(tmp_path / "latest")["errors"] == 1


@pytest.fixture
def redirecting(elsewhere: socket.socket) -> Iterator[str]:
    """A site that leads away from itself, and in circles."""
    away = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            to = {"/away": away, "/round": "/round", "/here": "/", "/elsewhere/": away}.get(self.path)
            self.send_response(302 if to else 200)
            if to:
                self.send_header("Location", to)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


REDIRECTS: list[tuple[str, str, Callable[[int], bool]]] = [
    ("within the site it is followed", "/here", lambda code: code == 0),
    ("to another host it is not", "/away", lambda code: code == 1),
    ("a circle ends", "/round", lambda code: code == 1),
]


@pytest.mark.parametrize(("why", "path", "right"), REDIRECTS)
def test_redirects_stay_on_the_site(
    k6: Path,
    redirecting: str,
    elsewhere: socket.socket,
    tmp_path: Path,
    why: str,
    path: str,
    right: Callable[[int], bool],
) -> None:
    listed = tmp_path / "pages.txt"
    listed.write_text(path + "\n")
    done = visit(redirecting, tmp_path / "results", "--pages", str(listed), "--duration-s", "1")
    assert right(done.returncode), why
    assert nobody_came(elsewhere)
