"""What is in examples/ is right: the pages open with it. Jobs of examples/ci have a test of their own."""

import json
import os
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from plimsoll.analysis.compare.gates import read_gates
from plimsoll.lab.experiment.problems import read_lab
from plimsoll.lab.hosts.hostsfile import read_hosts
from tests.support.programs import ROOT

EXAMPLES = ROOT / "examples"
LABS = sorted(path for path in EXAMPLES.rglob("*.yml") if "\nbackends:" in path.read_text(encoding="utf-8"))
GATES = sorted(EXAMPLES.rglob("*gates.yml"))
INDEX = (EXAMPLES / "README.md").read_text(encoding="utf-8")
# Which test holds what else is there.
ELSEWHERE = {"README.md", "ci", "k6-operator", "locust-workers", "systemd", "access.log", "site.log.gz"}
ELSEWHERE |= {"grafana", "record_access_log.py", "record_site_log.py"}


@pytest.mark.parametrize("path", LABS, ids=lambda path: path.stem)
def test_an_example_of_lab_yml_has_no_problem(path: Path) -> None:
    assert read_lab(path).backends


@pytest.mark.parametrize("path", GATES, ids=lambda path: path.stem)
def test_gates_have_no_problem(path: Path) -> None:
    assert read_gates(path).gates


def test_gates_are_of_scenarios_that_the_experiment_has() -> None:
    lab = read_lab(EXAMPLES / "move-to-nvme.yml")
    judged = {gate.scenario for gate in read_gates(EXAMPLES / "move-to-nvme-gates.yml").gates}
    assert judged <= {choice.called for choice in lab.scenarios}


def test_the_hosts_of_many_machines() -> None:
    folder = EXAMPLES / "many-machines"
    hosts = {host.name: host.address for host in read_hosts(folder / "hosts.yml")}
    for host in read_lab(folder / "lab.yml").hosts:
        assert hosts[host.name] == host.address


def test_every_example_is_checked_and_in_the_index() -> None:
    there = {path.name for path in EXAMPLES.iterdir() if not path.name.startswith((".", "__"))}
    checked = {path.relative_to(EXAMPLES).parts[0] for path in [*LABS, *GATES]} | {"before-after-from-logs"}
    assert there == checked | ELSEWHERE
    linked = {link.split("/")[0] for link in re.findall(r"\]\(([^)]+)\)", INDEX)}
    assert there - linked <= {
        "README.md",
        "access.log",
        "site.log.gz",
        "record_access_log.py",
        "record_site_log.py",
    }
    links = re.findall(r"\]\(([^)]+)\)", INDEX)
    assert [link for link in links if not (EXAMPLES / link).exists()] == []


def test_before_and_after_from_logs(tmp_path: Path) -> None:
    lines = []
    for hour in range(4 * 24):
        at = datetime(2026, 11, 7, tzinfo=UTC) + timedelta(hours=hour)
        lines += [
            f'10.0.0.1 - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET / HTTP/1.1" 200 512 {took}\n'
            for took in (80, 90)
        ]
    (tmp_path / "access.log").write_text("".join(lines), encoding="utf-8")
    ran = subprocess.run(
        [EXAMPLES / "before-after-from-logs", "2026-11-08", "2026-11-09", tmp_path / "access.log"],
        cwd=ROOT,
        env=os.environ | {"OUT": str(tmp_path / "results"), "FORMAT": '%h %^[%d:%t %^] "%r" %s %b %L'},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 3, ran.stderr
    assert "\nINCONCLUSIVE: " in ran.stdout
    assert "a verdict takes 14" in " ".join(ran.stdout.split())


def test_before_and_after_says_what_it_takes() -> None:
    ran = subprocess.run([EXAMPLES / "before-after-from-logs"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "before-after-from-logs: DAY-BEFORE DAY-AFTER LOG...\n")


DASHBOARD = ROOT / "examples" / "grafana" / "plimsoll-replay.json"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Place(_Strict):
    x: int = Field(ge=0, le=23)
    y: int = Field(ge=0)
    w: int = Field(ge=1, le=24)
    h: int = Field(ge=1)


class _Source(_Strict):
    type: str = Field(pattern="^prometheus$")
    uid: str = Field(pattern=r"^\$\{datasource\}$")


class _Target(_Strict):
    refId: str = Field(pattern="^[A-Z]$")  # noqa: N815 Grafana's
    datasource: _Source
    expr: str = Field(min_length=1)
    legendFormat: str  # noqa: N815 Grafana's


class _Panel(_Strict):
    id: int
    type: str = Field(pattern="^(timeseries|stat)$")
    title: str = Field(min_length=1)
    description: str = Field(min_length=1)
    datasource: _Source
    gridPos: _Place  # noqa: N815 Grafana's
    fieldConfig: dict[str, Any]  # noqa: N815 Grafana's
    options: dict[str, Any]
    targets: list[_Target] = Field(min_length=1)


class _Dashboard(BaseModel):
    uid: str = Field(max_length=40, pattern="^[a-z-]+$")
    title: str
    schemaVersion: int = Field(ge=36)  # noqa: N815 Grafana's
    panels: list[_Panel] = Field(min_length=1)
    templating: dict[str, list[dict[str, Any]]]


def test_the_dashboard_is_one() -> None:
    found = _Dashboard.model_validate_json(DASHBOARD.read_text(encoding="utf-8"))
    ids = [panel.id for panel in found.panels]
    assert len(set(ids)) == len(ids)
    taken = [
        (x, y)
        for panel in found.panels
        for x in range(panel.gridPos.x, panel.gridPos.x + panel.gridPos.w)
        for y in range(panel.gridPos.y, panel.gridPos.y + panel.gridPos.h)
    ]
    assert len(set(taken)) == len(taken), "panels lie on one another"
    assert max(x for x, _ in taken) < 24
    variables = {one["name"] for one in found.templating["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)\}?", DASHBOARD.read_text(encoding="utf-8"))) - {"__rate_interval"}
    assert used == variables


def test_it_shows_every_metric_and_no_other() -> None:
    sources = [(ROOT / "replay" / "live" / name).read_text() for name in ("metrics.go", "folder.go")]
    text = "".join(sources)
    there = set(re.findall(r'"(plimsoll_[a-z_]+)"', text))
    expressions = [
        target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]
    ]
    asked = {
        name.removesuffix("_bucket") for one in expressions for name in re.findall(r"plimsoll_[a-z_]+", one)
    }
    assert asked == there
    page = (ROOT / "docs" / "measurement.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in there)
