"""The Grafana dashboard of examples/ is whole, and asks for metrics that there are."""

import json
import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tests.support.programs import ROOT

EXAMPLE = ROOT / "examples" / "grafana" / "plimsoll-replay.json"


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
    found = _Dashboard.model_validate_json(EXAMPLE.read_text(encoding="utf-8"))
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
    used = set(re.findall(r"\$\{?([a-z]+)\}?", EXAMPLE.read_text(encoding="utf-8"))) - {"__rate_interval"}
    assert used == variables


def test_it_shows_every_metric_and_no_other() -> None:
    sources = [(ROOT / "replay" / "live" / name).read_text() for name in ("metrics.go", "folder.go")]
    text = "".join(sources)
    there = set(re.findall(r'"(plimsoll_[a-z_]+)"', text))
    expressions = [
        target["expr"] for panel in json.loads(EXAMPLE.read_text())["panels"] for target in panel["targets"]
    ]
    asked = {
        name.removesuffix("_bucket") for one in expressions for name in re.findall(r"plimsoll_[a-z_]+", one)
    }
    assert asked == there
    page = (ROOT / "docs" / "measurement.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in there)
