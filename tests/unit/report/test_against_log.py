"""A replay held against the log that it replays: pairs of one line, quantiles, and what is then said."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from plimsoll.analysis.page.against_log import against_log_chart, check_against_log, hold_against_log
from plimsoll.cli import main
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import BACKENDS, sign_off, write_both, write_gates
from tests.support.rundir import records, write_run

REQUESTS = 4000


def load(*sums: str) -> dict[str, Any]:
    return {"digest": "0" * 64, "settings": {"timeout_s": 30.0, "logs": [{"sha256": said} for said in sums]}}


def imported(path: Path, table: np.ndarray, *sums: str, finest_us: float = 1.0, **facts: Any) -> Path:
    return write_run(
        path,
        table,
        scenario="accesslog",
        program={"name": "accesslog", "version": "0.1.0"},
        load=load(*sums),
        scenario_settings={"durations_multiple_of_us": finest_us},
        **facts,
    )


def times(factor: float = 1.0, count: int = REQUESTS, seed: int = 1) -> np.ndarray:
    return (np.random.default_rng(seed).lognormal(10, 1, count) * factor).astype("u4")


def held(log: Path, *replays: Path) -> Any:
    return hold_against_log(log, [RunDirectory.open(path) for path in replays])


def test_a_replay_that_took_twice_as_long_is_twice_the_log_at_each_quantile(tmp_path: Path) -> None:
    log = imported(tmp_path / "log", records(REQUESTS, total_us=times()), "a")
    order = np.random.default_rng(5).permutation(REQUESTS)  # requests are done in another order
    table = records(REQUESTS, total_us=times() * 2)[order]
    (found,) = held(log, write_run(tmp_path / "replay", table, load=load("a")))
    assert found.total.requests == REQUESTS
    assert [round(ratio, 9) for ratio in found.total.ratios.values()] == [2.0] * 5
    assert not found.apart, "twice is not more than twice"
    assert all(abs(y / x - 2) < 1e-9 for _, x, y in found.total.curve)


def test_pairs_are_of_one_line_of_one_file_whatever_its_place(tmp_path: Path) -> None:
    """The import has the files the other way round; the replay sent only a part of the second."""
    lines = np.arange(1, REQUESTS + 1, dtype="u8")
    second = lines | np.uint64(1 << 48)
    table = records(2 * REQUESTS, line=np.concatenate([lines, second]))
    table["total_us"] = np.concatenate([times(seed=1), times(10, seed=2)])
    log = imported(tmp_path / "log", table, "first", "second")
    sent = records(1500, line=lines[:1500], total_us=times(10, seed=2)[:1500])
    (found,) = held(log, write_run(tmp_path / "replay", sent, load=load("second", "first")))
    assert (found.total.requests, found.unpaired) == (1500, 0)
    assert set(found.total.ratios.values()) == {1.0}


def test_lines_that_the_import_lacks_and_the_warm_up_are_no_pairs(tmp_path: Path) -> None:
    log = imported(tmp_path / "log", records(2000, total_us=times(count=2000)), "a")
    table = records(3000, total_us=times(count=3000), flags=np.where(np.arange(3000) < 500, 8, 0))
    (found,) = held(log, write_run(tmp_path / "replay", table, load=load("a")))
    assert (found.total.requests, found.unpaired) == (1500, 1000)


def test_failures_are_never_fast(tmp_path: Path) -> None:
    log = imported(tmp_path / "log", records(REQUESTS, total_us=times()), "a")
    table = records(REQUESTS, total_us=times(), error=np.where(np.arange(REQUESTS) % 50 == 0, 1, 0))
    (found,) = held(log, write_run(tmp_path / "replay", table, load=load("a")))
    assert found.total.failures == REQUESTS // 50
    assert found.total.replayed_ms["p99"] is None
    assert found.total.ratios["p99"] is None
    assert found.total.ratios["p50"] is not None
    assert max(y for _, _, y in found.total.curve) < 30_000


def test_no_ratio_is_of_the_rounding_of_the_log(tmp_path: Path) -> None:
    table = records(REQUESTS, total_us=np.where(np.arange(REQUESTS) % 100 < 2, 500_000, 3000))
    log = imported(tmp_path / "log", table, "a", finest_us=1000.0)
    (found,) = held(log, write_run(tmp_path / "replay", table.copy(), load=load("a")))
    assert found.total.ratios == {"p50": None, "p90": None, "p95": None, "p99": 1.0, "p99.9": 1.0}


def test_routes_with_enough_requests_stand_by_themselves(tmp_path: Path) -> None:
    route = np.where(np.arange(REQUESTS) < 2500, 0, np.where(np.arange(REQUESTS) < 3600, 1, 2))
    log = imported(tmp_path / "log", records(REQUESTS, total_us=times(), route=route), "a")
    slow_images = times() * np.where(route == 1, 4, 1)
    table = records(REQUESTS, total_us=slow_images, route=route)
    (found,) = held(log, write_run(tmp_path / "replay", table, load=load("a")))
    assert [(each.name, each.requests) for each in found.routes] == [("page", 2500), ("image", 1100)]
    assert found.routes[1].ratios["p99"] == pytest.approx(4)
    assert found.routes[0].ratios["p99"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("why", "log", "replay", "says"),
    [
        ("a replay is no log", {"program": {"name": "replay"}}, {}, "is not an imported access log"),
        ("an import that was cut off", {"status": "interrupted"}, {}, "import the log again"),
        ("another log", {}, {"load": load("b")}, "none of the runs replays this log"),
        ("a replay that does not say of what", {}, {"load": None}, "none of the runs replays this log"),
        (
            "a replay that says nonsense",
            {},
            {"load": load() | {"settings": {"logs": [7, "a"]}}},
            "none of the runs",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    why: str, log: dict[str, Any], replay: dict[str, Any], says: str, tmp_path: Path
) -> None:
    path = imported(tmp_path / "log", records(1000), "a")
    facts = json.loads((path / "run.json").read_text()) | log
    (path / "run.json").write_text(json.dumps(facts))
    with pytest.raises(RunDirectoryError, match=says):
        held(path, write_run(tmp_path / "replay", records(1000), **({"load": load("a")} | replay)))


def report(tmp_path: Path, factor: float, **facts: Any) -> tuple[Result, str]:
    log = imported(tmp_path / "log", records(REQUESTS, total_us=times()), "a")
    run = write_run(tmp_path / "<b>", records(REQUESTS, total_us=times(factor)), load=load("a"), **facts)
    told = CliRunner().invoke(main, ["report", str(run), "--against-log", str(log)])
    return told, (run / "report.html").read_text(encoding="utf-8")


def test_the_report_says_it_and_draws_it(tmp_path: Path) -> None:
    told, page = report(tmp_path, 1.0)
    assert told.exit_code == 0, told.output
    assert "against its log (4,000 requests): p50 × 1, p90 × 1" in told.output
    assert "Held against the log" in page
    assert "Under replay as in production?" in page
    assert "differs from production" not in page


def test_a_replay_that_is_far_off_is_a_warning(tmp_path: Path) -> None:
    _, page = report(tmp_path, 5.0, speed="10", backend="<b>")
    assert "differs from production" in page
    assert "was not sent at the recorded pace (10)" in page
    assert "<b> is not" not in page, "names are escaped"


def test_the_chart_of_nothing_is_none(tmp_path: Path) -> None:
    log = imported(tmp_path / "log", records(1000, total_us=0), "a")
    found = held(log, write_run(tmp_path / "replay", records(1000), load=load("a")))
    assert against_log_chart(found) is None
    assert list(check_against_log(found)) == []


def test_a_signoff_takes_it_as_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_CHROMIUM", str(tmp_path / "none"))
    write_both(tmp_path / "experiment", 1.0)
    for path in (tmp_path / "experiment").rglob("run.json"):
        facts = json.loads(path.read_text())
        if facts["scenario"] == "replay":
            path.write_text(json.dumps(facts | {"load": load("a")}))
    log = imported(tmp_path / "log", records(200_000, total_us=20_000), "a")
    out = tmp_path / "signed"
    told = sign_off(
        tmp_path / "experiment",
        *BACKENDS,
        "--gates",
        write_gates(tmp_path),
        "--out",
        out,
        "--against-log",
        log,
    )
    assert told.exit_code in (0, 1, 3), told.output
    said = json.loads((out / "signoff.json").read_text())["against_log"]
    assert len(said) >= 8
    assert all(each["total"]["requests"] > 0 for each in said)
    page = (out / "signoff.html").read_text(encoding="utf-8")
    assert "Held against the log" in page
    assert "Under replay as in production?" in page
    assert "log/requests.npy" in (out / "SHA256SUMS").read_text()
