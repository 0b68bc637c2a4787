"""Ctrl-C: once finishes what is in flight, twice leaves at once; nothing that was written is lost."""

import json
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.paths import ROOT
from tests.support.programs import REPLAY, Nginx, need
from tests.support.waiting import LONGEST_S

LOG = ROOT / "examples" / "access.log"


def interrupted(command: list[str], times: int, run: Path) -> tuple[int, str]:
    """Runs a replay and interrupts it after two seconds; its exit code and what it said."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    until = time.monotonic() + 60
    while not (run / "requests.npy").exists() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(2)
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
