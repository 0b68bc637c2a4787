"""Data logs that The Grinder 3.11 writes now: imported, they say what its own table says."""

import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.exchange.grinder import import_grinder
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import ROOT, free_port, grinder_table, jars, need

PEER = ROOT / "benchmarks" / "grinder"
SCRIPT = ROOT / "tests" / "fixtures" / "grinder" / "http_script.py"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "www"
    folder.mkdir()
    (folder / "page.html").write_bytes(b"x" * 2000)
    (folder / "picture.bin").write_bytes(b"x" * 300_000)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


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
    told = tmp_path / "grinder.properties"
    told.write_text("\n".join([*lines, f"site={site}", f"dead=http://127.0.0.1:{free_port()}", ""]))
    java = [need("java"), "-cp", jars(PEER / "pom.xml", tmp_path / "lib"), "org.python.util.jython"]
    ran = subprocess.run(
        [*java, str(PEER / "agent.py"), str(told)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    logs = sorted((tmp_path / "log").glob("load-*-data.log"))
    assert len(logs) == 2, ran.stdout + ran.stderr
    for log in logs:
        imported = import_grinder([log], tmp_path / "results")
        opened = RunDirectory.open(imported.directory)
        ours = measure_figures(opened).total.grinder
        tests, errors, mtt, ttsd = grinder_table(log.with_name(log.name.replace("-data", "")))["Totals"]
        assert (ours.tests, ours.errors) == (int(tests), int(errors))
        assert (f"{ours.mtt_ms:.2f}", f"{ours.ttsd_ms:.2f}") == (mtt, ttsd)
        assert "Front page" in opened.routes and imported.is_whole
    assert import_grinder(logs, tmp_path / "both").requests == 2 * 75
