"""A peer that cannot be had is named with the reason, and the others go on."""

import os
import sys
from pathlib import Path

import pytest

from benchmarks import installing, versions
from benchmarks.plan import BenchmarkPlan


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(installing, "WORK", tmp_path)
    monkeypatch.setattr(versions, "of", lambda _name: "1.0")
    return tmp_path


def test_the_others_go_on(steps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = [sys.executable, "-c", "print('no such thing'); raise SystemExit(4)"]
    monkeypatch.setitem(installing._STEPS, "wrk", lambda: installing._run(["no-such-program"], "wrk"))
    monkeypatch.setitem(installing._STEPS, "hey", lambda: installing._run(fails, "hey"))
    monkeypatch.setitem(installing._STEPS, "oha", lambda: None)
    found = installing.install(["wrk", "hey", "oha"])
    assert found["wrk"].missing == "wrk is not installed: no-such-program is not there, which installs it"
    assert found["hey"].version is None
    assert found["hey"].why.endswith("ended with 4: no such thing")
    assert found["oha"].version == "1.0"


def test_a_step_is_done_once_for_the_same_pins(steps: Path) -> None:
    done: list[int] = []
    pins, there = steps / "pins", steps / "there"
    pins.write_text("1.0")
    there.touch()
    for _ in range(2):
        installing._once("x", [pins], there, lambda: done.append(1))
    assert len(done) == 1
    pins.write_text("1.1")
    installing._once("x", [pins], there, lambda: done.append(1))
    assert len(done) == 2


def test_another_bin_replay_is_copied(steps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "BIN", steps)
    monkeypatch.setattr(installing, "AGAINST", steps / "against")
    parent = steps / "replay"
    parent.write_text("parent")
    assert installing.install(["against"], {"against": parent})["against"].version == "1.0"
    parent.write_text("built anew")
    assert (steps / "against").read_text() == "parent"


def test_wrk2_is_built_from_a_copy_of_its_source_once(steps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "BIN", steps / "bin")
    monkeypatch.setattr(installing, "WRK2", steps / "bin" / "wrk2")
    monkeypatch.setattr(installing, "_debian", lambda *_: None)
    assert installing.install(["wrk2"])["wrk2"].missing == (
        "wrk2 is not installed: give its source: make peers WRK2=DIR"
    )
    source = steps / "given"
    (source / "src").mkdir(parents=True)
    assert "there is no src/hdr_histogram.c" in installing.install(["wrk2"], {"wrk2": source})["wrk2"].why
    (source / "src" / "hdr_histogram.c").touch()
    (source / "Makefile").write_text("wrk:\n\techo built > wrk\n")
    for _ in range(2):
        assert installing.install(["wrk2"], {"wrk2": source})["wrk2"].version == "1.0"
    assert (steps / "bin" / "wrk2").read_text() == "built\n"
    assert sorted(path.name for path in source.iterdir()) == ["Makefile", "src"]
    assert installing.install(["wrk2"])["wrk2"].version == "1.0"


def test_who_was_not_asked_for_takes_no_part() -> None:
    plan = BenchmarkPlan(1, True, {"replay": installing.Installed("replay", "1.0")})
    assert plan.taking_part(["replay", "against"]) == ["replay"]


def test_without_root_it_says_what_root_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(installing.CannotInstallError, match="as root: apt-get install wrk"):
        installing._debian("wrk", lambda: None)
