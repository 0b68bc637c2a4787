"""Shards of one run become the run that one process would have made, record by record."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.evidence.summary import summarise
from plimsoll.analysis.exchange.importing import done_ns, in_order, window_of
from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.cli import main
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import RECORD, Records, Request
from plimsoll.rundir.write import RunWriter
from tests.support.rundir import ERRORS, INSTANCES, load_records, records, write_instance

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


# Order: as records were done, as far as a merge looks ahead.


def stream(done: list[int], number: int, blocks_of: int) -> Iterator[Records]:
    """Records done at these instants (µs), whose `line` tells them apart."""
    table = np.zeros(len(done), dtype=RECORD)
    table["total_us"] = done
    table["line"] = np.arange(len(done)) + 1000 * number
    for start in range(0, len(done), blocks_of):
        yield table[start : start + blocks_of]


def merged(shards: list[list[int]], window: int) -> Records:
    streams = [stream(done, number, window) for number, done in enumerate(shards)]
    blocks = list(in_order(streams, window))
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=RECORD)


instants = some.lists(some.integers(0, 60), max_size=60)


@given(shards=some.lists(instants, min_size=1, max_size=5), window=some.integers(1, 16))
def test_every_record_comes_once_whatever_the_order_of_the_shards(
    shards: list[list[int]], window: int
) -> None:
    lines = merged(shards, window)["line"].tolist()
    wanted = [1000 * number + at for number, done in enumerate(shards) for at in range(len(done))]
    assert sorted(lines) == wanted


@given(shards=some.lists(instants, min_size=1, max_size=5), window=some.integers(1, 16))
def test_records_no_further_out_of_place_than_the_window_come_in_order(
    shards: list[list[int]], window: int
) -> None:
    near = [disordered(sorted(done), window) for done in shards]
    done = done_ns(merged(near, window))
    assert (np.diff(done) >= 0).all()


def disordered(done: list[int], window: int) -> list[int]:
    """Swap what stands `window` apart, in pairs of such halves: nobody has more than `window` before it."""
    for start in range(0, len(done), 2 * window):
        half = done[start : start + 2 * window]
        done[start : start + 2 * window] = half[window:] + half[:window]
    return done


def test_a_record_that_comes_later_than_the_window_is_late_and_not_lost() -> None:
    done = done_ns(merged([[5, 6, 7, 8, 9, 10, 11, 0]], 2)).tolist()
    assert sorted(done) == [1000 * each for each in (0, 5, 6, 7, 8, 9, 10, 11)]
    assert done.index(0) > 0


def test_an_instant_far_in_the_future_holds_nobody_up() -> None:
    """A clock that jumped in one shard leaves the others in order among themselves."""
    done = done_ns(merged([[99, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]], 2)).tolist()
    assert done == sorted(done)


@pytest.mark.parametrize(
    ("shards", "window", "why"),
    [
        (1, 1 << 16, "one shard takes no more than it needs"),
        (4, 1 << 16, "so do a few"),
        (64, 1 << 12, "many share what there is"),
        (100_000, 256, "however many there are, each has a few, or every block would be a call of its own"),
    ],
)
def test_what_all_shards_together_hold_is_bounded(shards: int, window: int, why: str) -> None:
    assert window_of(shards) == window, why


# Figures: those of all records, computed by brute force.


# In millionths: 0.999 of 1,000 is 999, but not to a computer.
NAMES = {"p50": 500_000, "p90": 900_000, "p95": 950_000, "p99": 990_000, "p99.9": 999_000, "p99.99": 999_900}
MILLION = 1_000_000
TIMEOUT_US = 700_000  # less than some requests took
LOAD = {"digest": "d", "settings": {"timeout_s": TIMEOUT_US / 1e6}}


def random_shard(seed: int, count: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return records(
        count,
        due_ns=np.sort(random.integers(0, 10**10, count)),
        lag_us=random.integers(0, 3000, count),
        total_us=random.integers(1, 10**6, count),
        ttfb_us=random.integers(0, 1000, count),
        bytes=random.integers(0, 10**6, count),
        route=random.integers(0, 3, count),
        status=random.choice([200, 301, 404], count),
        error=random.choice([0, 0, 0, 4, 5], count),
        flags=random.choice([0, 1, 8, 16, 17], count),
    )


def failures(table: np.ndarray) -> np.ndarray:
    """Every log here says 200: a 404 is a wrong answer."""
    return np.array([row["error"] > 0 or row["status"] == 404 for row in table], dtype=bool)


def as_counted(took_us: np.ndarray, bad: np.ndarray) -> np.ndarray:
    return np.where(bad, np.maximum(took_us, TIMEOUT_US), took_us)


def exactly(values_us: np.ndarray, bad: np.ndarray | None = None) -> dict[str, float | None]:
    """Mean, extremes and nearest-rank percentiles in ms; None of fewer than 1/(1−q) values.

    Those from the fastest of the `bad` ones on are None too."""
    found = _ranked(values_us)
    if bad is None or not bad.any():
        return found
    from_ms = values_us[bad].min() / 1000
    return {
        name: value if value is None or name == "mean" or value < from_ms else None
        for name, value in found.items()
    }


def _ranked(values_us: np.ndarray) -> dict[str, float | None]:
    if not len(values_us):
        return dict.fromkeys((*NAMES, "min", "max", "mean"))
    whole, n = np.sort(values_us.astype(np.int64)), len(values_us)
    found: dict[str, float | None] = {
        name: int(whole[-(-n * ppm // MILLION) - 1]) / 1000 if n * (MILLION - ppm) >= MILLION else None
        for name, ppm in NAMES.items()
    }
    return found | {"min": whole.min() / 1000, "max": whole.max() / 1000, "mean": whole.mean() / 1000}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    counts=some.lists(some.integers(0, 1500), min_size=INSTANCES, max_size=INSTANCES).filter(any),
    seed=some.integers(0, 99),
)
def test_percentiles_and_counts_are_those_of_all_records(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    tables = [random_shard(seed + number, count) for number, count in enumerate(counts)]
    routes = [["page", "image", "css-js"], ["css-js", "page", "feed"], ["image"], []]
    errors = [ERRORS, ERRORS, ["none", *ERRORS[:0:-1]], ERRORS]  # their numbers too may differ
    shards = [
        write_instance(
            folder / str(n),
            n,
            tables[n],
            shard={"planned": counts},
            routes=routes[n],
            errors=errors[n],
            load=LOAD,
        )
        for n in range(INSTANCES)
    ]
    merge_shards(shards, folder / "run")
    every = np.concatenate(tables)
    summary = json.loads((folder / "run" / "summary.json").read_text())
    measured = every[every["flags"] & 8 == 0]
    lag_us, total_us = measured["lag_us"].astype(np.int64), measured["total_us"].astype(np.int64)
    bad = failures(measured)
    wanted: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
        "response_ms": (as_counted(lag_us + total_us, bad), bad),
        "service_ms": (as_counted(total_us, bad), bad),
        "lag_ms": (lag_us[measured["flags"] & 16 == 0], None),
        "ttfb_ms": (measured["ttfb_us"][(measured["ttfb_us"] > 0) & ~bad], None),
    }
    for key, (values_us, among) in wanted.items():
        for name, value in exactly(values_us, among).items():
            assert summary[key][name] == (None if value is None else pytest.approx(value, rel=1e-12)), name
    counted = summary["requests"]
    assert counted["sent"] == counted["total"] == len(every) == sum(counts)
    assert counted["warmup"] == len(every) - len(measured)
    assert counted["errors"] == int((measured["error"] > 0).sum())
    assert counted["queued"] == int((measured["flags"] & 16 > 0).sum())
    assert counted["retried"] == INSTANCES, "each says that it retried one"
    if len(measured):
        check_names(folder / "run", tables, routes, errors)
    for each, table in zip(summary["instances"], tables, strict=True):
        own = table[table["flags"] & 8 == 0]
        own_lag = own["lag_us"][own["flags"] & 16 == 0]
        assert {key: each["lag_ms"][key] for key in ("p50", "p99", "p99.9", "max")} == {
            key: exactly(own_lag)[key] for key in ("p50", "p99", "p99.9", "max")
        }
        own_bad = failures(own)
        response = exactly(as_counted(own["lag_us"].astype(np.int64) + own["total_us"], own_bad), own_bad)
        assert each["response_ms"]["p99.9"] == response["p99.9"]
        assert (each["sent"], each["errors"]) == (len(table), int((own["error"] > 0).sum()))


def check_names(
    path: Path, tables: list[np.ndarray], routes: list[list[str]], errors: list[list[str]]
) -> None:
    """Each route and each error, by name: their numbers differ from shard to shard."""
    run = RunDirectory.open(path)
    of_route, of_error = Counter[str](), Counter[str]()
    for table, names, kinds in zip(tables, routes, errors, strict=True):
        for number in table["route"]:
            of_route[names[number] if number < len(names) else f"route {number}"] += 1
        of_error.update(kinds[number] for number in table["error"])
    records = load_records(run.path)
    assert Counter(run.route_name(n) for n in records["route"]) == of_route
    assert Counter(run.error_name(n) for n in records["error"]) == of_error
    assert measure_figures(run).requests > 0


def test_records_are_those_of_the_shards_and_stand_in_the_order_of_their_ends(tmp_path: Path) -> None:
    tables = [random_shard(n, 500) for n in range(INSTANCES)]
    for n, table in enumerate(tables):
        table["client"] = n + 1
    shards = [
        write_instance(tmp_path / str(n), n, tables[n], shard={"planned": [500] * INSTANCES})
        for n in range(INSTANCES)
    ]
    merge_shards(shards, tmp_path / "run")
    found = np.load(tmp_path / "run" / "requests.npy")
    wanted = np.concatenate(tables)
    done = wanted["due_ns"] + (wanted["lag_us"].astype("i8") + wanted["total_us"]) * 1000
    wanted = wanted[np.argsort(done, kind="stable")]
    columns: list[Any] = [name for name in found.dtype.names if name not in ("route", "error")]
    for column in columns:
        assert np.array_equal(found[column], wanted[column]), column


def test_the_same_shards_make_the_same_records_whatever_order_they_are_given_in(tmp_path: Path) -> None:
    shards = [write_instance(tmp_path / str(n), n, random_shard(7, 400)) for n in range(INSTANCES)]
    made = []
    for number, given_as in enumerate((shards, shards, shards[::-1])):
        merge_shards(given_as, tmp_path / f"run{number}")
        made.append((tmp_path / f"run{number}" / "requests.npy").read_bytes())
    assert made[0] == made[1] == made[2]


def test_a_shard_whose_last_record_is_cut_off_gives_the_whole_ones(tmp_path: Path) -> None:
    shards = [
        write_instance(tmp_path / str(n), n, status="running" if n == 1 else "complete")
        for n in range(INSTANCES)
    ]
    with (shards[1] / "requests.npy").open("ab") as file:
        file.write(b"x" * 67)
    run = merge_shards(shards, tmp_path / "run", now_s=2e9)
    assert run.facts.status == "interrupted"
    assert len(np.load(tmp_path / "run" / "requests.npy")) == 400
