"""The metrics: docs/compare.md has all of them, and one more is a class and an entry."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.analysis.compare import gates as metrics
from plimsoll.cli import main
from tests.support.comparable import write_both
from tests.support.programs import DOCS

TOY = '''
from plimsoll.analysis.compare.gates import Metric


class RequestCount(Metric):
    """How many requests the phase has."""

    names = ("request count",)
    meaning = "how many requests the phase has"
    limits = ("at_most_ratio",)

    def unit(self, phase, metric):
        return "requests"

    def value(self, reading):
        return float(reading.phase.requests)
'''


def test_the_table_of_metrics_is_that_of_the_registry() -> None:
    text = (DOCS / "compare.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|(.*)\|(.*)\|(.*)\|$", text.partition("| metric | meaning | limits |")[2], re.M)
    documented = [tuple(cell.strip() for cell in row) for row in rows[1 : 1 + len(metrics.METRICS)]]
    assert documented == [
        (_code(metric.names), metric.meaning, _code(metric.limits)) for metric in metrics.METRICS
    ]
    after = text.partition("| metric | meaning | limits |")[2].split("\n\n")[0]
    assert len(after.strip().splitlines()) == 1 + len(metrics.METRICS), "no row stands for what is not there"


def _code(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def test_a_toy_metric_gets_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy_metric.py").write_text(TOY)
    monkeypatch.syspath_prepend(str(tmp_path))
    toy = import_module("toy_metric")
    monkeypatch.delitem(sys.modules, "toy_metric")
    gates = tmp_path / "gates.yml"
    gates.write_text("gates:\n- {scenario: replay, metric: request count, at_most_ratio: 1.1}\n")
    arguments = ["compare", str(write_both(tmp_path / "both")), "--baseline", "sata", "--candidate", "nvme"]
    unknown = CliRunner().invoke(main, [*arguments, "--gates", str(gates)])
    assert (
        "must be one of p99.9, p99, p95, p90, p50, mean, error share, answers, stalls over N ms, measure NAME"
        in unknown.stderr
    )
    monkeypatch.setattr(metrics, "METRICS", [*metrics.METRICS, toy.RequestCount()])
    result = CliRunner().invoke(main, [*arguments, "--gates", str(gates)])
    assert result.exit_code == 0, result.output
    assert " ".join(result.stdout.splitlines()[3].split()) == (
        "PASS replay whole: request count 1,500 requests 1,500 requests × 1.00 × 1.00 … × 1.00 ≤ × 1.10 4 v 4"
    )
    gates.write_text("gates:\n- {scenario: replay, metric: request count, at_most_ms: 5}\n")
    wrong = CliRunner().invoke(main, [*arguments, "--gates", str(gates)])
    assert "at_most_ms: is not a limit of request count: give at_most_ratio" in wrong.stderr
