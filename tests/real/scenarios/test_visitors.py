"""Visitors: a real k6 against a real nginx, and against WordPress. k6, nginx and the records count alike."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from plimsoll.rundir.directory import RunDirectory
from scenarios.k6.build import k6_program
from tests.support.paths import ROOT
from tests.support.programs import Nginx, free_port, need
from tests.support.sitestack import Site, eventually

PAGE = """<html><head><link rel="stylesheet" href="/style.css"><script src="/script.js"></script>
<script src="{foreign}/spy.js"></script></head><body><img src="/a.png"><img src="{foreign}/spy.png">
<a href="/one.html">one</a><a href="/two.html">two</a><a href="{foreign}/">elsewhere</a></body></html>"""


@pytest.fixture(scope="session")
def k6() -> Path:
    """The pinned k6, built where it was not."""
    if not os.environ.get("PLIMSOLL_K6"):
        need("go")
    return k6_program(print)[0]


@pytest.fixture
def elsewhere() -> Iterator[socket.socket]:
    """Another host, which nobody may reach: whoever connects stays in its backlog."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        listening.setblocking(False)
        yield listening


def nobody_came(elsewhere: socket.socket) -> bool:
    try:
        elsewhere.accept()
    except BlockingIOError:
        return True
    return False


@pytest.fixture
def pages(nginx: Nginx, elsewhere: socket.socket, k6: Path) -> Nginx:
    """An nginx with three pages, whose files are partly elsewhere."""
    www = nginx.log.parent / "www"
    foreign = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
    for name in ("page.html", "index.html", "one.html", "two.html"):
        (www / name).write_text(PAGE.format(foreign=foreign))
    for name in ("style.css", "script.js", "a.png"):
        (www / name).write_bytes(b"x" * 5000)
    return nginx


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


def command(target: str, out: Path, *options: str) -> list[str]:
    line = [sys.executable, "-m", "plimsoll", "scenario", "visitors", "--target", target, "--out", str(out)]
    return [*line, "--duration-s", "3", "--think-s", "0.1", *options]


def visit(target: str, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(target, out, *options), capture_output=True, text=True, timeout=300, check=False, cwd=ROOT
    )


def started(line: list[str], run: Path) -> "subprocess.Popen[str]":
    """A run whose first requests are recorded."""
    process = subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    records = run / "requests.npy"
    assert eventually(lambda: records.exists() and records.stat().st_size > 2000)
    return process


def facts(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "run.json").read_text())
    return found


def requests(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_text())["requests"]
    return found


def k6_counted(run: Path) -> int:
    """What k6 itself says at its end."""
    count: int = json.loads((run / "k6-summary.json").read_text())["metrics"]["http_reqs"]["count"]
    return count


def targets(nginx: Nginx) -> Counter[str]:
    """How often each target was asked for, according to nginx."""
    return Counter(line.split("\t")[1].split(" ")[1] for line in nginx.log.read_text().splitlines())


def test_the_scripts_arithmetic(k6: Path) -> None:
    script = str(ROOT / "tests" / "support" / "k6_units.js")
    line = [str(k6), "run", "--quiet", "--address=", "--summary-mode=disabled", script]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert "level=error" not in done.stderr, done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("model", ["constant-arrival-rate", "ramping-arrival-rate", "ramping-vus"])
def test_k6_nginx_and_the_records_count_alike(
    pages: Nginx, elsewhere: socket.socket, tmp_path: Path, model: str
) -> None:
    done = visit(pages.url, tmp_path, "--model", model, "--rate", "20", "--visitors", "5")
    assert done.returncode == 0, done.stderr
    pages.stop()
    run = RunDirectory.open(tmp_path / "latest")
    records = run.requests.mapped()
    logged = targets(pages)
    assert len(records) == k6_counted(run.path) == sum(logged.values())
    assert set(logged) == {
        "/", "/one.html", "/two.html", "/style.css", "/script.js", "/a.png",
        "/sitemap.xml", "/wp-sitemap.xml", "/feed/",
    }  # fmt: skip
    assert logged["/"] > logged["/two.html"], "the first pages are read more often"
    assert nobody_came(elsewhere)
    assert set(run.routes) == {"discovery", "front page", "page", "css-js", "image"}
    named = np.array(run.routes)[records["route"]]
    assert (records["bytes"][(named == "image") | (named == "css-js")] == 5000).all()
    assert run.status == "complete"
    assert run.facts.loop == ("closed" if model == "ramping-vus" else "open")


def test_due_instants_are_those_of_the_rate(pages: Nginx, tmp_path: Path) -> None:
    done = visit(pages.url, tmp_path, "--rate", "50", "--pages-per-visit", "1")
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "latest")
    records = run.requests.mapped()
    first = records[records["lag_us"] > 0]
    slope = np.polyfit(first["line"].astype(float), first["due_ns"] / 1e9, 1)[0]
    assert abs(slope * 50 - 1) < 0.01
    assert len(np.unique(first["line"])) == len(first), "one request of a visit has its lag"


def test_a_seed_asks_for_the_same(pages: Nginx, tmp_path: Path) -> None:
    asked = []
    for seed in ("7", "7", "8"):
        before = targets(pages)
        done = visit(pages.url, tmp_path / seed, "--seed", seed, "--rate", "20", "--duration-s", "2.99")
        assert done.returncode == 0, done.stderr
        asked.append(targets(pages) - before)
    assert asked[0] == asked[1]
    assert asked[0] != asked[2]


def test_a_front_page_behind_a_login_is_said(k6: Path, tmp_path: Path) -> None:
    with answering({"/": (401, "")}) as url:
        done = visit(url, tmp_path)
    assert done.returncode == 1, done.stderr
    assert (
        f"failed: front page: status 401: it wants a login, which visitors do not have: {url}/" in done.stdout
    )
    assert facts(tmp_path / "latest")["status"] == "failed"


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
        assert f"did not load: {detail}, {visits} times" in done.stdout
    assert facts(run)["status"] == "complete"
    assert facts(run)["reason"].startswith(f"{2 * visits} of ")
    assert "hunter2" not in done.stdout + (run / "events.jsonl").read_text()


def test_a_threshold_is_the_answer_no(pages: Nginx, tmp_path: Path) -> None:
    done = visit(pages.url, tmp_path, "--max-p999-ms", "0.001")
    assert done.returncode == 1
    assert facts(tmp_path / "latest")["status"] == "complete"
    assert facts(tmp_path / "latest")["reason"] == "a threshold was crossed"
    assert visit(pages.url, tmp_path, "--max-p999-ms", "60000").returncode == 0


def test_too_few_visitors_limit_the_generator(pages: Nginx, tmp_path: Path) -> None:
    done = visit(pages.url, tmp_path, "--rate", "50", "--max-visitors", "2", "--think-s", "0.5")
    assert done.returncode == 0, done.stderr
    run = tmp_path / "latest"
    dropped = requests(run)["skipped"]["dropped_iterations"]
    assert dropped > 100
    assert facts(run)["generator_limited"]
    assert f"{dropped} iterations" in facts(run)["generator_limited_reason"]
    assert "--max-visitors" in facts(run)["generator_limited_reason"]


def test_a_file_of_pages_is_all_that_is_read(pages: Nginx, tmp_path: Path) -> None:
    listed = tmp_path / "pages.txt"
    listed.write_text("# mine\n/two.html\n")
    done = visit(pages.url, tmp_path / "results", "--pages", str(listed), "--no-files")
    assert done.returncode == 0, done.stderr
    pages.stop()
    assert set(targets(pages)) == {"/two.html"}


def test_a_clone_answers_under_the_sites_name(pages: Nginx, tmp_path: Path) -> None:
    done = visit("http://site.example", tmp_path, "--connect-to", f"localhost:{pages.port}")
    assert done.returncode == 0, done.stderr
    assert requests(tmp_path / "latest")["errors"] == 0


def test_nobody_there_is_a_failed_run(k6: Path, tmp_path: Path) -> None:
    done = visit(f"http://127.0.0.1:{free_port()}", tmp_path)
    assert done.returncode == 1, done.stderr
    assert facts(tmp_path / "latest")["status"] == "failed"
    assert "connection refused" in facts(tmp_path / "latest")["reason"]
    assert requests(tmp_path / "latest")["errors"] == 1


def test_a_site_that_goes_away_is_all_errors(pages: Nginx, tmp_path: Path) -> None:
    process = started(command(pages.url, tmp_path, "--rate", "20", "--duration-s", "6"), tmp_path / "latest")
    pages.stop()
    process.communicate(timeout=120)
    run = RunDirectory.open(tmp_path / "latest")
    assert process.returncode == 1
    kinds = {run.error_name(number) for number in run.requests.mapped()["error"]}
    assert "connect_refused" in kinds
    assert run.requests.count == k6_counted(run.path)


def test_ctrl_c_ends_in_good_order(pages: Nginx, tmp_path: Path) -> None:
    run = tmp_path / "latest"
    process = started(command(pages.url, tmp_path, "--duration-s", "600", "--rate", "20"), run)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Interrupted" in said
    assert facts(run)["status"] == "interrupted"
    assert RunDirectory.open(run).requests.count == k6_counted(run)


def child_of(process: "subprocess.Popen[str]") -> int:
    """The process id of its k6."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    [child] = [int(pid) for pid in found if Path(f"/proc/{pid}/comm").read_text().strip() == "k6"]
    return child


def test_a_killed_k6_leaves_an_interrupted_run(pages: Nginx, tmp_path: Path) -> None:
    run = tmp_path / "latest"
    process = started(command(pages.url, tmp_path, "--duration-s", "600", "--rate", "20"), run)
    os.kill(child_of(process), signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode == 1
    assert facts(run)["status"] == "interrupted"
    assert "killed by signal 9" in facts(run)["reason"]
    assert (run / "summary.json").exists()


def test_no_load_goes_on_when_we_are_killed(pages: Nginx, tmp_path: Path) -> None:
    run = tmp_path / "latest"
    process = started(command(pages.url, tmp_path, "--duration-s", "600", "--rate", "20"), run)
    child = child_of(process)
    process.kill()
    process.communicate(timeout=60)
    assert eventually(lambda: gone(child))
    assert RunDirectory.open(run, now_s=time.time() + 3600).status == "interrupted"


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_the_dashboard_answers_while_it_runs(pages: Nginx, tmp_path: Path) -> None:
    where = f"127.0.0.1:{free_port()}"
    line = command(pages.url, tmp_path, "--duration-s", "600", "--dashboard", where)
    process = started(line, tmp_path / "latest")
    try:

        def answers() -> bool:
            try:
                with urllib.request.urlopen(f"http://{where}/ui/", timeout=10) as reply:
                    return bool(reply.status == 200)
            except OSError:
                return False

        assert eventually(answers)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)


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


def test_two_at_a_time_do_not_meet(pages: Nginx, tmp_path: Path) -> None:
    both = [subprocess.Popen(command(pages.url, tmp_path / name), cwd=ROOT) for name in ("a", "b")]
    assert [process.wait(timeout=120) for process in both] == [0, 0]


def test_visitors_read_a_wordpress(site_block: Site, k6: Path, tmp_path: Path) -> None:
    done = visit(site_block.url, tmp_path, "--rate", "5", "--duration-s", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    run = RunDirectory.open(tmp_path / "latest")
    assert run.requests.count == k6_counted(run.path)
    assert {"front page", "page", "css-js"} <= set(run.routes)
    read = json.loads((run.path / "k6-summary.json").read_text())["setup_data"]
    assert len(read) > 20, "the sitemap and the feed name more pages than the front page does"
    assert all(page.startswith(site_block.url) for page in read)
