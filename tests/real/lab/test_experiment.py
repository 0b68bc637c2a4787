"""Whole experiments on hosts that exist (no root): every run once, also after kill -9, Ctrl-C and faults."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import LONGEST_S, PLIMSOLL, REPLAY, ROOT, need, open_to_all
from tests.support.servers import Nginx

LAB = """
name: {name}
out: {out}
backends:
  - name: one
    clone: {{driver: static, target: "{one}", reset: [[touch, "{out}/reset-one"]]}}
  - name: two
    clone: {{driver: static, target: "{two}"}}
scenarios:
  - scenario: replay
    options: {{log: "{log}", rate: 50}}
  - scenario: download
    options: {{path: /page.html}}
phases: {{before_s: 0.3, during_s: 0.4, after_s: 0.3}}
warmup_s: 0.2
limits: {{settle_s: 0, failures: 2, retry_s: 0}}
observe: {{observe: [cpu, memory]}}
repeats: 2
"""


@pytest.fixture
def two_nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Nginx, Nginx]]:
    servers = []
    for name in ("one", "two"):
        root = tmp_path_factory.mktemp(name)
        open_to_all(root)
        servers.append(Nginx(root))
    yield servers[0], servers[1]
    for server in servers:
        server.stop()


@pytest.fixture
def lab_yml(tmp_path: Path, two_nginx: tuple[Nginx, Nginx]) -> Path:
    need(REPLAY)
    path = tmp_path / "lab.yml"
    one, two = two_nginx
    log = ROOT / "examples" / "access.log"
    name = f"test-{os.getpid() % 10000}"
    path.write_text(LAB.format(name=name, out=tmp_path / "out", one=one.url, two=two.url, log=log))
    return path


def plimsoll(*words: str | Path, **further: object) -> subprocess.CompletedProcess[str]:
    command = [str(PLIMSOLL), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **further)  # type: ignore[call-overload,no-any-return]


def folder(lab_yml: Path) -> Path:
    (found,) = (lab_yml.parent / "out").glob("test-*")
    return found


def test_every_run_is_done_once_as_planned_and_carries_what_the_lab_knows(lab_yml: Path) -> None:
    plan = json.loads(plimsoll("check", "--plan", lab_yml, "--json").stdout)
    done = plimsoll("run", lab_yml, "--json")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert len(outcome["finished"]) == 8
    assert outcome["not_done"] == []
    order = [name.split("--")[1] for name in outcome["finished"]]
    assert order == ["one", "one", "two", "two", "two", "two", "one", "one"]  # ABBA
    for name in outcome["finished"]:
        run = json.loads((folder(lab_yml) / "runs" / name / "run.json").read_text())
        assert run["status"] == "complete"
        assert run["backend"] in name
        assert run["experiment"]["of"] == 8
        assert run["storage"]["clone"]["driver"] == "static"
        assert run["storage"]["facts"]["kernel"]
        assert run["phases"] == {"warmup_s": 0.2, "before_s": 0.3, "during_s": 0.4, "after_s": 0.3}
        assert (folder(lab_yml) / "runs" / name / "host.csv").read_text().startswith("t_ns,cpu.")
    assert Path(outcome["report"]).stat().st_size > 10_000
    assert (lab_yml.parent / "out" / "reset-one").exists()
    is_as_planned(lab_yml, plan)


def is_as_planned(lab_yml: Path, plan: dict[str, Any]) -> None:
    """What was carried out."""
    planned = [step["words"] for chapter in plan["chapters"] for step in chapter["steps"] if "words" in step]
    lines = (folder(lab_yml) / "commands.jsonl").read_text().splitlines()
    carried_out = [json.loads(line)["words"] for line in lines if "words" in json.loads(line)]

    def without_attempt(words: list[str]) -> list[str]:
        return ["${attempt}" if "/attempts/" in word else word for word in words]

    assert [without_attempt(words) for words in carried_out] == planned


@pytest.mark.slow
def test_killed_at_any_instant_it_goes_on_and_finishes_each_run_once(lab_yml: Path) -> None:
    draw = random.Random(4)
    words = ["run", str(lab_yml)]
    for _ in range(5):
        process = subprocess.Popen(
            [PLIMSOLL, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(draw.uniform(0.5, 6))
        process.kill()
        process.wait()
        if list((lab_yml.parent / "out").glob("test-*/lab.json")):
            words = ["run", "--resume", str(lab_yml)]
    done = plimsoll(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["finished"]) == 8
    assert len(list((folder(lab_yml) / "runs").iterdir())) == 8


def test_ctrl_c_ends_it_well_and_says_how_to_go_on(lab_yml: Path) -> None:
    lab_yml.write_text(lab_yml.read_text().replace("repeats: 2", "repeats: 1"))
    with subprocess.Popen([PLIMSOLL, "run", str(lab_yml)], stderr=subprocess.PIPE, text=True) as process:
        _until(process, "run 2")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 1
    assert "plimsoll run --resume" in said
    assert plimsoll("run", "--resume", folder(lab_yml)).returncode == 0
    assert len(list((folder(lab_yml) / "runs").iterdir())) == 4


def test_a_backend_that_fails_is_set_aside_and_the_others_go_on(
    lab_yml: Path, two_nginx: tuple[Nginx, Nginx]
) -> None:
    text = lab_yml.read_text().replace('reset: [[touch, "', 'timeout_s: 5, reset: [["false", "')
    told = lab_yml.parent / "told"
    tell = f"""notify: {{command: sh -c 'echo $PLIMSOLL_VERDICT >> "{told}"'}}\n"""
    lab_yml.write_text(text + tell)
    done = plimsoll("run", lab_yml, "--json")
    outcome = json.loads(done.stdout)
    assert done.returncode == 1
    assert list(outcome["set_aside"]) == ["one"]
    assert told.read_text().splitlines() == ["run failed", "run failed", "set aside", "unfinished"]
    assert {name.split("--")[1] for name in outcome["finished"]} == {"two"}
    failed = [line for line in done.stderr.splitlines() if " failed: " in line]
    assert "run 1 of 8 failed: replay on one, repeat 1, try 1: " in failed[0]
    assert failed[0].endswith(f". Output: {folder(lab_yml) / 'commands.jsonl'}")
    assert len(outcome["finished"]) == len(outcome["not_done"]) == 4


def test_two_experiments_on_one_host_exclude_each_other(lab_yml: Path) -> None:
    lab_yml.write_text(lab_yml.read_text().replace("during_s: 0.4", "during_s: 600"))
    with subprocess.Popen([PLIMSOLL, "run", str(lab_yml)], stderr=subprocess.PIPE, text=True) as first:
        _until(first, "run 1")
        second = plimsoll("run", lab_yml)
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=LONGEST_S)
    assert second.returncode == 2
    assert "another experiment uses this machine (experiment test-" in second.stderr
    assert folder(lab_yml)  # the second left none


def _until(process: "subprocess.Popen[str]", begins: str) -> None:
    """Reads what it says up to a line with these words."""
    assert process.stderr
    for line in process.stderr:
        if begins in line:
            return
