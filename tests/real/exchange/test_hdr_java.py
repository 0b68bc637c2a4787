"""Java's own HdrHistogram reads the interval logs: those of the export and those of the replay."""

import re
import subprocess
from pathlib import Path

import pytest

from plimsoll.analysis.exchange.exchange import export_run
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import LONGEST_S, ROOT, jars, need
from tests.support.rundir import load_records, traffic, write_run

POM = ROOT / "tests" / "support" / "hdrhistogram" / "pom.xml"
RUN_GO = ROOT / "tests" / "fixtures" / "run-go"


def processed(log: Path, tag: str, path: str) -> tuple[int, float]:
    """How many values Java finds, and the largest in milliseconds."""
    told = ["-i", str(log), "-tag", tag, "-outputValueUnitRatio", "1000"]
    ran = subprocess.run(
        [need("java"), "-cp", path, "org.HdrHistogram.HistogramLogProcessor", *told],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
    )
    found = re.search(r"#\[Max += +([\d.]+), Total count += +(\d+)\]", ran.stdout)
    assert found, ran.stdout[-500:] + ran.stderr
    return int(found[2]), float(found[1])


def test_java_reads_what_is_exported(tmp_path: Path) -> None:
    path = jars(POM, tmp_path / "lib")
    run = RunDirectory.open(write_run(tmp_path / "run", traffic(60, 60), summary={}))
    export_run(run.path, "hdr", tmp_path / "x.hlog")
    records = load_records(run.path)
    service_us = records["total_us"].astype("i8")  # a failure at the time at which it failed
    for tag, took_us in (("response", service_us + records["lag_us"]), ("service", service_us)):
        count, largest_ms = processed(tmp_path / "x.hlog", tag, path)
        assert count == len(records)
        assert largest_ms == pytest.approx(took_us.max() / 1000, rel=0.001)
    export_run(RUN_GO, "hdr", tmp_path / "go.hlog")
    for tag in ("response", "service"):
        assert processed(tmp_path / "go.hlog", tag, path) == processed(RUN_GO / "latency.hlog", tag, path)
