"""Programs in Java: data logs of The Grinder 3.11 are imported, and HdrHistogram reads what is exported."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.exchange.exporting import export_run
from plimsoll.analysis.exchange.grinder import import_grinder
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import LONGEST_S, ROOT, free_port, grinder_table, jars, need
from tests.support.rundir import load_records, traffic, write_run
from tests.support.servers import of_files, serve_http

PEER = ROOT / "benchmarks" / "grinder"
SCRIPT = ROOT / "tests" / "fixtures" / "grinder" / "http_script.py"


@pytest.fixture
def site() -> Iterator[str]:
    with serve_http(of_files({"/page.html": b"x" * 2000, "/picture.bin": b"x" * 300_000})) as url:
        yield url


def test_the_import_says_what_the_grinder_says(tmp_path: Path, site: str) -> None:
    properties = {
        "processes": 2,
        "threads": 3,
        "runs": 6,
        "hostID": "load",
        "useConsole": "false",
        "numberOfOldLogs": 0,
        "logDirectory": tmp_path / "log",
        "script": SCRIPT,
    }
    lines = [f"grinder.{name}={value}" for name, value in properties.items()]
    file = tmp_path / "grinder.properties"
    file.write_text("\n".join([*lines, f"site={site}", f"dead=http://127.0.0.1:{free_port()}", ""]))
    java = [need("java"), "-cp", jars(PEER / "pom.xml", tmp_path / "lib"), "org.python.util.jython"]
    done = subprocess.run(
        [*java, str(PEER / "agent.py"), str(file)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    logs = sorted((tmp_path / "log").glob("load-*-data.log"))
    assert len(logs) == 2, done.stdout + done.stderr
    for log in logs:
        imported = import_grinder([log], tmp_path / "results")
        opened = RunDirectory.open(imported.directory)
        ours = measure_figures(opened).total.grinder
        tests, errors, mtt, ttsd = grinder_table(log.with_name(log.name.replace("-data", "")))["Totals"]
        assert (ours.tests, ours.errors) == (int(tests), int(errors))
        assert (f"{ours.mtt_ms:.2f}", f"{ours.ttsd_ms:.2f}") == (mtt, ttsd)
        assert "Front page" in opened.routes and imported.is_whole
    assert import_grinder(logs, tmp_path / "both").requests == 2 * 75


# Java's own HdrHistogram reads the interval logs: those of the export and those of the replay.

POM = ROOT / "tests" / "support" / "hdrhistogram" / "pom.xml"
RUN_GO = ROOT / "tests" / "fixtures" / "run-go"


def processed(log: Path, tag: str, path: str) -> tuple[int, float]:
    """How many values Java finds, and the largest in milliseconds."""
    words = ["-i", str(log), "-tag", tag, "-outputValueUnitRatio", "1000"]
    done = subprocess.run(
        [need("java"), "-cp", path, "org.HdrHistogram.HistogramLogProcessor", *words],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
    )
    found = re.search(r"#\[Max += +([\d.]+), Total count += +(\d+)\]", done.stdout)
    assert found, done.stdout[-500:] + done.stderr
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
