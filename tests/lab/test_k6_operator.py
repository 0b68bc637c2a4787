"""examples/k6-operator: its manifests against the operator, its script in the k6 that it is for."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.lab.programs import ROOT, need

EXAMPLE = ROOT / "examples" / "k6-operator"
MODULE = ROOT / "tests" / "tools" / "operator"


def test_the_manifests_are_what_the_operator_takes() -> None:
    """Tests in Go, with the operator's release that their go.mod pins."""
    go = need("go")
    got = subprocess.run([go, "mod", "download"], cwd=MODULE, capture_output=True, text=True, timeout=600)
    if got.returncode != 0:
        reason = f"the modules of {MODULE.name} cannot be had: {got.stderr.strip()[-300:]}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    ran = subprocess.run(
        [go, "test", "-count=1", "-v", "./..."], cwd=MODULE, capture_output=True, text=True, timeout=1500
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "--- PASS: TestTheTestRunIsWhatTheOperatorTakes" in ran.stdout


def test_the_script_is_what_the_operator_reads_first(tmp_path: Path) -> None:
    """What its initializer does: `k6 archive`, then `k6 inspect`, without any environment."""
    k6 = need(ROOT / "bin" / "k6-plimsoll")
    shutil.copy(ROOT / "examples" / "access.log", tmp_path / "access.log")
    script = (EXAMPLE / "replay.js").read_text(encoding="utf-8")
    moved = script.replace("/logs/", f"{tmp_path}/").replace("/results/", f"{tmp_path}/results/")
    assert moved.count(str(tmp_path)) == 2
    (tmp_path / "replay.js").write_text(moved, encoding="utf-8")
    packed = tmp_path / "replay.js.archived.tar"
    for words in (
        ("archive", str(tmp_path / "replay.js"), "-O", str(packed)),
        ("inspect", "--execution-requirements", str(packed)),
    ):
        ran = subprocess.run(
            [k6, *words], capture_output=True, text=True, timeout=120, env={"HOME": str(tmp_path)}
        )
        assert ran.returncode == 0, ran.stderr
        assert "level=error" not in ran.stderr
    asked = json.loads(ran.stdout)
    assert asked["maxVUs"] == 4
    assert asked["scenarios"]["replay"]["executor"] == "per-vu-iterations"
    assert not (tmp_path / "results").exists(), "reading the script writes nothing"
