"""`plimsoll export` as a user meets it, its metrics for Prometheus, and its documentation."""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.exchange import parquetfile
from plimsoll.analysis.exchange.csvfile import COLUMNS
from plimsoll.analysis.exchange.options import FORMATS
from plimsoll.analysis.exchange.prometheus import Gauges, prometheus_text, text
from plimsoll.cli import main
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import DOCS
from tests.support.rundir import records, traffic, write_run


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["export", *map(str, args)])


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", records(1200), summary={})


@pytest.mark.parametrize("to", FORMATS)
def test_each_format_is_written_and_said(tmp_path: Path, whole: Path, to: str) -> None:
    out = tmp_path / "out"
    out.write_text("an older one")
    result = run(whole, "--to", to, "--out", out)
    assert result.exit_code == 0, result.output
    assert "1,200 requests of" in result.output
    assert b"an older one" not in out.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "run"], "nothing else is left"
    assert stat.S_IMODE(out.stat().st_mode) == 0o666 & ~_umask()
    said = json.loads(run(whole, "--to", to, "--out", out, "--json").output)
    assert (said["requests"], said["bytes"], said["to"]) == (1200, out.stat().st_size, to)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_new_folder_is_made(tmp_path: Path, whole: Path) -> None:
    out = tmp_path / "new" / "folder" / "x.csv"
    assert run(whole, "--to", "csv", "--out", out).exit_code == 0
    assert out.is_file()


@pytest.mark.parametrize("to", FORMATS)
def test_a_run_that_did_not_end_is_a_part_and_exit_code_1(tmp_path: Path, to: str) -> None:
    part = write_run(tmp_path / "run", records(1200), status="interrupted", reason="the \x1b[31mpower failed")
    result = run(part, "--to", to, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert r"the run is interrupted: the \x1b[31mpower failed" in result.output
    assert (tmp_path / "out").stat().st_size


def test_standard_output_holds_the_file_alone(whole: Path) -> None:
    command = [sys.executable, "-m", "plimsoll", "export", str(whole), "--to", "csv", "--out", "-"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 1201
    assert "1,200 requests" in ran.stderr


def test_a_pipe_is_written_as_it_is(tmp_path: Path, whole: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    assert run(whole, "--to", "csv", "--out", tmp_path / "pipe").exit_code == 0
    reader.join(timeout=30)
    assert read[0].count(b"\n") == 1201
    assert (tmp_path / "pipe").is_fifo()


REFUSED = [
    ("an unknown format", ["run", "--to", "xml", "--out", "x"], "xml"),
    ("no file", ["run", "--to", "csv"], "--out"),
    ("a directory", ["run", "--to", "csv", "--out", "run"], "is a directory"),
    ("the records themselves", ["run", "--to", "csv", "--out", "run/requests.npy"], "is part of the run"),
    ("the facts, otherwise", ["run", "--to", "csv", "--out", "run/../run/run.json"], "is part of the run"),
    ("a log that the run wrote", ["run", "--to", "hdr", "--out", "run/latency.hlog"], "is part of the run"),
    ("a picture of the run", ["run", "--to", "csv", "--out", "run/screenshots/1.png"], "is part of the run"),
    ("a file where a folder belongs", ["run", "--to", "csv", "--out", "file/x"], "cannot be written"),
    ("no run", ["nothing", "--to", "csv", "--out", "x"], "does not exist"),
    ("both on standard output", ["run", "--to", "csv", "--out", "-", "--json"], "would both write"),
    ("nothing but warm-up", ["warm", "--to", "prometheus", "--out", "x"], "belongs to the warm-up"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "args", "says"), REFUSED)
def test_what_cannot_be_is_refused(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, why: str, args: list[str], says: str
) -> None:
    before = (whole / "requests.npy").read_bytes()
    write_run(tmp_path / "warm", records(5, flags=8), summary={})
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    result = run(*args)
    assert result.exit_code == 2, why
    assert says in result.output
    assert (whole / "requests.npy").read_bytes() == before
    assert not (tmp_path / "x").exists()


def test_a_file_that_shrinks_leaves_nothing(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the disk is full or the run is deleted meanwhile: the older file stays."""
    out = tmp_path / "out"
    out.write_text("an older one")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)
    result = run(whole, "--to", "csv", "--out", out)
    assert result.exit_code == 2
    assert "No space left on device" in result.output
    assert out.read_text() == "an older one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "run"]


def test_parquet_without_pyarrow_says_what_to_do(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run(whole, "--to", "parquet", "--out", tmp_path / "x")
    assert result.exit_code == 2
    assert "pip install 'pyarrow>=18'" in result.output
    assert not (tmp_path / "x").exists()
    assert "pyarrow" in parquetfile._REMEDY


# Prometheus: what its own parser reads.


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
def measured_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_figures_are_those_of_the_report(measured_run: Path) -> None:
    figures, found = measure_figures(RunDirectory.open(measured_run)), samples(measured_run)
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


def test_every_sample_says_what_it_is_of(measured_run: Path) -> None:
    _, exposition = prometheus_text(RunDirectory.open(measured_run))
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
    path = write_run(tmp_path / 'r"un', table, routes=HOSTILE, backend='b"\n', scenario="s\\")
    found = samples(path)
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
    prometheus_text(RunDirectory.open(path))[1].encode("utf-8")


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


# Documentation.


TEXT = (DOCS / "import-export.md").read_text(encoding="utf-8")


def test_every_column_and_format_is_documented() -> None:
    for name in (*COLUMNS, *FORMATS):
        assert f"`{name}`" in TEXT, name


def test_every_metric_is_documented(tmp_path: Path) -> None:
    measures = {
        "load": {"unit": "ms", "count": 1, "max": 1.0},
        "cls": {"unit": "score", "count": 1, "max": 1.0},
    }
    load = {"digest": "d", "settings": {"timeout_s": 30}}
    summary = {"requests": {}, "measures": measures}
    run = write_run(tmp_path / "run", traffic(60, 60), summary=summary, load=load)
    _, text = prometheus_text(RunDirectory.open(run))
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert len(names) > 15
    assert [name for name in sorted(names) if f"`{name}`" not in TEXT] == []
    documented = {part for part in TEXT.split("`") if part.startswith("plimsoll_") and part.isidentifier()}
    assert documented - names - {"plimsoll_listener"} == set()
