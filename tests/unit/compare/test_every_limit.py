"""Every limit of every metric that gates.yml takes, in each command that reads gates.yml."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from plimsoll.analysis.compare.gates import METRICS, metric_of
from plimsoll.cli import main
from tests.support.comparable import BACKENDS, regress, sign_off, write_both, write_night

SAVED = [("article saved", 40.0)]
AS_WRITTEN = {"stalls over N ms": "stalls over 500 ms", "measure NAME": "measure article saved"}
LIMITS = {AS_WRITTEN.get(name, name): metric.limits for metric in METRICS for name in metric.names}
GATES: list[dict[str, Any]] = [
    {"scenario": "replay", "metric": name} | dict.fromkeys(limits, 0.5) for name, limits in LIMITS.items()
]
ROWS = [name for name, limits in LIMITS.items() for _ in limits]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_both(tmp_path_factory.mktemp("every-limit"), measures=SAVED)


def gates_file(folder: Path, gates: list[dict[str, Any]]) -> Path:
    path = folder / "gates.yml"
    path.write_text(json.dumps({"gates": gates}))
    return path


def documents(folder: Path) -> list[str]:
    return [f"--{form}={folder / form}" for form in ("html", "junit", "markdown")]


def rows(result: Result) -> list[str]:
    """Return the metrics in a command's table of gates, one a limit."""
    assert result.exit_code in (0, 1, 3), repr(result.exception)
    return re.findall(r"^[A-Z]+ +replay.* whole: (.+?)  ", result.stdout, re.MULTILINE)


def test_compare_judges_every_limit(experiment: Path, tmp_path: Path) -> None:
    words = ["compare", str(experiment), *BACKENDS, "--gates", str(gates_file(tmp_path, GATES))]
    result = CliRunner().invoke(main, [*words, *documents(tmp_path)])
    assert rows(result) == [*(metric_of(name).label(name) for name in ROWS), "answers"]


@pytest.mark.parametrize("gate", GATES, ids=LIMITS)
def test_signoff_says_what_every_limit_allows(
    experiment: Path, tmp_path: Path, gate: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.analysis.signoff.pdf.find_chromium", lambda: None)
    out = tmp_path / "signed"
    result = sign_off(experiment, *BACKENDS, "--gates", gates_file(tmp_path, [gate]), "--out", out)
    assert result.exit_code in (0, 1, 3), repr(result.exception)
    page = (out / "signoff.html").read_text(encoding="utf-8")
    allowed = {"at_most_ms": "<td>At most 0.5 ms.</td>", "at_most_ratio": "<td>At most 0.5 times as "}
    for limit in LIMITS[gate["metric"]]:
        assert allowed.get(limit, "<td>At most 50 % of the ") in page


def test_regress_judges_every_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.analysis.regress.judge.BASELINE_NIGHTS", 4)
    nights = [write_night(tmp_path, number, {"nvme": 40}, measures=SAVED) for number in range(8)]
    history, gates = tmp_path / "history.sqlite", gates_file(tmp_path, GATES)
    regress(history, *nights[:4], "--set-baseline", "latest")
    result = regress(history, *nights[4:], "--gates", gates, *documents(tmp_path))
    assert rows(result) == ROWS
    assert " × 1.00  ≤ × 0.50   4 v 4" in result.stdout, "both sides have their nights"
