"""The gate of an upgrade, where no file names any: how long it took, not what visitors felt beside it."""

from pathlib import Path

import pytest

from plimsoll.analysis.compare.comparison import compare
from plimsoll.rundir.events import FELT
from tests.support.experiment import add_events, write_scripted_experiment


@pytest.mark.parametrize("felt", ["", *FELT])
def test_an_upgrade_is_judged_by_how_long_it_took(tmp_path: Path, felt: str) -> None:
    for run in write_scripted_experiment(tmp_path, ["upgrade-wordpress"]):
        if felt:
            value = {"name": f"{felt}visitors", "value": 900_000.0, "unit": "ms", "iteration": 1}
            add_events(run, {"t_ns": 1, "event": "measure", **value})
    found = compare([tmp_path], "nvme-mirror", "rotating")
    assert "measure upgrade" in [each.gate.metric for each in found.judged]
