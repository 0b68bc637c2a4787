"""An experiment whose disks are at another machine, over a real sshd, also when the connection breaks."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import PLIMSOLL, REPLAY, ROOT, need, wait_for
from tests.support.servers import Nginx, Sshd

LAB = """
name: {name}
out: {out}
hosts:
  - {{name: far, address: 127.0.0.1, {access}}}
backends:
  - name: far
    host: far
    clone: {{driver: static, target: "{target}", reset: [[touch, "{out}/reset"]]}}
    saturator: {{kind: fio, folder: "{folder}", size_bytes: 4M}}
scenarios:
  - scenario: replay
    options: {{log: "{log}", rate: 50}}
phases: {{before_s: 0.5, during_s: 6, after_s: 0.5}}
warmup_s: 0
limits: {{settle_s: 0}}
observe: {{observe: [cpu, diskstats]}}
repeats: 2
"""


@pytest.fixture
def lab_yml(tmp_path: Path, sshd: Sshd, nginx: Nginx) -> Path:
    for program in (REPLAY, "fio"):
        need(program)
    path, folder = tmp_path / "lab.yml", tmp_path / "disk"
    folder.mkdir()
    text = LAB.format(
        name=f"ssh-{os.getpid() % 10000}",
        out=tmp_path / "out",
        access=sshd.access,
        target=nginx.url,
        folder=folder,
        log=ROOT / "examples" / "access.log",
    )
    path.write_text(text.replace("4M", str(4 << 20)))
    return path


def _runs(lab_yml: Path) -> list[Path]:
    return sorted((lab_yml.parent / "out").glob("ssh-*/runs/*"))


def _ends_well(process: "subprocess.Popen[str]", lab_yml: Path) -> None:
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert len(json.loads(out)["finished"]) == len(_runs(lab_yml)) == 2
    for run in _runs(lab_yml):
        events = (run / "events.jsonl").read_text()
        assert '"event": "fio", "phase": "start"' in events
        assert '"event": "fio bytes"' in events
        assert (run / "host.csv").read_text().count("\n") >= 4
    assert list((lab_yml.parent / "disk").iterdir()) == []  # fio's files are removed


def _begun(lab_yml: Path) -> "subprocess.Popen[str]":
    command = [str(PLIMSOLL), "run", str(lab_yml), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_host_is_saturated_and_observed_over_a_connection_that_breaks_once(
    lab_yml: Path, sshd: Sshd
) -> None:
    with _begun(lab_yml) as process:
        wait_for("fio is at work", lambda: list((lab_yml.parent / "disk").iterdir()))
        subprocess.run([need("pkill"), "-KILL", "-P", str(sshd.process.pid)], check=True)
        _ends_well(process, lab_yml)
    broken, whole = [(run / "events.jsonl").read_text() for run in _runs(lab_yml)]
    assert '"event": "fio retry", "error": ' in broken  # the report shows it
    assert "retry" not in whole
