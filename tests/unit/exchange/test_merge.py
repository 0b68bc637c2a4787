"""Shards of one run become the run that one process would have made."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.evidence.summary import summarise
from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.cli import main
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import Request
from plimsoll.rundir.write import RunWriter
from tests.support.rundir import load_records

START = datetime(2026, 11, 20, 10, tzinfo=UTC)


def shard(
    path: Path, late_s: float, requests: list[Request], status: str = "complete", **facts: object
) -> Path:
    whole = {"scenario": "save-article", "loop": "closed", "started_at": START + timedelta(seconds=late_s)}
    run = RunWriter(path, RunFacts.model_validate(whole | facts), summarise)
    for request in requests:
        run.request(request)
    run.measure("image ready", late_s + 1, "s", iteration=1)
    run.finish("complete" if status == "running" else status, None)  # type: ignore[arg-type]
    if status == "running":  # as a kill leaves it
        (path / "run.json").write_text((path / "run.json").read_text().replace("complete", "running"))
    return path


def request(due_s: float, route: str, total_us: int = 1000, error: str = "none") -> Request:
    return Request(due_ns=round(due_s * 1e9), total_us=total_us, route=route, status=200, error=error)


def test_records_keep_their_route_and_error_and_stand_in_the_order_of_their_ends(tmp_path: Path) -> None:
    first = shard(tmp_path / "a", 0, [request(1, "log in"), request(4, "save", error="nonce_expired")])
    second = shard(tmp_path / "b", 2, [request(1, "save"), request(1.5, "log in", error="timeout")])
    assert merge_shards([second, first], tmp_path / "run").facts.status == "complete"
    run = RunDirectory.open(tmp_path / "run")
    assert [
        (record["due_ns"] / 1e9, run.route_name(record["route"]), run.error_name(record["error"]))
        for record in load_records(run.path)
    ] == [
        (1, "log in", "none"),
        (3, "save", "none"),
        (3.5, "log in", "timeout"),
        (4, "save", "nonce_expired"),
    ]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["measures"]["image ready"]["count"], summary["measures"]["image ready"]["sum"]) == (
        2,
        4.0,
    )
    assert run.facts.started_at == START


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dealt=some.lists(some.lists(some.integers(1, 10**7), max_size=40), min_size=1, max_size=4))
def test_percentiles_are_those_of_all_requests(
    tmp_path_factory: pytest.TempPathFactory, dealt: list[list[int]]
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    shards = [
        shard(
            folder / str(number),
            number,
            [request(n + number / 10, "save", us) for n, us in enumerate(times_us)],
        )
        for number, times_us in enumerate(dealt)
    ]
    merge_shards(shards, folder / "run")
    every = sorted(us for times_us in dealt for us in times_us)
    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert summary["requests"]["sent"] == len(every)
    if every:
        assert summary["service_ms"]["max"] == every[-1] / 1000
        if len(every) > 1:
            wanted = np.percentile(every, 50, method="inverted_cdf") / 1000
            assert summary["service_ms"]["p50"] == wanted


@pytest.mark.parametrize(
    ("status", "merged", "why"),
    [
        ("interrupted", "interrupted", "an interrupted shard leaves the run interrupted"),
        ("failed", "failed", "a failed one fails it"),
        ("running", "interrupted", "one that was killed never said how it ended"),
    ],
)
def test_the_run_is_complete_only_if_every_shard_is(
    tmp_path: Path, status: str, merged: str, why: str
) -> None:
    shards = [
        shard(tmp_path / "a", 0, [request(1, "x")]),
        shard(tmp_path / "b", 0, [request(2, "x")], status),
    ]
    result = CliRunner().invoke(main, ["merge", *map(str, shards), "--out", str(tmp_path / "run")])
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (result.exit_code, facts["status"]) == (1, merged), why
    assert "shard b" in facts["reason"]
    assert measure_figures(RunDirectory.open(tmp_path / "run")).requests == 2, (
        "what was recorded is merged all the same"
    )


def test_shards_of_different_scenarios_are_refused(tmp_path: Path) -> None:
    shards = [shard(tmp_path / "a", 0, []), shard(tmp_path / "b", 0, [], scenario="download")]
    with pytest.raises(RunDirectoryError, match=r"b: its scenario is download, but save-article"):
        merge_shards(shards, tmp_path / "run")


def test_the_command_prints_what_the_run_came_to(tmp_path: Path) -> None:
    path = shard(tmp_path / "a", 0, [request(1, "log in")])
    result = CliRunner().invoke(main, ["merge", str(path), "--out", str(tmp_path / "run")])
    assert result.exit_code == 0
    assert "log in" in result.stdout
    result = CliRunner().invoke(main, ["merge", str(path), "--out", str(tmp_path / "json"), "--json"])
    assert json.loads(result.stdout)["requests"]["sent"] == 1
