"""examples/k6-operator: its manifests against the operator, its script in the k6 that it is for."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import LONGEST_S, ROOT, need, skip_or_fail

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "examples" / "k6-operator"
MODULE = ROOT / "tests" / "real" / "operator"


def test_the_manifests_are_what_the_operator_takes() -> None:
    """Tests in Go, with the operator's release that their go.mod pins."""
    go = need("go")
    got = subprocess.run([go, "mod", "download"], cwd=MODULE, capture_output=True, text=True, timeout=600)
    if got.returncode != 0:
        skip_or_fail(f"the modules of {MODULE.name} cannot be had: {got.stderr.strip()[-300:]}")
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
            [k6, *words], capture_output=True, text=True, timeout=LONGEST_S, env={"HOME": str(tmp_path)}
        )
        assert ran.returncode == 0, ran.stderr
        assert "level=error" not in ran.stderr
    asked = json.loads(ran.stdout)
    assert asked["maxVUs"] == 4
    assert asked["scenarios"]["replay"]["executor"] == "per-vu-iterations"
    assert not (tmp_path / "results").exists(), "reading the script writes nothing"


def test_the_commands_of_the_image_that_merges_work(tmp_path: Path) -> None:
    """What its Dockerfile copies and runs, in a folder: not everywhere can a base image be had."""
    stage = (EXAMPLE / "Dockerfile").read_text(encoding="utf-8").partition(" AS plimsoll\n")[2]
    ran = []
    for line in stage.splitlines():
        verb, _, rest = line.partition(" ")
        if verb == "COPY":
            *sources, place = rest.split()
            for source in sources:
                copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                copy(ROOT / source, tmp_path / place)
        if verb == "RUN" and not rest.startswith(("apt-get ", "install -d ")):  # those are the image's own
            command = rest.replace(" --no-cache-dir", "")
            got = subprocess.run(
                [need("sh"), "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=900
            )
            if (
                got.returncode != 0
                and "No matching distribution" in got.stderr
                and os.environ.get("CI") != "true"
            ):
                pytest.skip(f"no packages can be had: {got.stderr[-300:]}")
            assert got.returncode == 0, got.stderr
            ran.append(command)
    assert len(ran) == 3
    plimsoll = tmp_path / ".venv" / "bin" / "plimsoll"
    said = subprocess.run(
        [plimsoll, "merge", "--help"], capture_output=True, text=True, cwd="/", timeout=LONGEST_S
    )
    assert said.returncode == 0, said.stderr
    listed = [str(plimsoll.with_name("locust")), "-f", "scenarios/save_article.py", "--list"]
    said = subprocess.run(listed, capture_output=True, text=True, cwd=tmp_path, timeout=LONGEST_S)
    assert "SaveArticle" in said.stdout, said.stderr
