"""False evidence: each case is built and given to the real command, which has to see through it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.generator import SENT_LATE
from plimsoll.cli import main
from plimsoll.rundir.check import records_sha256
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import REQUESTS, instant, runs_of, write_both, write_comparable
from tests.support.rundir import change, records

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


MOST = slice(0, REQUESTS * 9 // 10)
FAST = {"total_us": 300, "ttfb_us": 250}
REFUSED_AT_ONCE = {"status": 0, "bytes": 0, "error": 1, "total_us": 300, "ttfb_us": 0}


def _all(folder: Path, backend: str, spoil: Callable[[np.ndarray], object]) -> None:
    for path in runs_of(folder, backend):
        rewrite(path, spoil)


def _redirected(folder: Path) -> None:
    for side in ("sata", "nvme"):
        _all(folder, side, columns(MOST, status=302))


ANSWERS: list[tuple[str, Callable[[Path], object], str, str]] = [
    (
        "90 % answered 404 in 0.3 ms on the candidate",
        lambda p: _all(p, "nvme", columns(MOST, status=404, **FAST)),
        "FAIL",
        "more-failures",
    ),
    (
        "90 % answered 429 on the candidate",
        lambda p: _all(p, "nvme", columns(MOST, status=429, **FAST)),
        "FAIL",
        "more-failures",
    ),
    (
        "half fast 500s on the candidate, and only the p99 is gated",
        lambda p: _all(p, "nvme", columns(slice(0, REQUESTS // 2), status=500, **FAST)),
        "FAIL",
        "more-failures",
    ),
    (
        "all bodies of the candidate are empty, with status 200",
        lambda p: _all(p, "nvme", columns(slice(None), bytes=0, **FAST)),
        "FAIL",
        "empty-answers",
    ),
    (
        "both sides answer with redirects where the log has pages",
        lambda p: _redirected(p),
        "INCONCLUSIVE",
        "not-as-logged",
    ),
    (
        "the candidate redirects, the baseline answers",
        lambda p: _all(p, "nvme", columns(slice(0, 100), status=302)),
        "INCONCLUSIVE",
        "other-answers",
    ),
    (
        "the candidate's pages are twice as long",
        lambda p: _all(p, "nvme", columns(slice(None), bytes=2048, logged_bytes=-1)),
        "INCONCLUSIVE",
        "other-answers",
    ),
    (
        "the candidate's server died in the middle",
        lambda p: _all(p, "nvme", columns(slice(REQUESTS // 2, None), **REFUSED_AT_ONCE)),
        "FAIL",
        "more-failures",
    ),
]


@pytest.mark.parametrize(("what", "spoil", "outcome", "name"), ANSWERS, ids=[row[0] for row in ANSWERS])
def test_wrong_answers_never_win(
    tmp_path: Path, what: str, spoil: Callable[[Path], object], outcome: str, name: str
) -> None:
    spoil(write_both(tmp_path))
    found = verdict(tmp_path)
    assert found["verdict"] == outcome, what
    assert name in names(found)
    assert "PASS" not in {gate["verdict"] for gate in found["gates"]}


def test_a_failing_baseline_is_a_doubt_and_no_verdict_of_its_own(tmp_path: Path) -> None:
    write_both(tmp_path)
    _all(tmp_path, "sata", columns(slice(0, 300), status=503))
    found = verdict(tmp_path, GATES.replace("1.1", "3"))
    assert "fewer-failures" in names(found)
    assert "more-failures" not in names(found)


def test_answers_can_be_turned_off_by_name_and_are_still_named(tmp_path: Path) -> None:
    write_both(tmp_path)
    _all(tmp_path, "nvme", columns(slice(0, 100), status=302))
    assert verdict(tmp_path)["verdict"] == "INCONCLUSIVE"
    found = verdict(tmp_path, "answers: false\n" + GATES)
    assert found["verdict"] == "PASS"
    assert "other-answers" in names(found)
    assert [gate["metric"] for gate in found["gates"]] == ["p99"]


def test_a_dead_target_is_seen_in_the_records(tmp_path: Path) -> None:
    write_both(tmp_path)
    for path in runs_of(tmp_path):
        rewrite(path, lambda table: table["due_ns"].__imul__(10))
        rewrite(path, columns(slice(REQUESTS // 2, None), **REFUSED_AT_ONCE))
    found = verdict(tmp_path)
    assert found["exit"] == 1
    dead = [finding for finding in found["findings"] if finding["name"] == "target-died"]
    assert len(dead) == 4
    assert all(finding["worse"] for finding in dead)


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


def _copies(folder: Path) -> None:
    """One run of a side, four times."""
    for side in ("sata", "nvme"):
        first, *others = runs_of(folder, side)
        for path in others:
            facts = json.loads((path / "run.json").read_text())
            shutil.rmtree(path)
            shutil.copytree(first, path)
            change(path, **{key: facts[key] for key in ("repeat", "started_at", "ended_at")})


def _relabelled(folder: Path) -> None:
    for one, other in zip(runs_of(folder, "sata"), runs_of(folder, "nvme"), strict=True):
        shutil.copy(one / "requests.npy", other / "requests.npy")


def _shards(folder: Path) -> None:
    for number, path in enumerate(runs_of(folder)):
        change(path, shard={"index": number, "of": 4, "segment": f"{number}/4:{number + 1}/4"})


def _overlapping(folder: Path) -> None:
    change(runs_of(folder)[0], ended_at=instant(9))


def _badly_merged(folder: Path) -> None:
    says = [{"level": "bad", "text": "instance 3 of 4 is missing"}]
    change(runs_of(folder)[0], merged={"of": ["a", "b"], "placed_by": "started_at", "says": says})


def _load(folder: Path, **settings: object) -> None:
    for path in [*runs_of(folder, "sata"), *runs_of(folder)]:
        same: dict[str, object] = {
            "timeout_s": 60.0,
            "max_connections": None,
            "clients": "log",
            "headers": {},
            "program_version": "1",
        }
        changed = settings if "--nvme--" in path.name else {}
        change(path, load={"digest": str(changed), "settings": same | changed})


def _swapped(folder: Path) -> None:
    """Two sides' records, each in the directory of the other."""

    for path in [*runs_of(folder, "sata"), *runs_of(folder)]:
        summary = json.loads((path / "summary.json").read_text())
        summary["records_sha256"] = records_sha256(RunDirectory.open(path).requests)
        (path / "summary.json").write_text(json.dumps(summary))
    for one, other in zip(runs_of(folder, "sata"), runs_of(folder), strict=True):
        kept = (one / "requests.npy").read_bytes()
        shutil.copy(other / "requests.npy", one / "requests.npy")
        (other / "requests.npy").write_bytes(kept)


REFUSED: list[tuple[str, Callable[[Path], object], str]] = [
    ("one run of each side, copied into four folders", _copies, "copy"),
    ("the baseline, copied and called the candidate", _relabelled, "copy"),
    ("four unmerged shards of one run", _shards, "shard"),
    ("two runs on one target at the same time", _overlapping, "overlap"),
    ("what merge called bad", _badly_merged, "merged-badly"),
    ("records of two backends, swapped", _swapped, "other-records"),
    ("another time-out", lambda p: _load(p, timeout_s=1.0), "other-load"),
    ("another cap on connections", lambda p: _load(p, max_connections=28), "other-load"),
    ("clients spread", lambda p: _load(p, clients="proxies' spread over 250"), "other-load"),
    ("another header", lambda p: _load(p, headers={"cookie": "9f86d0"}), "other-load"),
]


@pytest.mark.parametrize(("what", "spoil", "name"), REFUSED, ids=[row[0] for row in REFUSED])
@pytest.mark.parametrize("ratio", [1.0, 5.0], ids=["would pass", "would fail"])
def test_nothing_is_decided_on_false_runs(
    tmp_path: Path, what: str, spoil: Callable[[Path], object], name: str, ratio: float
) -> None:
    spoil(write_both(tmp_path, ratio))
    found = verdict(tmp_path)
    assert found["exit"] == 3, what
    assert name in names(found)
    assert {gate["verdict"] for gate in found["gates"]} == {"INCONCLUSIVE"}
    found_texts = [finding for finding in found["findings"] if finding["name"] == name]
    assert all(finding["runs"] and finding["remedy"] for finding in found_texts)


def test_failures_under_another_load_show_nothing(tmp_path: Path) -> None:
    _load(write_both(tmp_path), timeout_s=1.0)
    _all(tmp_path, "nvme", columns(slice(0, REQUESTS // 2), status=500, **FAST))
    found = verdict(tmp_path)
    assert found["verdict"] == "INCONCLUSIVE"
    assert names(found) >= {"other-load", "more-failures"}


def test_runs_that_failed_since_their_target_died_show_the_candidate_to_be_worse(tmp_path: Path) -> None:
    write_both(tmp_path)
    for path in runs_of(tmp_path):
        rewrite(path, lambda table: table["due_ns"].__imul__(10))
        rewrite(path, columns(slice(REQUESTS // 2, None), **REFUSED_AT_ONCE))
        change(path, status="failed", reason="the target did not answer any more")
    found = verdict(tmp_path)
    assert found["verdict"] == "FAIL"
    assert names(found) >= {"target-died", "incomplete"}


def test_another_version_is_a_doubt(tmp_path: Path) -> None:
    _load(write_both(tmp_path), program_version="2")
    found = verdict(tmp_path)
    assert found["verdict"] == "PASS"
    assert "other-version" in names(found)


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


def test_true_evidence_has_no_finding(tmp_path: Path) -> None:
    _load(write_both(tmp_path))
    found = verdict(tmp_path)
    assert (found["verdict"], found["findings"]) == ("PASS", [])


def test_a_run_of_another_backend_is_no_copy(tmp_path: Path) -> None:
    write_both(tmp_path)
    write_comparable(tmp_path / "runs" / "0099", "xfs", 1, 99, 50.0)
    shutil.copy(runs_of(tmp_path)[0] / "requests.npy", tmp_path / "runs" / "0099" / "requests.npy")
    assert verdict(tmp_path)["findings"] == []
