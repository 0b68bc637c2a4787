"""`plimsoll export --to prometheus`: what Prometheus' own parser reads."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.exchange.prometheus import Gauges, prometheus_text, text
from plimsoll.rundir.read import RunDirectory
from tests.support.rundir import records, traffic, write_run


def samples(run: Path) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the labels that it has beside those of the run, in their names' order."""
    _, exposition = prometheus_text(RunDirectory.open(run))
    found: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            further = {
                k: v
                for k, v in sorted(sample.labels.items())
                if k not in ("run", "scenario", "backend", "repeat")
            }
            key = (sample.name, *further.values())
            assert key not in found, "each sample once"
            found[key] = sample.value
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    summary = {
        "requests": {"skipped": {"method_not_allowed": 32}, "unsent": 4},
        "measures": {
            "page_load": {"unit": "ms", "count": 3, "p50": 1500.0, "max": 2000.0},
            "cls": {"unit": "score", "count": 2, "max": 0.25},
        },
    }
    return write_run(
        tmp_path_factory.mktemp("runs") / "a",
        traffic(60, 100),
        summary=summary,
        backend="nvme",
        repeat=2,
        load={"digest": "d", "settings": {"timeout_s": 30}},
    )


def test_figures_are_those_of_the_report(run: Path) -> None:
    figures, found = measure_figures(RunDirectory.open(run)), samples(run)
    response = figures.samples["response"]
    p99_ms = response.figures_ms()["p99"]
    assert p99_ms is not None
    assert found["plimsoll_time_percentile_seconds", "99", "response"] == pytest.approx(p99_ms / 1000)
    assert ("plimsoll_time_percentile_seconds", "99.9", "response") not in found, "it is a failure's"
    assert found["plimsoll_time_percentile_at_least_seconds", "99.9", "response"] == 30
    assert found["plimsoll_time_percentile_at_least_seconds", "100", "response"] == 30
    assert found["plimsoll_run_failed_requests",] == figures.failures > 0
    assert found["plimsoll_run_requests", "ok"] == figures.total.grinder.tests
    assert found["plimsoll_run_requests", "error"] == figures.total.errors > 0
    assert found["plimsoll_run_unsent_requests", "method_not_allowed"] == 32
    assert found["plimsoll_run_unsent_requests", "run_ended"] == 4
    assert found["plimsoll_measure_percentile_seconds", "page_load", "50"] == 1.5
    assert found["plimsoll_measure_percentile", "cls", "100", "score"] == 0.25
    assert found["plimsoll_response_seconds_count",] == response.n
    assert found["plimsoll_response_seconds_sum",] == pytest.approx(float(response.sorted_us.sum()) / 1e6)
    assert found["plimsoll_response_seconds_bucket", "0.05"] == (response.sorted_us <= 50_000).sum()
    assert found["plimsoll_response_seconds_bucket", "+Inf"] == response.n


def test_every_sample_says_what_it_is_of(run: Path) -> None:
    _, exposition = prometheus_text(RunDirectory.open(run))
    for line in exposition.splitlines():
        own = ('run="a"', 'scenario="replay"', 'backend="nvme"', 'repeat="2"')
        assert line.startswith("# ") or all(label in line for label in own)


def test_a_figure_that_cannot_be_given_is_left_out(tmp_path: Path) -> None:
    found = samples(write_run(tmp_path / "run", records(50), started_at=None, target=None))
    assert ("plimsoll_time_percentile_seconds", "90", "response") in found
    assert ("plimsoll_time_percentile_seconds", "99", "response") not in found
    assert ("plimsoll_run_start_timestamp_seconds",) not in found


def test_times_over_an_hour_are_in_the_last_bucket(tmp_path: Path) -> None:
    table = records(3, total_us=4_000_000_000, lag_us=4_000_000_000)
    found = samples(write_run(tmp_path / "run", table))
    assert found["plimsoll_response_seconds_bucket", "100.0"] == 0
    assert found["plimsoll_response_seconds_bucket", "+Inf"] == 3


HOSTILE = ['a"} 1\nplimsoll_run_complete{x="', "back\\slash", "\x1b[31m", "twice", "twice", "\ud800", ""]


def test_hostile_names_are_labels_and_nothing_else(tmp_path: Path) -> None:
    table = records(len(HOSTILE), route=range(len(HOSTILE)))
    run = write_run(tmp_path / 'r"un', table, routes=HOSTILE, backend='b"\n', scenario="s\\")
    found = samples(run)
    names = [key[1] for key in found if key[0] == "plimsoll_route_requests"]
    assert len(names) == len(HOSTILE)
    assert names[:5] == [
        'a"} 1\\x0aplimsoll_run_complete{x="',
        "back\\slash",
        "\\x1b[31m",
        "twice",
        "twice (5)",
    ]
    assert found["plimsoll_run_complete",] == 1
    prometheus_text(RunDirectory.open(run))[1].encode("utf-8")


@given(st.text(), st.floats(allow_nan=False))
def test_any_label_and_value_is_one_line(label: str, value: float) -> None:
    metric = Gauges("m", "Help.")
    metric.add(value, {"l": label})
    families: list[Any] = list(text_string_to_metric_families(text([metric])))
    assert [sample.value for family in families for sample in family.samples] == [value]


def test_without_a_sum_the_count_is_there(tmp_path: Path) -> None:
    table = records(3, error=[0, 1, 0])
    found = samples(write_run(tmp_path / "run", table))
    assert ("plimsoll_response_seconds_sum",) not in found
    assert found["plimsoll_response_seconds_count",] == 3
