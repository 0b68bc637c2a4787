"""Ctrl-C: once finishes what is in flight, twice leaves at once; nothing that was written is lost."""

import json
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from plimsoll.rundir.records import HEADER_BYTES
from tests.support.programs import LONGEST_S, REPLAY, ROOT, need, wait_for
from tests.support.servers import Nginx

LOG = ROOT / "examples" / "access.log"


def interrupted(command: list[str], times: int, run: Path) -> tuple[int, str]:
    """Runs a replay and interrupts it once it has recorded something; its exit code and what it said."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    records = run / "requests.npy"
    wait_for("something is recorded", lambda: records.exists() and records.stat().st_size > HEADER_BYTES)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    _, said = process.communicate(timeout=LONGEST_S)
    return process.returncode, said


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_keeps_everything(nginx: Nginx, tmp_path: Path, times: int) -> None:
    run = tmp_path / "latest"
    command = [need(REPLAY), "run", str(LOG), "--target", nginx.url, "--out", str(tmp_path), "--quiet"]
    code, said = interrupted(command, times, run)
    assert code == 1
    assert "interrupted" in said
    facts = json.loads((run / "run.json").read_text())
    summary = json.loads((run / "summary.json").read_text())
    assert facts["status"] == "interrupted"
    assert facts["reason"]
    requests = summary["requests"]
    assert len(np.load(run / "requests.npy")) == requests["sent"] > 0
    assert requests["unsent"] > 0
    if times == 1:  # the rest of the log was counted to its end
        assert requests["total"] == 5958
    assert requests["total"] == requests["sent"] + requests["unsent"] + sum(requests["skipped"].values())
