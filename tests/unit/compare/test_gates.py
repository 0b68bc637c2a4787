"""gates.yml, its metrics and their limits: which there are, what they read of a run, and what is refused."""

import json
import math
import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner, Result
from pydantic import BaseModel

from plimsoll.analysis.compare import gates as metrics
from plimsoll.analysis.compare.gates import (
    METRICS,
    CensoredError,
    Gate,
    Gates,
    NoFigureError,
    Reading,
    metric_of,
    read_gates,
)
from plimsoll.analysis.evidence.measure import measure_run
from plimsoll.analysis.evidence.run import WHOLE
from plimsoll.cli import main
from plimsoll.common.errors import SettingsError
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import (
    BACKENDS,
    gated,
    judged,
    reasons,
    regress,
    runs_of,
    sign_off,
    write_both,
    write_comparable,
    write_gates,
    write_night,
)
from tests.support.docs import section
from tests.support.experiment import add_events, measure_event
from tests.support.programs import DOCS
from tests.support.rundir import load_records

WRONG_GATES = [
    ("nothing", "{}", "gates: is missing"),
    ("an empty list", "gates: []", "gates: must not be empty"),
    ("no limit", "gates:\n- {scenario: a}", "gates.0: has no limit: give at_most_ratio or at_most_ms"),
    ("an unknown key", "gates:\n- {scenario: a, at_most: 3}", "gates.0.at_most: is not a known key"),
    ("no scenario", "gates:\n- {at_most_ratio: 3}", "gates.0.scenario: is missing"),
    (
        "an unknown metric",
        "gates:\n- {scenario: a, metric: p98, at_most_ratio: 3}",
        "must be one of p99.9, p99",
    ),
    ("an unknown phase", "gates:\n- {scenario: a, phase: midway, at_most_ratio: 3}", "gates.0.phase"),
    (
        "a ratio of errors",
        "gates:\n- {scenario: a, metric: error share, at_most_ratio: 3}",
        "at_most_ratio: is not a limit of error share: give at_most_more or at_most_share",
    ),
    ("a share of times", "gates:\n- {scenario: a, at_most_share: 0.1}", "is not a limit of p99.9"),
    (
        "no more errors at all",
        "gates:\n- {scenario: a, metric: error share, at_most_more: 0}",
        "at_most_more: is 0, and no number of runs shows that there is none: give 0.001 or so",
    ),
    (
        "no stall in any run",
        "gates:\n- {scenario: a, metric: stalls over 9 ms, at_most_share_of_runs: 0}",
        "at_most_share_of_runs: is 0, and no number of runs shows that there is none: give 0.1 or so",
    ),
    ("a negative ratio", "gates:\n- {scenario: a, at_most_ratio: -1}", "at_most_ratio"),
    ("NaN", "gates:\n- {scenario: a, at_most_ratio: .nan}", "at_most_ratio"),
    ("infinity", "gates:\n- {scenario: a, at_most_ms: .inf}", "at_most_ms"),
    ("a percentage", "confidence: 95\ngates:\n- {scenario: a, at_most_ratio: 3}", "confidence"),
    ("three runs", "least_runs: 3\ngates:\n- {scenario: a, at_most_ratio: 3}", "least_runs"),
    (
        "one gate twice",
        "gates:\n- {scenario: a, at_most_ratio: 3}\n- {scenario: a, at_most_ms: 3}",
        "gates.1: is gates.0 again",
    ),
    ("no YAML", "gates: [", "is not valid YAML"),
]


@pytest.mark.parametrize(("what", "text", "says"), WRONG_GATES, ids=[row[0] for row in WRONG_GATES])
def test_wrong_gates(tmp_path: Path, what: str, text: str, says: str) -> None:
    (tmp_path / "gates.yml").write_text(text)
    with pytest.raises(SettingsError) as refused:
        read_gates(tmp_path / "gates.yml")
    assert says in str(refused.value), what


def test_all_problems_of_the_gates_at_once(tmp_path: Path) -> None:
    (tmp_path / "gates.yml").write_text("confidence: 2\ngates:\n- {scenario: a, metric: x}\n- {phase: y}\n")
    with pytest.raises(SettingsError) as refused:
        read_gates(tmp_path / "gates.yml")
    assert len(str(refused.value).splitlines()) == 4


def test_every_key_of_the_gates_is_documented_and_none_that_there_is_not() -> None:
    def row(prefix: str, model: type[BaseModel]) -> list[tuple[str, str]]:
        return [(prefix + name, field.description or "") for name, field in model.model_fields.items()]

    wanted = {key: says.rstrip(".") for key, says in [*row("", Gates), *row("gates.", Gate)]}
    found = {}
    for line in section("compare.md", "gates.yml").partition("| metric |")[0].splitlines():
        if line.startswith("| `"):
            key, _, says = (cell.strip() for cell in line.strip("|").split("|"))
            found[key.strip("`")] = says
    assert found == wanted


def test_the_gates_in_the_document_are_right(tmp_path: Path) -> None:
    text = re.search(r"```yaml\n(.*?)```", section("compare.md", "gates.yml"), re.DOTALL)
    assert text
    (tmp_path / "gates.yml").write_text(text[1])
    assert len(read_gates(tmp_path / "gates.yml").gates) == len(yaml.safe_load(text[1])["gates"])


def test_a_gate_says_what_it_looks_at() -> None:
    assert (
        Gate(scenario="save", metric="measure publish", at_most_ratio=2).name == "save whole: p50 of publish"
    )


FIGURES: list[tuple[str, str, str]] = [
    (
        "p99.9 of few",
        "phase: before, metric: p99.9, at_most_ratio: 2",
        "has 200 requests before the saturator, and p99.9",
    ),
    (
        "an unknown measure",
        "metric: measure publish, at_most_ratio: 2",
        "has no publish in the whole run (it has: save",
    ),
    (
        "a measure with NaN",
        "metric: measure save, at_most_ratio: 2",
        "the measure save has values that are not numbers",
    ),
    ("a figure of 0", "metric: measure none, at_most_ratio: 2", "is 0, which has no ratio"),
    ("after nothing", "phase: after, metric: p50, at_most_ratio: 2", "has 0 requests after the saturator"),
    ("no request, no errors", "phase: after, metric: error share, at_most_more: 0.1", "has no request after"),
]


@pytest.mark.parametrize(("what", "gate", "says"), FIGURES, ids=[row[0] for row in FIGURES])
def test_figures_that_are_not_there(tmp_path: Path, what: str, gate: str, says: str) -> None:
    write_both(tmp_path, measures=[("save", 1.0), ("none", 0.0)])
    add_events(runs_of(tmp_path)[0], measure_event("save", math.nan, 5))
    found = judged(tmp_path, gated(gate))
    assert found.verdict == "INCONCLUSIVE", what
    assert says in reasons(found)


@pytest.mark.parametrize(("value", "verdict"), [(0.0, "PASS"), (29_000.0, "PASS"), (31_000.0, "FAIL")])
def test_an_outage_that_there_was_not_keeps_a_limit_in_ms(tmp_path: Path, value: float, verdict: str) -> None:
    write_both(tmp_path, repeats=6, measures=[("outage: members", value)])
    gate = 'metric: "measure outage: members", at_most_ms: 30000'
    assert judged(tmp_path, gated(gate)).verdict == verdict
    both = gated(f"{gate}, at_most_ratio: 2")
    write_both(
        tmp_path, repeats=7, measures=[("outage: members", value)], first=99
    )  # others, which nobody saw
    for run in sorted((tmp_path / "runs").iterdir())[:12]:
        shutil.rmtree(run)
    assert judged(tmp_path, both).verdict == (verdict if value else "INCONCLUSIVE")


def test_absolute_limits(tmp_path: Path) -> None:
    write_both(tmp_path, repeats=6)
    low, high, found = (
        judged(tmp_path, gated(f"at_most_ms: {ms}, at_most_ratio: 1.1")) for ms in (40, 60, 50)
    )
    assert (low.verdict, high.verdict, found.verdict) == ("FAIL", "PASS", "INCONCLUSIVE")
    assert [each.verdict.outcome for each in found.judged] == ["PASS", "INCONCLUSIVE", "PASS"]


# 10 of 1,500 requests fail at once, all of them before the saturator starts.
CENSORED: list[tuple[str, str, str, float | None, str, str | None]] = [
    ("a percentile that is a failure's", "p99.9", WHOLE, 30.0, "at least 30 s", "p99.9"),
    ("of which nothing is known", "p99.9", WHOLE, None, "is not known", "p99.9"),
    ("a percentile below the failures", "p99", WHOLE, 30.0, "", None),
    ("a phase without failures", "p99.9", "during", 30.0, "", None),
    ("the mean counts them at their time-out", "mean", WHOLE, 30.0, "", None),
    ("or is withheld", "mean", WHOLE, None, "does not say at which time-out", None),
]


@pytest.mark.parametrize(
    ("what", "metric", "phase", "timeout_s", "says", "lost"), CENSORED, ids=[r[0] for r in CENSORED]
)
def test_a_figure_is_given_where_it_is_no_failure(
    tmp_path: Path, what: str, metric: str, phase: str, timeout_s: float | None, says: str, lost: str | None
) -> None:
    path = write_comparable(tmp_path / "run", "nvme", 1, 0, 50.0, errors=10, timeout_s=timeout_s)
    run = measure_run(RunDirectory.open(path))
    reading = Reading(run, run.phases[phase], metric, "in the whole run")
    assert (lost in reading.phase.response_ms.censored) is (lost is not None), what
    if not says:
        assert metric_of(metric).value(reading) > 0
        return
    with pytest.raises(NoFigureError, match=says) as caught:
        metric_of(metric).value(reading)
    assert isinstance(caught.value, CensoredError) is (lost is not None)
    if isinstance(caught.value, CensoredError):
        assert caught.value.at_least == (None if timeout_s is None else 1000 * timeout_s)


def test_the_median_of_a_step_that_fails_is_censored_too(tmp_path: Path) -> None:
    path = write_comparable(tmp_path / "run", "nvme", 1, 0, 50.0, errors=800, timeout_s=5.0)
    run = measure_run(RunDirectory.open(path))
    step = run.phases[WHOLE].steps["page"]
    assert (step.median, step.at_least, step.least) == (None, 5000.0, 5000.0)
    with pytest.raises(CensoredError, match="at least 5 s"):
        metric_of("measure page").value(Reading(run, run.phases[WHOLE], "measure page", "in the whole run"))


def test_figures_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    path = write_comparable(tmp_path / "run", "nvme", 1, 0, 50.0, errors=3, timeout_s=30.0)
    records = load_records(path)
    took_ms = np.where(records["error"] > 0, 30_000, records["total_us"] / 1000)
    whole = measure_run(RunDirectory.open(path)).phases[WHOLE]
    assert whole.failures == 3
    assert whole.response_ms["mean"] == pytest.approx(took_ms.mean())
    assert whole.response_ms["p99"] == sorted(took_ms)[1484]
    assert whole.response_ms.shown("p99.9") == "≥ 30 s"


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
    gates = write_gates(tmp_path, gated("metric: request count, at_most_ratio: 1.1"))
    arguments = ["compare", str(write_both(tmp_path / "both")), *BACKENDS, "--gates", str(gates)]
    unknown = CliRunner().invoke(main, arguments)
    assert (
        "must be one of p99.9, p99, p95, p90, p50, mean, error share, answers, stalls over N ms, measure NAME"
        in unknown.stderr
    )
    monkeypatch.setattr(metrics, "METRICS", [*metrics.METRICS, toy.RequestCount()])
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert " ".join(result.stdout.splitlines()[3].split()) == (
        "PASS replay whole: request count 1,500 requests 1,500 requests × 1.00 × 1.00 … × 1.00 ≤ × 1.10 4 v 4"
    )
    write_gates(tmp_path, gated("metric: request count, at_most_ms: 5"))
    wrong = CliRunner().invoke(main, arguments)
    assert "at_most_ms: is not a limit of request count: give at_most_ratio" in wrong.stderr


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


def documents(folder: Path) -> list[str]:
    return [f"--{form}={folder / form}" for form in ("html", "junit", "markdown")]


def rows(result: Result) -> list[str]:
    """Return the metrics in a command's table of gates, one a limit."""
    assert result.exit_code in (0, 1, 3), repr(result.exception)
    return re.findall(r"^[A-Z]+ +replay.* whole: (.+?)  ", result.stdout, re.MULTILINE)


def test_compare_judges_every_limit(experiment: Path, tmp_path: Path) -> None:
    gates = write_gates(tmp_path, json.dumps({"gates": GATES}))
    words = ["compare", str(experiment), *BACKENDS, "--gates", str(gates)]
    result = CliRunner().invoke(main, [*words, *documents(tmp_path)])
    assert rows(result) == [*(metric_of(name).label(name) for name in ROWS), "answers"]


@pytest.mark.parametrize("gate", GATES, ids=LIMITS)
def test_signoff_says_what_every_limit_allows(
    experiment: Path, tmp_path: Path, gate: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.analysis.signoff.pdf.find_chromium", lambda: None)
    gates, out = write_gates(tmp_path, json.dumps({"gates": [gate]})), tmp_path / "signed"
    result = sign_off(experiment, *BACKENDS, "--gates", gates, "--out", out)
    assert result.exit_code in (0, 1, 3), repr(result.exception)
    page = (out / "signoff.html").read_text(encoding="utf-8")
    allowed = {"at_most_ms": "<td>At most 0.5 ms.</td>", "at_most_ratio": "<td>At most 0.5 times as "}
    for limit in LIMITS[gate["metric"]]:
        assert allowed.get(limit, "<td>At most 50 % of the ") in page


def test_regress_judges_every_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.analysis.regress.judge.BASELINE_NIGHTS", 4)
    nights = [write_night(tmp_path, number, {"nvme": 40}, measures=SAVED) for number in range(8)]
    history, gates = tmp_path / "history.sqlite", write_gates(tmp_path, json.dumps({"gates": GATES}))
    regress(history, *nights[:4], "--set-baseline", "latest")
    result = regress(history, *nights[4:], "--gates", gates, *documents(tmp_path))
    assert rows(result) == ROWS
    assert " × 1.00  ≤ × 0.50   4 v 4" in result.stdout, "both sides have their nights"
