"""`plimsoll import accesslog` against the log of a real nginx: each record is a line of it."""

import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import Records
from tests.support.programs import LONGEST_S, free_port, open_to_all
from tests.support.servers import NGINX, Nginx

# Logs of one server: two as users write them, to be imported, and one for which no parser of ours is needed.
LOGS = """
  log_format timed '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
                   '"$http_referer" "$http_user_agent" $request_time';
  log_format exact '$remote_addr - $remote_user [$msec] "$request" $status $body_bytes_sent '
                   '"$http_referer" "$http_user_agent" $request_time';
  log_format plain '$msec\\t$request_time\\t$status\\t$body_bytes_sent\\t$request';
  access_log {root}/timed.log timed; access_log {root}/exact.log exact; access_log {root}/plain.log plain;
"""
PLACES = """location /slow/ {{ limit_rate 20k; limit_rate_after 1k; try_files /page.html =404; }}
  location /gone/ {{ proxy_pass http://127.0.0.1:%d; }}
  location /silent/ {{ proxy_pass http://127.0.0.1:%d; }}
  location /none/ {{ return 404; }}
  location / {{"""
TIMED = '%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T'
EXACT = '%h %^[%x] "%r" %s %b "%R" "%u" %T'


class Line(NamedTuple):
    """What nginx says of a request: when it was done in µs since 1970, how long it took, and so on."""

    done_us: int
    took_us: int
    status: int
    size: int
    request: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Line]]]:
    """The folder of a server that has served all kinds of answers, and what it says of them."""
    root = tmp_path_factory.mktemp("nginx")
    open_to_all(root.parent)
    with socket.socket() as silent:  # takes connections and answers nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        places = PLACES % (free_port(), silent.getsockname()[1])
        head, _, rest = NGINX.partition("  log_format")
        rest = rest[rest.index("client_body_temp_path") :].replace("location / {{", places)
        server = Nginx(root, setup=head + LOGS + "  " + rest)
        try:
            for round_ in range(30):
                for path in ("/", "/wp-login.php", "/a.jpg?x=1", "/slow/", "/gone/", "/none/"):
                    ask(server, "HEAD" if round_ % 5 == 4 else "GET", path)
            ask(server, "POST", "/wp-login.php")
            give_up(server, "/silent/")
        finally:
            server.stop()
    rows = [line.split("\t") for line in (root / "plain.log").read_text().splitlines()]
    lines = [Line(us(row[0]), us(row[1]), int(row[2]), int(row[3]), row[4]) for row in rows]
    yield root, lines


def us(seconds: str) -> int:
    whole, _, rest = seconds.partition(".")
    return int(whole) * 1_000_000 + int(rest.ljust(6, "0"))


def ask(server: Nginx, method: str, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LONGEST_S)
    connection.request(method, path, headers={"User-Agent": f"visitor of {path}"})
    connection.getresponse().read()
    connection.close()


def give_up(server: Nginx, path: str) -> None:
    """Leave before the answer, when nginx has passed the request on: what it then logs is a 499."""
    with socket.create_connection(("127.0.0.1", server.port)) as visitor:
        visitor.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nUser-Agent: hasty\r\n\r\n".encode())
        visitor.settimeout(0.5)
        with pytest.raises(TimeoutError):
            visitor.recv(1)


def imported(log: Path, format_: str, out: Path) -> tuple[RunDirectory, Records, str]:
    words = [sys.executable, "-m", "plimsoll", "import", "accesslog", str(log), "--format", format_]
    done = subprocess.run([*words, "--out", str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run = RunDirectory.open(out / "latest")
    return run, np.load(out / "latest" / "requests.npy"), done.stdout


def test_each_record_is_a_line_of_the_log(served: tuple[Path, list[Line]], tmp_path: Path) -> None:
    root, lines = served
    run, records, said = imported(root / "timed.log", TIMED, tmp_path / "out")
    by_line = records[np.argsort(records["line"])]
    assert by_line["line"].tolist() == list(range(1, len(lines) + 1))
    assert by_line["total_us"].tolist() == [line.took_us for line in lines]
    assert by_line["status"].tolist() == [line.status for line in lines]
    assert by_line["bytes"].tolist() == [line.size for line in lines]
    assert {line.status for line in lines} >= {200, 404, 405, 499, 502}
    assert any(line.took_us for line in lines), "nothing took any time: the comparison says nothing"
    assert not records["lag_us"].any()
    assert not records["logged_status"].any()
    routes = {(lines[r["line"] - 1].request.split()[1], run.route_name(int(r["route"]))) for r in records}
    assert {("/", "page"), ("/wp-login.php", "login"), ("/a.jpg?x=1", "image")} <= routes
    assert "1 visitors left before the answer (499)" in said
    assert run.facts.from_log


def test_a_request_was_due_its_duration_before_nginx_logged_it(
    served: tuple[Path, list[Line]], tmp_path: Path
) -> None:
    root, lines = served
    run, records, _ = imported(root / "exact.log", EXACT, tmp_path / "out")
    assert run.facts.started_at is not None
    began_us = round(run.facts.started_at.timestamp() * 1e6)
    for record in records:
        line = lines[int(record["line"]) - 1]
        assert began_us + int(record["due_ns"]) // 1000 == line.done_us - line.took_us
    assert int(records["due_ns"].min()) == 0
    done_us = records["due_ns"] // 1000 + records["total_us"]
    assert (np.diff(done_us) >= 0).all(), "the records are not in the order in which they were done"


def test_the_second_of_the_log_is_kept(served: tuple[Path, list[Line]], tmp_path: Path) -> None:
    """`$time_local` has whole seconds: a request is spread over that in which it was done."""
    root, lines = served
    run, records, _ = imported(root / "timed.log", TIMED, tmp_path / "out")
    assert run.facts.started_at is not None
    began_us = round(run.facts.started_at.timestamp() * 1e6)
    for record in records:
        line = lines[int(record["line"]) - 1]
        done_us = began_us + int(record["due_ns"]) // 1000 + int(record["total_us"])
        assert done_us // 1_000_000 == line.done_us // 1_000_000
