"""When a load generator is too late to measure by, and what that bars."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.evidence.generator import SENT_LATE, is_late
from tests.support.comparable import (
    REQUESTS,
    change_side,
    compare_json,
    finding_names,
    gated,
    runs_of,
    write_both,
)
from tests.support.programs import FIXTURES
from tests.support.rundir import change, change_records

ROWS = json.loads((FIXTURES / "lateness.json").read_text())


@pytest.mark.parametrize("row", ROWS, ids=[row["says"] for row in ROWS])
def test_a_generator_is_late_in_itself_and_beside_what_it_measures(row: dict[str, Any]) -> None:
    assert is_late(row["lag_ms"], row["response_ms"]) is row["limited"], row["says"]


P99 = gated("metric: p99, at_most_ratio: 1.1")
P50 = gated("metric: p50, at_most_ratio: 1.1")
LATE: list[tuple[str, int, int, int, str]] = [
    ("900 requests, each sent 500 ms late", 900, 900, 500_000, P99),
    (
        "90 ms of lag in 60 % of the requests, where only the median is gated",
        REQUESTS,
        REQUESTS * 6 // 10,
        90_000,
        P50,
    ),
]
SPARED: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("only the median is gated", P50, {}, ["PASS", "PASS"]),
    (
        "the p99.9 is gated too: undecided, as are the answers",
        gated("metric: p50, at_most_ratio: 1.1", "metric: p99.9, at_most_ratio: 1.1"),
        {},
        ["PASS", "INCONCLUSIVE", "INCONCLUSIVE"],
    ),
    (
        "something else limited the generator as well",
        P50,
        {"generator_limited": True, "generator_limited_reason": "k6 dropped 90 iterations: give it more"},
        ["INCONCLUSIVE", "INCONCLUSIVE"],
    ),
    (
        "the run itself says that it was late",
        P50,
        {
            "generator_limited": True,
            "generator_limited_reason": f"{SENT_LATE}: by 90 ms; use a lower --speed",
        },
        ["PASS", "PASS"],
    ),
    ("nobody knows what limited it", P50, {"generator_limited": True}, ["INCONCLUSIVE", "INCONCLUSIVE"]),
]


@pytest.mark.parametrize(("what", "gates", "facts", "outcomes"), SPARED, ids=[row[0] for row in SPARED])
def test_a_generator_that_is_seldom_late_bars_what_its_lag_can_change(
    tmp_path: Path, what: str, gates: str, facts: dict[str, Any], outcomes: list[str]
) -> None:
    write_both(tmp_path)
    change_side(tmp_path, "nvme", slice(0, None, 167), lag_us=90_000)  # 0.6 % of the requests
    for path in runs_of(tmp_path):
        change(path, **facts)
    found = compare_json(tmp_path, gates)
    assert [gate["verdict"] for gate in found["gates"]] == outcomes, what
    assert ("generator-limited" in finding_names(found)) == ("INCONCLUSIVE" in outcomes), what


def test_the_replay_says_in_these_words_that_it_was_late() -> None:
    source = Path(__file__).parents[3] / "replay" / "record" / "summary.go"
    assert f'"{SENT_LATE}"' in source.read_text()


@pytest.mark.parametrize(("what", "count", "late", "lag_us", "gates"), LATE, ids=[row[0] for row in LATE])
@pytest.mark.parametrize("side", ["sata", "nvme"])
def test_a_late_generator_decides_nothing_on_either_side(
    tmp_path: Path, what: str, count: int, late: int, lag_us: int, gates: str, side: str
) -> None:
    write_both(tmp_path, count=count)
    change_side(tmp_path, side, slice(late), lag_us=lag_us)
    found = compare_json(tmp_path, gates)
    assert found["verdict"] == "INCONCLUSIVE", what
    assert "generator-limited" in finding_names(found)


@pytest.mark.parametrize("side", ["sata", "nvme"])
def test_lag_that_no_gate_feels_bars_nothing_and_is_not_said(tmp_path: Path, side: str) -> None:
    write_both(tmp_path)
    change_side(tmp_path, side, slice(REQUESTS * 6 // 100), lag_us=90_000)
    found = compare_json(tmp_path, P50)
    assert found["verdict"] == "PASS"
    assert not {"generator-limited", "generator-late"} & finding_names(found)


@pytest.mark.parametrize("side", ["sata", "nvme"])
@pytest.mark.parametrize(("late", "named"), [(4, True), (3, False)], ids=["all runs", "all but one"])
def test_lag_that_differs_between_all_runs_of_the_sides_is_named(
    tmp_path: Path, side: str, late: int, named: bool
) -> None:
    for path in runs_of(write_both(tmp_path), side)[:late]:
        change_records(path, lag_us=900)
    assert ("lag-differs" in finding_names(compare_json(tmp_path, P99))) is named


@pytest.mark.parametrize(("without_ms", "named"), [(0.001, True), (1e6, False)], ids=["most", "little"])
def test_waiting_for_ones_own_client_is_named_where_it_makes_the_tail(
    tmp_path: Path, without_ms: float, named: bool
) -> None:
    for path in runs_of(write_both(tmp_path)):
        summary = json.loads((path / "summary.json").read_text())
        summary["requests"]["client_queued"] = 7
        summary["unqueued_ms"] = {"p99.9": without_ms}
        (path / "summary.json").write_text(json.dumps(summary))
    assert ("client-queued" in finding_names(compare_json(tmp_path, P99))) is named
