"""A real Prometheus scrapes a replay while it lasts: the queries of the dashboard find their figures."""

import math
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.programs import REPLAY, free_port, need
from tests.support.servers import Nginx, Prometheus, queries

NATIVE = "histogram_quantile(0.99, sum(rate(plimsoll_response_seconds[5s])))"
RUN_S, RATE = 20, 100


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def classic(tmp_path: Path, port: int) -> Iterator[Prometheus]:
    server = Prometheus(tmp_path / "classic", port)
    yield server
    server.stop()


@pytest.fixture
def native(tmp_path: Path, port: int) -> Iterator[Prometheus]:
    server = Prometheus(tmp_path / "native", port, "--enable-feature=native-histograms")
    yield server
    server.stop()


def test_every_query_of_the_dashboard_finds_its_figures(
    nginx: Nginx, port: int, classic: Prometheus, native: Prometheus, tmp_path: Path
) -> None:
    line = '192.0.2.{} - - [20/Nov/2026:10:00:{:02} +0000] "GET /{} HTTP/1.1" 200 1024 "-" "UA"\n'
    log = tmp_path / "load.log"
    log.write_text("".join(line.format(i % 50 + 1, i // RATE, i % 50) for i in range(RUN_S * RATE)))
    words = [need(REPLAY), "run", str(log), "--target", nginx.url, "--rate", str(RATE), "--quiet"]
    words += ["--out", str(tmp_path / "results"), "--metrics", f"127.0.0.1:{port}"]
    process = subprocess.Popen(words)
    asked = {name: (classic, query) for name, query in queries().items() if name != "Saturators A"}
    asked["a native histogram"] = (native, NATIVE)
    assert process.wait() == 0
    found: dict[str, list[float]] = {}
    for name, (server, query) in asked.items():
        if values := [value for value in server.ask_of_all(query) if math.isfinite(value)]:
            found[name] = values
    assert found.keys() == asked.keys(), f"nothing was found for {sorted(asked.keys() - found.keys())}"
    assert all(value >= 0 for values in found.values() for value in values), found
    assert found["Runs A"] == [1]
    assert found["Requests a second A"][0] > 0
