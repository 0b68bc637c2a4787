"""A run's figures against a plain loop over its records."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.evidence.measure import Collection, figures_of, measure_figures
from plimsoll.analysis.statistics.percentiles import NEVER_US, FailedTimes
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.analysis.statistics.routes import RouteFigures
from plimsoll.common.errors import NoRequestsError
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import MEMBER, SENT_TO_LOGIN
from tests.support.rundir import records, write_run

TIME = st.integers(0, 2**32 - 1)
row = st.fixed_dictionaries(
    {
        "due_ns": st.integers(0, 10**12),
        "lag_us": TIME,
        "total_us": TIME,
        "ttfb_us": TIME,
        "bytes": st.integers(0, 10**9),
        "logged_bytes": st.integers(-1, 3),
        "route": st.integers(0, 3),
        "status": st.sampled_from([0, 200, 404, 429, 500]),
        "logged_status": st.sampled_from([0, 200, 404, 429, 503]),
        "error": st.sampled_from([0, 0, 0, 1, 4]),
        "flags": st.sampled_from([0, 1, 8, 16, 24, 144]),
    }
)


@given(st.lists(row, min_size=1, max_size=50), st.integers(1, 20), st.none() | st.integers(1, 10**9))
def test_counts_and_the_grinders_table_are_those_of_a_plain_loop(
    rows: list[dict[str, int]], block: int, timeout_us: int | None
) -> None:
    table = records(len(rows), **{name: [r[name] for r in rows] for name in rows[0]})
    kept = [r for r in rows if not r["flags"] & 8]
    collection = Collection(timeout_us=timeout_us)
    for start in range(0, len(table), block):
        collection.add(CountedRequests.of(table[start : start + block], timeout_us))
    figures = figures_of(collection, lambda n: f"r{n}", lambda n: f"e{n}")
    assert (figures.requests, figures.warmup) == (len(kept), len(rows) - len(kept))
    assert figures.queued == sum(bool(r["flags"] & 16) for r in kept)
    response = figures.samples["response"]
    bad = [r for r in kept if _is_failure(r)]
    assert figures.failures == len(bad)
    for name, columns in (("response", ("lag_us", "total_us")), ("service", ("total_us",))):
        took_us = {id(r): sum(int(r[column]) for column in columns) for r in kept}
        counts = {id(r): NEVER_US if timeout_us is None else max(took_us[id(r)], timeout_us) for r in bad}
        values = [counts.get(id(r), took_us[id(r)]) for r in kept]
        assert figures.samples[name].sorted_us.tolist() == sorted(values)
        wrong = sum(not r["error"] and (timeout_us is None or took_us[id(r)] < timeout_us) for r in bad)
        least_us = min(counts.values(), default=None)
        assert figures.samples[name].failed == FailedTimes(least_us, len(bad), wrong)
        mean_ms = figures.samples[name].mean_ms
        if bad and NEVER_US in values:  # or as long as a record can say
            assert mean_ms is None
        elif kept:
            assert mean_ms == pytest.approx(sum(values) / len(values) / 1000)
    assert response.n == len(kept)
    lags = sorted(r["lag_us"] for r in kept if not r["flags"] & 16)
    assert figures.samples["lag"].sorted_us.tolist() == lags
    assert figures.samples["ttfb"].sorted_us.tolist() == sorted(
        r["ttfb_us"] for r in kept if r["ttfb_us"] and not _is_failure(r)
    )
    _check_table(figures.total, kept, kept)
    for number in {r["route"] for r in kept}:
        _check_table(
            figures.routes[f"{number + 1} r{number}"], [r for r in kept if r["route"] == number], kept
        )


def _is_failure(r: dict[str, int]) -> bool:
    """The rule in words: no whole response, or an error where the log has none of its class."""
    if r["error"]:
        return True
    if r["status"] == 429:
        return r["logged_status"] != 429
    if r["status"] >= 500:
        return r["logged_status"] < 500
    return r["status"] >= 400 and 0 < r["logged_status"] < 400


def _check_table(figures: RouteFigures, rows: list[dict[str, int]], everything: list[dict[str, int]]) -> None:
    good = [r for r in rows if not r["error"]]
    other_status = [r for r in good if r["logged_status"] and r["status"] != r["logged_status"]]
    same = [r for r in good if r["logged_status"] and r["status"] == r["logged_status"]]
    other_size = [r for r in same if r["logged_bytes"] >= 0 and r["bytes"] != r["logged_bytes"]]
    grinder = figures.grinder
    assert figures.failures == sum(map(_is_failure, rows))
    assert (figures.requests, figures.errors) == (len(rows), len(rows) - len(good))
    assert (figures.status_mismatch, figures.bytes_mismatch) == (len(other_status), len(other_size))
    assert (grinder.tests, grinder.errors) == (len(good), len(rows) - len(good))
    if not everything:
        return
    start_ns = min(r["due_ns"] + r["lag_us"] * 1000 for r in everything)
    elapsed_s = (max(r["due_ns"] + (r["lag_us"] + r["total_us"]) * 1000 for r in everything) - start_ns) / 1e9
    if elapsed_s:
        assert grinder.tps == pytest.approx(len(good) / elapsed_s)
        assert grinder.rbps == pytest.approx(sum(r["bytes"] for r in rows) / elapsed_s)
    else:
        assert grinder.tps is grinder.rbps is None
    if good:
        totals = [r["total_us"] for r in good]
        assert grinder.mtt_ms == pytest.approx(np.mean(totals) / 1000)
        assert grinder.ttsd_ms == pytest.approx(np.std(totals) / 1000, rel=1e-6, abs=1e-3)
    else:
        assert grinder.mtt_ms is grinder.ttsd_ms is None
    first_bytes = [r["ttfb_us"] for r in good if r["ttfb_us"]]
    assert grinder.mttfb_ms == (pytest.approx(np.mean(first_bytes) / 1000) if first_bytes else None)


def test_the_order_of_the_records_does_not_matter(busy_run: Path, tmp_path: Path) -> None:
    table = np.load(busy_run / "requests.npy")
    shuffled = table[np.random.default_rng(1).permutation(len(table))]
    one = measure_figures(RunDirectory.open(busy_run)).as_json()
    load = {"digest": "d", "settings": {"timeout_s": 30.0}}  # as busy_run's
    other = measure_figures(RunDirectory.open(write_run(tmp_path / "run", shuffled, load=load))).as_json()
    assert one["response_ms"] == other["response_ms"]
    assert one["windows"] == other["windows"]


def test_a_run_of_nothing_but_warm_up_has_nothing_to_report(tmp_path: Path) -> None:
    run = RunDirectory.open(write_run(tmp_path / "run", records(5, flags=8)))
    with pytest.raises(NoRequestsError, match="warm-up"):
        measure_figures(run)


def test_progress_is_told_of_every_record(small_run: Path) -> None:
    seen: list[int] = []
    measure_figures(RunDirectory.open(small_run), seen.append)
    assert sum(seen) == 1000


def test_waiting_for_its_own_client_has_figures_of_its_own(tmp_path: Path) -> None:
    """The response times without that are those that records without the wait have."""
    table = records(2000)
    table["total_us"] = np.random.default_rng(7).integers(1, 400, 2000) * 1000
    alone = table.copy()
    table["flags"][:700], table["lag_us"][:700] = 16 | 128, 8_000_000
    table["error"][690:710] = 2  # a failure counts at its time-out either way
    alone["error"][690:710] = 2
    table["error"][0], table["total_us"][0] = 4, 0  # was never sent
    load = {"digest": "1", "settings": {"timeout_s": 30.0}}
    found = measure_figures(RunDirectory.open(write_run(tmp_path / "run", table, load=load)))
    expected = measure_figures(RunDirectory.open(write_run(tmp_path / "alone", alone[1:], load=load)))
    assert (found.client_queued, found.client_timeouts, expected.client_queued) == (700, 1, 0)
    assert found.samples["unqueued"].figures() == expected.samples["response"].figures()
    assert found.samples["client_wait"].figures_ms()["p50"] == 8000
    assert "unqueued" not in expected.samples


ROWS = [
    ("a member's page, as in the log", 200, 200, MEMBER, 0),
    ("a redirect where the log has a page", 302, 200, MEMBER, 1),
    ("the login, where the log has a page", 302, 200, MEMBER | SENT_TO_LOGIN, 1),
    ("the login, where the log has a redirect", 302, 302, MEMBER | SENT_TO_LOGIN, 1),
    ("the login, where the log says nothing", 302, 0, MEMBER | SENT_TO_LOGIN, 1),
    ("another redirect, as in the log", 302, 302, MEMBER, 0),
]


@pytest.mark.parametrize(
    ("what", "status", "logged", "flags", "mismatches"), ROWS, ids=[row[0] for row in ROWS]
)
def test_who_is_sent_to_the_login_is_a_mismatch(
    what: str, status: int, logged: int, flags: int, mismatches: int, tmp_path: Path
) -> None:
    table = records(3, status=[200, status, 200], logged_status=[200, logged, 200], flags=[0, flags, 0])
    directory = RunDirectory.open(write_run(tmp_path / "run", table))
    assert measure_figures(directory).total.status_mismatch == mismatches, what
