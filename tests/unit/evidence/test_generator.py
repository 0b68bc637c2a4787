"""When a load generator is too late to measure by, and what that bars."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.generator import SENT_LATE, is_late
from plimsoll.cli import main
from tests.support.comparable import REQUESTS, runs_of, write_both
from tests.support.programs import FIXTURES
from tests.support.rundir import change, records

ROWS = json.loads((FIXTURES / "lateness.json").read_text())


@pytest.mark.parametrize("row", ROWS, ids=[row["says"] for row in ROWS])
def test_a_generator_is_late_in_itself_and_beside_what_it_measures(row: dict[str, Any]) -> None:
    assert is_late(row["lag_ms"], row["response_ms"]) is row["limited"], row["says"]


GATES = "gates:\n- {scenario: replay, metric: p99, at_most_ratio: 1.1}\n"


def verdict(folder: Path, gates: str = GATES) -> dict[str, Any]:
    """What the command says of sata and nvme in `folder`; its exit code is under `exit`."""
    path = folder / "gates.yml"
    path.write_text(gates)
    line = [
        "compare",
        str(folder),
        "--baseline",
        "sata",
        "--candidate",
        "nvme",
        "--gates",
        str(path),
        "--json",
    ]
    result = CliRunner().invoke(main, line)
    found: dict[str, Any] = json.loads(result.stdout)
    return found | {"exit": result.exit_code}


def names(found: dict[str, Any]) -> set[str]:
    return {finding["name"] for finding in found["findings"]}


def rewrite(path: Path, spoil: Callable[[np.ndarray], object]) -> None:
    """Change the records of a run."""
    data = (path / "requests.npy").read_bytes()
    table = np.frombuffer(data[512:], dtype=records(0).dtype).copy()
    spoil(table)
    (path / "requests.npy").write_bytes(data[:512] + table.tobytes())


def columns(part: slice, **values: int) -> Callable[[np.ndarray], object]:
    def spoil(table: np.ndarray) -> None:
        for name, value in values.items():
            table[name][part] = value

    return spoil


def _all(folder: Path, backend: str, spoil: Callable[[np.ndarray], object]) -> None:
    for path in runs_of(folder, backend):
        rewrite(path, spoil)


LATE: list[tuple[str, int, Callable[[np.ndarray], object], str]] = [
    (
        "900 requests, each sent 500 ms late",
        900,
        columns(slice(None), lag_us=500_000),
        "metric: p99",
    ),
    (
        "90 ms of lag in 60 % of the requests, where only the median is gated",
        REQUESTS,
        columns(slice(0, REQUESTS * 6 // 10), lag_us=90_000),
        "metric: p50",
    ),
    (
        "90 ms of lag in 6 % of the requests: more than a tenth of those above the median",
        REQUESTS,
        columns(slice(0, REQUESTS * 6 // 100), lag_us=90_000),
        "metric: p50",
    ),
    (
        "90 ms of lag in 0.6 % of the requests, where the p99 is gated",
        REQUESTS,
        columns(slice(0, REQUESTS * 6 // 1000), lag_us=90_000),
        "metric: p99",
    ),
]


SELDOM = columns(slice(0, None, 167), lag_us=90_000)  # 0.6 % of the requests


P50 = "gates:\n- {scenario: replay, metric: p50, at_most_ratio: 1.1}\n"


SPARED: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("only the median is gated", P50, {}, ["PASS", "PASS"]),
    (
        "the p99.9 is gated too: undecided, as are the answers",
        P50 + "- {scenario: replay, metric: p99.9, at_most_ratio: 1.1}\n",
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
    (
        "nobody knows what limited it",
        P50,
        {"generator_limited": True},
        ["INCONCLUSIVE", "INCONCLUSIVE"],
    ),
]


@pytest.mark.parametrize(("what", "gates", "facts", "outcomes"), SPARED, ids=[row[0] for row in SPARED])
def test_a_generator_that_is_seldom_late_bars_what_its_lag_can_change(
    tmp_path: Path, what: str, gates: str, facts: dict[str, Any], outcomes: list[str]
) -> None:
    write_both(tmp_path)
    _all(tmp_path, "nvme", SELDOM)
    for path in runs_of(tmp_path):
        change(path, **facts)
    found = verdict(tmp_path, gates)
    assert [gate["verdict"] for gate in found["gates"]] == outcomes, what
    assert "generator-limited" in names(found)


def test_the_replay_says_in_these_words_that_it_was_late() -> None:
    source = Path(__file__).parents[3] / "replay" / "record" / "summary.go"
    assert f'"{SENT_LATE}: ' in source.read_text()


@pytest.mark.parametrize(("what", "count", "spoil", "metric"), LATE, ids=[row[0] for row in LATE])
@pytest.mark.parametrize("side", ["sata", "nvme"])
def test_a_late_generator_decides_nothing_on_either_side(
    tmp_path: Path, what: str, count: int, spoil: Callable[[np.ndarray], object], metric: str, side: str
) -> None:
    write_both(tmp_path, count=count)
    _all(tmp_path, side, spoil)
    found = verdict(tmp_path, GATES.replace("metric: p99", metric))
    assert found["verdict"] == "INCONCLUSIVE", what
    assert "generator-limited" in names(found)


def test_lag_that_differs_between_the_sides_is_named(tmp_path: Path) -> None:
    write_both(tmp_path)
    _all(tmp_path, "sata", columns(slice(None), lag_us=900))
    found = verdict(tmp_path)
    assert "lag-differs" in names(found)


@pytest.mark.parametrize(("without_ms", "named"), [(0.001, True), (1e6, False)], ids=["most", "little"])
def test_waiting_for_ones_own_client_is_named_where_it_makes_the_tail(
    tmp_path: Path, without_ms: float, named: bool
) -> None:
    for path in runs_of(write_both(tmp_path)):
        summary = json.loads((path / "summary.json").read_text())
        summary["requests"]["client_queued"] = 7
        summary["unqueued_ms"] = {"p99.9": without_ms}
        (path / "summary.json").write_text(json.dumps(summary))
    assert ("client-queued" in names(verdict(tmp_path))) is named
