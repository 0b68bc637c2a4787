"""Visitors: a real k6 against a real nginx, and against WordPress. k6, nginx and the records count alike."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from plimsoll.rundir.read import RunDirectory
from tests.support.programs import LONGEST_S, ROOT, eventually, free_port, open_to_all
from tests.support.rundir import load_records
from tests.support.scenario import facts_of, nobody_came, requests_of, visit, visitors_command
from tests.support.servers import NGINX, Nginx
from tests.support.site import Site

PAGE = """<html><head><link rel="stylesheet" href="/style.css"><script src="/script.js"></script>
<script src="{foreign}/spy.js"></script></head><body><img src="/a.png"><img src="{foreign}/spy.png">
<a href="/one.html">one</a><a href="/two.html">two</a><a href="{foreign}/">elsewhere</a></body></html>"""


@pytest.fixture
def pages(nginx: Nginx, elsewhere: socket.socket, k6: Path) -> Nginx:
    """An nginx with three pages, whose files are partly elsewhere."""
    www = nginx.log.parent / "www"
    foreign = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
    for name in ("page.html", "index.html", "one.html", "two.html"):
        (www / name).write_text(PAGE.format(foreign=foreign))
    for name in ("style.css", "script.js", "a.png", "favicon.ico"):
        (www / name).write_bytes(b"x" * 5000)
    return nginx


def started(line: list[str], run: Path) -> "subprocess.Popen[str]":
    """A run whose first requests are recorded."""
    process = subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    records = run / "requests.npy"
    assert eventually(lambda: records.exists() and records.stat().st_size > 2000)
    return process


def k6_counted(run: Path) -> int:
    """What k6 itself says at its end."""
    count: int = json.loads((run / "k6-summary.json").read_text())["metrics"]["http_reqs"]["count"]
    return count


def targets(nginx: Nginx) -> Counter[str]:
    """How often each target was asked for, according to nginx."""
    return Counter(line.split("\t")[1].split(" ")[1] for line in nginx.log.read_text().splitlines())


def test_the_scripts_arithmetic(k6: Path) -> None:
    script = str(Path(__file__).with_name("k6_units.js"))
    line = [str(k6), "run", "--quiet", "--address=", "--summary-mode=disabled", script]
    done = subprocess.run(line, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    assert "level=error" not in done.stderr, done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    "model",
    ["constant-arrival-rate", pytest.param("ramping-arrival-rate", marks=pytest.mark.slow), "ramping-vus"],
)
def test_k6_nginx_and_the_records_count_alike(
    pages: Nginx, elsewhere: socket.socket, tmp_path: Path, model: str
) -> None:
    done = visit(pages.url, tmp_path, "--model", model, "--rate", "20", "--visitors", "5")
    assert done.returncode == 0, done.stderr
    pages.stop()
    run = RunDirectory.open(tmp_path / "latest")
    records = load_records(run.path)
    logged = targets(pages)
    assert len(records) == k6_counted(run.path) == sum(logged.values())
    assert set(logged) == {
        "/", "/one.html", "/two.html", "/style.css", "/script.js", "/a.png",
        "/favicon.ico", "/sitemap.xml", "/wp-sitemap.xml", "/feed/",
    }  # fmt: skip
    assert logged["/"] > logged["/two.html"], "the first pages are read more often"
    assert nobody_came(elsewhere)
    assert set(run.routes) == {"discovery", "front page", "page", "css-js", "image"}
    named = np.array(run.routes)[records["route"]]
    assert (records["bytes"][(named == "image") | (named == "css-js")] == 5000).all()
    assert run.status == "complete"
    assert run.facts.loop == ("closed" if model == "ramping-vus" else "open")


ICONS = [
    ("one that redirects is followed, and asked for once a visit", "return 302 /icon.png;", {"/icon.png"}),
    ("one that is not there is asked for before the visits alone", "return 404;", set[str]()),
    ("nor is one of another host an error", "return 302 http://127.0.0.1:9/icon.png;", set[str]()),
]


@pytest.mark.parametrize(("answer", "led"), [row[1:] for row in ICONS], ids=[row[0] for row in ICONS])
def test_the_icon_of_a_site_that_names_none(tmp_path: Path, k6: Path, answer: str, led: set[str]) -> None:
    with_icon = NGINX.replace("location / {{", f"location = /favicon.ico {{{{ {answer} }}}} location / {{{{")
    open_to_all(tmp_path)
    served = Nginx(tmp_path, setup=with_icon)
    done = visit(served.url, tmp_path / "results", "--rate", "5", "--pages-per-visit", "2")
    served.stop()
    assert done.returncode == 0, done.stderr
    logged = targets(served)
    run = tmp_path / "results" / "latest"
    visits = json.loads((run / "k6-summary.json").read_text())["metrics"]["iterations"]["count"]
    assert logged["/favicon.ico"] == (visits + 1 if led else 1)
    assert all(logged[target] == visits + 1 for target in led)
    assert requests_of(run)["errors"] == 0


def test_due_instants_are_those_of_the_rate(pages: Nginx, tmp_path: Path) -> None:
    done = visit(pages.url, tmp_path, "--rate", "50", "--pages-per-visit", "1")
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(tmp_path / "latest")
    records = load_records(run.path)
    first = records[records["lag_us"] > 0]
    slope = np.polyfit(first["line"].astype(float), first["due_ns"] / 1e9, 1)[0]
    assert abs(slope * 50 - 1) < 0.01
    assert len(np.unique(first["line"])) == len(first), "one request of a visit has its lag"


def test_a_seed_asks_for_the_same(pages: Nginx, tmp_path: Path) -> None:
    asked = []
    for seed in ("7", "7", "8"):
        before = targets(pages)
        done = visit(pages.url, tmp_path / seed, "--seed", seed, "--rate", "10", "--duration-s", "3.99")
        assert done.returncode == 0, done.stderr
        asked.append(targets(pages) - before)
    assert asked[0] == asked[1]
    assert asked[0] != asked[2]


def test_a_threshold_is_the_answer_no(pages: Nginx, tmp_path: Path) -> None:
    done = visit(pages.url, tmp_path, "--max-p999-ms", "0.001")
    assert done.returncode == 1
    assert facts_of(tmp_path / "latest")["status"] == "complete"
    assert facts_of(tmp_path / "latest")["reason"] == "a threshold was crossed"
    assert visit(pages.url, tmp_path, "--max-p999-ms", "60000").returncode == 0


def test_too_few_visitors_limit_the_generator(pages: Nginx, tmp_path: Path) -> None:
    done = visit(pages.url, tmp_path, "--rate", "50", "--max-visitors", "2", "--think-s", "0.5")
    assert done.returncode == 0, done.stderr
    run = tmp_path / "latest"
    dropped = requests_of(run)["skipped"]["dropped_iterations"]
    assert dropped > 100
    assert facts_of(run)["generator_limited"]
    assert f"{dropped} iterations" in facts_of(run)["generator_limited_reason"]
    assert "--max-visitors" in facts_of(run)["generator_limited_reason"]


def test_a_file_of_pages_is_read_whole_and_nothing_else(pages: Nginx, tmp_path: Path) -> None:
    wanted = ["/two.html", *(f"/one.html?action={number}" for number in range(300))]
    listed = tmp_path / "pages.txt"
    listed.write_text("# mine\r\n" + "\r\n".join(wanted))
    often = ("--rate", "50", "--pages-per-visit", "4", "--think-s", "0", "--skew", "0")
    done = visit(pages.url, tmp_path / "results", "--pages", str(listed), "--no-files", *often)
    assert done.returncode == 0, done.stderr
    pages.stop()
    read = set(targets(pages))
    assert read <= set(wanted)
    assert read & set(wanted[200:]), "and --max-pages, whose default is 200, cuts nothing off"


def test_a_clone_answers_under_the_sites_name(pages: Nginx, tmp_path: Path) -> None:
    done = visit("http://site.example", tmp_path, "--connect-to", f"localhost:{pages.port}")
    assert done.returncode == 0, done.stderr
    assert requests_of(tmp_path / "latest")["errors"] == 0


@pytest.mark.slow
def test_a_site_that_goes_away_is_all_errors(pages: Nginx, tmp_path: Path) -> None:
    process = started(
        visitors_command(pages.url, tmp_path, "--rate", "20", "--duration-s", "10"), tmp_path / "latest"
    )
    pages.stop()
    process.communicate(timeout=LONGEST_S)
    run = RunDirectory.open(tmp_path / "latest")
    assert process.returncode == 1
    kinds = {run.error_name(number) for number in load_records(run.path)["error"]}
    assert "connect_refused" in kinds
    assert run.requests.count == k6_counted(run.path)


def test_ctrl_c_ends_in_good_order(pages: Nginx, tmp_path: Path) -> None:
    run = tmp_path / "latest"
    process = started(visitors_command(pages.url, tmp_path, "--duration-s", "600", "--rate", "20"), run)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 1
    assert "Interrupted" in said
    assert facts_of(run)["status"] == "interrupted"
    assert RunDirectory.open(run).requests.count == k6_counted(run)


def child_of(process: "subprocess.Popen[str]") -> int:
    """The process id of its k6."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    [child] = [int(pid) for pid in found if Path(f"/proc/{pid}/comm").read_text().strip() == "k6"]
    return child


@pytest.mark.slow
def test_a_killed_k6_leaves_an_interrupted_run(pages: Nginx, tmp_path: Path) -> None:
    run = tmp_path / "latest"
    process = started(visitors_command(pages.url, tmp_path, "--duration-s", "600", "--rate", "20"), run)
    os.kill(child_of(process), signal.SIGKILL)
    process.communicate(timeout=LONGEST_S)
    assert process.returncode == 1
    assert facts_of(run)["status"] == "interrupted"
    assert "killed by signal 9" in facts_of(run)["reason"]
    assert (run / "summary.json").exists()


@pytest.mark.slow
def test_no_load_goes_on_when_we_are_killed(pages: Nginx, tmp_path: Path) -> None:
    run = tmp_path / "latest"
    process = started(visitors_command(pages.url, tmp_path, "--duration-s", "600", "--rate", "20"), run)
    child = child_of(process)
    process.kill()
    process.communicate(timeout=LONGEST_S)
    assert eventually(lambda: gone(child))
    assert RunDirectory.open(run, now_s=time.time() + 3600).status == "interrupted"


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_the_dashboard_answers_while_it_runs(pages: Nginx, tmp_path: Path) -> None:
    where = f"127.0.0.1:{free_port()}"
    line = visitors_command(pages.url, tmp_path, "--duration-s", "600", "--dashboard", where)
    process = started(line, tmp_path / "latest")
    try:

        def answers() -> bool:
            try:
                with urllib.request.urlopen(f"http://{where}/ui/", timeout=LONGEST_S) as reply:
                    return bool(reply.status == 200)
            except OSError:
                return False

        assert eventually(answers)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LONGEST_S)


def test_two_at_a_time_do_not_meet(pages: Nginx, tmp_path: Path) -> None:
    both = [subprocess.Popen(visitors_command(pages.url, tmp_path / name), cwd=ROOT) for name in ("a", "b")]
    assert [process.wait(timeout=LONGEST_S) for process in both] == [0, 0]


def test_visitors_read_a_wordpress(site_block: Site, k6: Path, tmp_path: Path) -> None:
    done = visit(site_block.url, tmp_path, "--rate", "5", "--duration-s", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    run = RunDirectory.open(tmp_path / "latest")
    assert run.requests.count == k6_counted(run.path)
    assert {"front page", "page", "css-js"} <= set(run.routes)
    read = json.loads((run.path / "k6-summary.json").read_text())["setup_data"]
    pages = read["pages"]
    assert len(pages) > 20, "the sitemap and the feed name more pages than the front page does"
    assert all(page.startswith(site_block.url) for page in pages)
    assert read["usualIcon"] == f"{site_block.url}/favicon.ico", "WordPress redirects it to its logo"
    assert "image" in run.routes
