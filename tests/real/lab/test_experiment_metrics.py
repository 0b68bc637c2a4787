"""A real Prometheus scrapes an experiment while it lasts: its runs by backend, and its saturator."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.lab.test_experiment import folder
from tests.real.lab.test_experiment import lab_yml as lab_yml
from tests.real.lab.test_experiment import two_nginx as two_nginx
from tests.support.programs import PLIMSOLL, free_port
from tests.support.servers import Prometheus, queries

_SATURATOR = """
saturator:
  kind: command
  start: [sh, -c, "i=0; while :; do i=$((i + 1000000)); echo $i bytes; sleep 0.2; done"]
  progress: ^(?P<bytes>\\d+) bytes
  cleanup: ["true"]
"""
_OF_A_REPLAY_ITSELF = {"Open connections A"}


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def prometheus(tmp_path: Path, port: int) -> Iterator[Prometheus]:
    server = Prometheus(tmp_path / "prometheus", port)
    yield server
    server.stop()


def test_the_runs_are_shown_by_backend(lab_yml: Path, port: int, prometheus: Prometheus) -> None:
    text = lab_yml.read_text().replace("during_s: 0.4", "during_s: 5").replace("repeats: 2", "repeats: 1")
    lab_yml.write_text(text + _SATURATOR)
    asked = {name: query for name, query in queries().items() if name not in _OF_A_REPLAY_ITSELF}
    for backend in ("one", "two"):
        for scenario in ("replay", "download"):
            asked[f"{scenario} on {backend}"] = (
                f'sum(rate(plimsoll_requests_total{{backend="{backend}",scenario="{scenario}"}}[5s])) > 0'
            )
    with subprocess.Popen(
        [PLIMSOLL, "run", lab_yml, "--metrics", f"127.0.0.1:{port}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said = process.communicate()[0]
    assert process.returncode == 0, said
    assert f"Live figures: http://127.0.0.1:{port}/metrics" in said
    found = {name for name, query in asked.items() if prometheus.ask_of_all(query)}
    assert found == asked.keys(), f"nothing was found for {sorted(asked.keys() - found)}"
    assert len(list((folder(lab_yml) / "runs").iterdir())) == 4
