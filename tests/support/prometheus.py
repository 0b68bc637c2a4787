"""A real Prometheus, and what the dashboard asks of it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import requests

from tests.support.paths import ROOT
from tests.support.programs import free_port, need
from tests.support.waiting import LONGEST_S

DASHBOARD = ROOT / "examples" / "grafana" / "plimsoll-replay.json"


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
            answer = requests.get(f"{self._url}/api/v1/query", params={"query": query}, timeout=LONGEST_S)
        except requests.ConnectionError:
            return []
        if answer.status_code in (503, 404):
            return []
        found = answer.json()
        assert found["status"] == "success", (query, found)
        return [float(one["value"][1]) for one in found["data"]["result"]]

    def ask_of_all(self, query: str) -> list[float]:
        """Return the most that a query has found in the last quarter of an hour."""
        return self.ask(f"max_over_time(({query})[15m:1s])")


def queries() -> dict[str, str]:
    """Every query of the dashboard, with Grafana's variables filled in."""
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        .replace("$__rate_interval", "5s")
        .replace("$instance", ".*")
        .replace("$backend", ".*")
        for panel in panels
        for target in panel["targets"]
    }
