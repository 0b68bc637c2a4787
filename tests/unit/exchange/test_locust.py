"""`plimsoll import locust`: every request by way of the listener; of Locust's own CSV files a summary."""

import gzip
import http.server
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.exchange.importing import ImportingError
from plimsoll.analysis.exchange.locust import LocustLog, import_locust, locust_route, read_tables
from plimsoll.cli import main
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import ROOT
from tests.support.recorded import LOCUST_HEAD as HEAD
from tests.support.rundir import load_records

LOCUST = ROOT / "tests" / "fixtures" / "locust"


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["import", "locust", *map(str, args)])


class _Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        missing = self.path.startswith("/missing")
        self.send_response(404 if missing else 200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"here")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _has_failures(folder: Path) -> bool:
    """Say whether the listener has written of a good many requests, failed ones among them."""
    lines = [
        line for file in folder.glob("locust-requests-*.jsonl") for line in file.read_text().splitlines()
    ]
    return len(lines) > 40 and any("404" in line for line in lines)


def test_a_real_locust_loses_no_request(tmp_path: Path, site: str) -> None:
    (tmp_path / "plimsoll_listener.py").write_text(run("--listener").output)
    shutil.copy(LOCUST / "locustfile.py", tmp_path)
    options = ["--headless", "-u", "3", "-r", "9", "-H", site, "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "locust", "-f", "locustfile.py,plimsoll_listener.py", *options],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline_s = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline_s and not _has_failures(tmp_path):
            time.sleep(0.05)
        process.terminate()
        stdout, stderr = process.communicate(timeout=60)
    files = list(tmp_path.glob("locust-requests-*.jsonl"))
    assert len(files) == 1, stderr
    imported = import_locust(files, tmp_path / "results", target=site)
    opened = RunDirectory.open(imported.directory)
    records = load_records(opened.path)
    counted = json.loads(stdout)
    assert imported.is_whole
    assert len(records) == sum(row["num_requests"] for row in counted) > 0
    assert (records["error"] > 0).sum() == sum(row["num_failures"] for row in counted) > 0
    assert {opened.error_name(number) for number in records["error"]} == {"none", "http_error"}
    assert set(opened.routes) == {"page", "download", '=missing, "here"'}, "no address"
    total_ms = sum(row["total_response_time"] for row in counted)
    assert float(records["total_us"].sum()) / 1000 == pytest.approx(total_ms, rel=1e-3)
    assert (records["bytes"] == 4).all()
    assert opened.facts.loop == "closed" and opened.facts.program.version
    assert sorted(np.unique(records["client"]).tolist()) == [1, 2, 3]


def lines(*rows: list[object]) -> str:
    return "".join(f"{line}\n" for line in [HEAD, *map(json.dumps, rows)])


def row(start_us: int, error: str = "", status: int = 200, name: str = "page") -> list[object]:
    return [start_us, 5000, "GET", name, status, 10, error, 1]


def test_processes_are_one_run(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    first.write_text(lines(row(1_700_000_000_000_000), row(1_700_000_000_300_000)))
    with gzip.open(second, "wt") as file:
        file.write(lines(row(1_700_000_000_200_000)))
    records = load_records(import_locust([first, second], tmp_path / "r").directory)
    assert records["due_ns"].tolist() == [0, 200_000_000, 300_000_000]
    assert records["client"].tolist() == [1, 65537, 1]


KINDS = [
    ("whole", "", 404, "none"),
    ("a status that was called wrong", "HTTPError: 404 Client Error", 404, "http_error"),
    ("a proxy whose server is gone", "HTTPError: 502 Server Error", 502, "backend_dead"),
    ("the script's own judgement", "CatchResponseError: no basket", 200, "check_failed"),
    ("nobody listens", "ConnectionRefusedError(111, 'Connection refused')", 0, "connect_refused"),
    ("too slow", "ConnectTimeout: HTTPConnectionPool: timed out", 0, "timeout"),
    ("its certificate", "SSLError: CERTIFICATE_VERIFY_FAILED", 0, "tls_failed"),
    ("gone", "ConnectionError: ('Connection aborted.', RemoteDisconnected('…'))", 0, "closed_early"),
    ("reset", "ConnectionError: Connection reset by peer", 0, "reset"),
    ("anything else", "KeyError: 'token'", 0, "other"),
]


@pytest.mark.parametrize(("why", "error", "status", "kind"), KINDS)
def test_exceptions_have_kinds(tmp_path: Path, why: str, error: str, status: int, kind: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines(row(1_700_000_000_000_000, error, status)))
    opened = RunDirectory.open(import_locust([path], tmp_path / "r").directory)
    assert opened.error_name(int(load_records(opened.path)["error"][0])) == kind, why


def test_what_is_broken_is_named_and_what_is_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines(row(5), [1, 2], row(-5), row(6)) + "not json\n" + json.dumps(row(7)))
    result = run(path, "--out", tmp_path / "r")
    assert result.exit_code == 1
    for number in (3, 4, 6):
        assert f"a.jsonl: line {number} is not a request" in result.output
    opened = RunDirectory.open(tmp_path / "r" / "latest")
    assert (opened.status, opened.requests.count) == ("interrupted", 2)


@pytest.mark.parametrize("named", ["load", "load_stats.csv", "load_failures.csv"])
def test_tables_become_a_summary_and_no_run(tmp_path: Path, named: str) -> None:
    result = run(LOCUST / named, "--out", tmp_path / "r")
    assert result.exit_code == 0, result.output
    assert "No run directory" in result.output and "--listener" in result.output
    [folder] = (tmp_path / "r").iterdir()
    assert [path.name for path in folder.iterdir()] == ["imported_summary.json"], "nothing to take for a run"
    summary = json.loads((folder / "imported_summary.json").read_text())
    page = next(row for row in summary["names"] if row["name"] == "page")
    assert (page["requests"], page["errors"], page["rounded_ms"]["p50"]) == (99, 0, 3)
    assert page["rounded_ms"]["p98"] is not None
    assert page["rounded_ms"]["p99"] is None, "of 99 requests there is no p99"
    assert page["rounded_ms"]["p99.9"] is None
    assert summary["errors"][0]["occurrences"] == 29
    assert summary["history"][-1]["requests"] == 155
    assert summary["started_at"] == "2026-11-21T22:01:02Z"


def test_tables_and_requests_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines(row(5)))
    assert run(path, LOCUST / "load", "--out", tmp_path / "r").exit_code == 2
    assert run("--out", tmp_path / "r").exit_code == 2
    assert run(tmp_path / "nothing", "--out", tmp_path / "r").exit_code == 2


def test_a_killed_locusts_tables_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    whole = (LOCUST / "load_stats.csv").read_text()
    (tmp_path / "x_stats.csv").write_text(whole[: len(whole) - 30])
    names = [row["name"] for row in read_tables(str(tmp_path / "x")).names]
    assert names == ["/picture.bin", '=missing, "here"', "page"]


@given(content=st.text(max_size=200), head=st.booleans())
def test_no_text_breaks_the_tables(
    tmp_path_factory: pytest.TempPathFactory, content: str, head: bool
) -> None:
    prefix = tmp_path_factory.mktemp("t") / "x"
    start = (LOCUST / "load_stats.csv").read_text().splitlines()[0] + "\n" if head else ""
    Path(f"{prefix}_stats.csv").write_text(start + content, errors="replace")
    Path(f"{prefix}_stats_history.csv").write_text("Timestamp,Name,User Count\n" + content, errors="replace")
    with suppress(ImportingError):
        json.dumps(read_tables(str(prefix)).as_json(), allow_nan=False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=9))
def test_no_line_breaks_the_listeners_file(
    tmp_path_factory: pytest.TempPathFactory, values: list[object]
) -> None:
    path = tmp_path_factory.mktemp("t") / "x.jsonl"
    path.write_text("".join(f"{line}\n" for line in [HEAD, *map(json.dumps, values)]), errors="replace")
    log = LocustLog(path)
    found = sum(len(records) for records in log)
    heads = sum(isinstance(value, dict) and value.get("plimsoll_locust") == 1 for value in values)
    assert found + log.broken_count + heads == len(values)


@pytest.mark.parametrize(
    ("name", "route"),
    [("page", "page"), ("/wp-login.php?key=secret", "login"), ("http://a/x.png", "image"), ("", "page")],
)
def test_an_address_is_no_name(name: str, route: str) -> None:
    assert locust_route(name) == route
