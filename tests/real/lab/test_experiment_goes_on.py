"""Experiments that fail in part, are tried again and extended (no root): what is finished stays."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import PLIMSOLL, REPLAY, ROOT, need
from tests.support.servers import Nginx

LAB = """
name: {name}
out: {folder}/out
backends:
  - name: one
    clone: {{driver: static, target: "{url}"}}
  - name: two
    clone: {{driver: static, target: "{url}"}}
scenarios:
  - scenario: replay
    name: broken
    options: {{log: "{folder}/broken.log", rate: 50}}
  - scenario: replay
    options: {{log: "{log}", rate: 50}}
phases: {{before_s: 0.3, during_s: 0.4, after_s: 0.3}}
warmup_s: 0.2
limits: {{settle_s: 0, failures: 2, retry_s: 0.1}}
observe: {{observe: [cpu]}}
repeats: 2
"""
GOOD_LOG = ROOT / "examples" / "access.log"


@pytest.fixture
def lab_yml(tmp_path: Path, nginx: Nginx) -> Path:
    need(REPLAY)
    path = tmp_path / "lab.yml"
    (tmp_path / "broken.log").write_text("this is no log\n" * 30)
    path.write_text(
        LAB.format(name=f"on-{os.getpid() % 10000}", folder=tmp_path, url=nginx.url, log=GOOD_LOG)
    )
    return path


def _plimsoll(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(PLIMSOLL), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def _outcome(*words: str | Path, status: int = 0) -> tuple[dict[str, Any], str]:
    done = _plimsoll("run", *words, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout), done.stderr


def _kinds(names: list[str]) -> list[str]:
    return sorted({"--".join(name.split("-", 1)[1].split("--")[:2]) for name in names})


def test_a_scenario_that_always_fails_takes_nothing_else_with_it_and_can_be_tried_again(
    lab_yml: Path,
) -> None:
    outcome, said = _outcome(lab_yml, status=1)
    assert _kinds(outcome["finished"]) == ["replay--one", "replay--two"]
    assert len(outcome["finished"]) == len(outcome["not_done"]) == 4
    assert sorted(outcome["set_aside"]) == ["broken on one", "broken on two"]
    assert "broken on one: failed 1 time in a row; trying again in 0.1 s." in said
    assert "broken on one: set aside after 2 failures in a row; the rest goes on." in said
    assert f"plimsoll run --retry-set-aside {outcome['directory']}" in said

    (lab_yml.parent / "broken.log").write_bytes(GOOD_LOG.read_bytes())
    left_aside, _ = _outcome("--resume", lab_yml, status=1)
    assert sorted(left_aside["set_aside"]) == ["broken on one", "broken on two"]
    again, _ = _outcome("--retry-set-aside", outcome["directory"])
    assert again["set_aside"] == {}
    assert len(again["finished"]) == 8


def test_an_experiment_is_extended_and_what_it_has_stays(lab_yml: Path) -> None:
    (lab_yml.parent / "broken.log").write_bytes(GOOD_LOG.read_bytes())
    whole = lab_yml.read_text()
    second = whole[whole.index("  - name: two") : whole.index("scenarios:")]
    small = whole.replace(second, "").replace("repeats: 2", "repeats: 1")
    lab_yml.write_text(small)
    first, _ = _outcome(lab_yml)
    runs = Path(first["directory"]) / "runs"
    before = {path: path.stat().st_mtime_ns for path in runs.glob("*/*") if path.is_file()}
    assert len(first["finished"]) == 2

    lab_yml.write_text(whole)
    unchanged, said = _outcome("--resume", lab_yml)
    assert unchanged["finished"] == first["finished"]
    assert "repeats: 2 in the file, 1 in this experiment: ignored; --extend takes it over." in said
    assert (
        "backends.two: there in the file, none in this experiment: ignored; --extend takes it over." in said
    )

    lab_yml.write_text(whole.replace("during_s: 0.4", "during_s: 0.5"))
    refused = _plimsoll("run", "--extend", lab_yml)
    assert refused.returncode == 2
    assert "phases.during_s: 0.5 in the file, 0.4 in this experiment" in refused.stderr
    assert "put it back, or start a new experiment" in refused.stderr

    lab_yml.write_text(whole)
    extended, said = _outcome("--extend", lab_yml)
    assert extended["directory"] == first["directory"]
    assert extended["finished"][:2] == first["finished"]
    assert [name.split("--")[1:] for name in extended["finished"][2:]] == [
        *[["two", "1"]] * 2,  # alone, then alternating
        *[["two", "2"]] * 2,
        *[["one", "2"]] * 2,
    ]
    assert "6 runs more, 8 in all." in said
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert json.loads((runs / extended["finished"][-1] / "run.json").read_text())["experiment"]["of"] == 8
    again, _ = _outcome("--resume", first["directory"])
    assert again["finished"] == extended["finished"]
