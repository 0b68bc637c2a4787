"""What --metrics shows, scraped by a real Prometheus: every query of the dashboard finds its figures."""

import json
import math
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.paths import ROOT
from tests.support.programs import REPLAY, Nginx, free_port, need

DASHBOARD = ROOT / "examples" / "grafana" / "plimsoll-replay.json"
NATIVE = "histogram_quantile(0.99, sum(rate(plimsoll_response_seconds[5s])))"
RUN_S, RATE = 20, 100


class Prometheus:
    """A server that scrapes one address each second."""

    def __init__(self, folder: Path, scraped: int, *flags: str) -> None:
        folder.mkdir()
        target = f"static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]"
        config = f"global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: replay, {target}}}]\n"
        (folder / "prometheus.yml").write_text(config)
        port = free_port()
        self._url = f"http://127.0.0.1:{port}"
        words = [need("prometheus"), f"--config.file={folder}/prometheus.yml"]
        words += [f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}", *flags]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def ask(self, query: str) -> list[float]:
        """Return the values that a query finds now; none while the server is not ready."""
        try:
            answer = requests.get(f"{self._url}/api/v1/query", params={"query": query}, timeout=5)
        except requests.ConnectionError:
            return []
        if answer.status_code in (503, 404):
            return []
        found = answer.json()
        assert found["status"] == "success", (query, found)
        return [float(one["value"][1]) for one in found["data"]["result"]]


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


def queries() -> dict[str, str]:
    """Every query of the dashboard, with Grafana's variables filled in."""
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        .replace("$__rate_interval", "5s")
        .replace("$instance", ".*")
        for panel in panels
        for target in panel["targets"]
    }


def test_every_query_of_the_dashboard_finds_its_figures(
    nginx: Nginx, port: int, classic: Prometheus, native: Prometheus, tmp_path: Path
) -> None:
    line = '192.0.2.{} - - [20/Nov/2026:10:00:{:02} +0000] "GET /{} HTTP/1.1" 200 1024 "-" "UA"\n'
    log = tmp_path / "load.log"
    log.write_text("".join(line.format(i % 50 + 1, i // RATE, i % 50) for i in range(RUN_S * RATE)))
    words = [need(REPLAY), "run", str(log), "--target", nginx.url, "--rate", str(RATE), "--quiet"]
    words += ["--out", str(tmp_path / "results"), "--metrics", f"127.0.0.1:{port}"]
    process = subprocess.Popen(words)
    asked = {name: (classic, query) for name, query in queries().items()}
    asked["a native histogram"] = (native, NATIVE)
    found: dict[str, list[float]] = {}
    while process.poll() is None:
        for name, (server, query) in asked.items():
            if values := [value for value in server.ask(query) if math.isfinite(value)]:
                found[name] = values
        time.sleep(0.2)
    assert process.returncode == 0
    assert found.keys() == asked.keys(), f"nothing was found for {sorted(asked.keys() - found.keys())}"
    assert all(value >= 0 for values in found.values() for value in values), found
    assert found["Runs A"] == [1]
    assert found["Requests a second A"][0] > 0
