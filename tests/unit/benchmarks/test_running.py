"""Programs are installed, run, timed, stopped and cleaned up after."""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import installing, versions
from benchmarks import main as program
from benchmarks.background import background, first_line
from benchmarks.case_users import too_many
from benchmarks.main import main
from benchmarks.measure import Finished, RunFailedError, complaint, pinned, run
from benchmarks.memory import high_water_bytes, max_rss_bytes
from benchmarks.plan import BenchmarkPlan
from benchmarks.result import Goal, Result
from benchmarks.versions import pinned_in, version_in


def test_output_and_memory_of_a_program(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", "x = 'a' * 200_000_000; print('said')"], tmp_path, timeout_s=30)
    assert done.out == "said\n"
    assert done.max_rss_bytes > 200_000_000
    assert done.wall_s > 0


def test_memory_of_a_program_smaller_than_this_one(tmp_path: Path) -> None:
    done = run(["sleep", "0.2"], tmp_path, timeout_s=30)
    assert 0 < done.max_rss_bytes < 10_000_000


def test_which_memory_figure_counts() -> None:
    assert max_rss_bytes(waited_bytes=900, own_bytes=50, watched_bytes=880) == 900
    assert max_rss_bytes(waited_bytes=50, own_bytes=50, watched_bytes=7) == 7
    assert max_rss_bytes(waited_bytes=50, own_bytes=50, watched_bytes=0) == 50
    assert high_water_bytes("Name:\tx\nVmHWM:\t    1234 kB\n") == 1234 * 1024
    assert high_water_bytes("State:\tZ (zombie)\n") == 0


def test_a_failure_is_told_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="ended with 3: no such luck"):
        run(["sh", "-c", "echo no such luck >&2; exit 3"], tmp_path, timeout_s=30)


def test_a_program_that_takes_too_long_is_stopped_with_its_children(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(RunFailedError, match="sh was stopped after"):
        run(["sh", "-c", "sleep 60 & sleep 60"], tmp_path, timeout_s=0.2)
    assert time.monotonic() - start < 10


def test_a_complaint_is_one_line() -> None:
    finished = Finished(["/x/oha"], 1, "", "", 0.1, 0.1, 1)
    assert complaint(finished, 60) == "oha ended with 1: it printed nothing"


def test_a_server_is_gone_afterwards_also_when_something_breaks(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        background(["sh", "-c", "echo here; sleep 60"], tmp_path) as server,
    ):
        assert first_line(server, tmp_path) == "here"
        raise ZeroDivisionError
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with (
        background(["sh", "-c", "echo no port left >&2; exit 1"], tmp_path) as server,
        pytest.raises(RunFailedError, match="no port left"),
    ):
        first_line(server, tmp_path)


def test_pinning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert pinned(["wrk"], 1) == ["taskset", "-c", "1", "wrk"]
    assert pinned(["wrk"], None) == ["wrk"]
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert pinned(["wrk"], 1) == ["wrk"]


@pytest.mark.parametrize(
    ("users", "open_files", "has_sources", "why"),
    [
        (10_000, 20_000, False, None),
        (100_000, 131_072, True, None),
        (100_000, 131_072, False, "bin/replay has no --source-address: one address has 28,232 ports"),
        (
            100_000,
            20_000,
            True,
            "100,000 users need as many open files; the limit is 20,000: raise it (ulimit -n)",
        ),
    ],
)
def test_why_so_many_users_cannot_be_had(
    users: int, open_files: int, has_sources: bool, why: str | None
) -> None:
    assert too_many(users, open_files, has_sources) == why


def test_versions() -> None:
    assert version_in("wrk debian/4.1.0-3+b2 [epoll] Copyright") == "4.1.0"
    assert version_in("k6 v1.4.0 (go1.26.8, linux/amd64)") == "1.4.0"
    assert version_in("GoAccess - 1.7.\n") == "1.7"
    assert version_in('openjdk version "17.0.15" 2025-04-15') == "17.0.15"
    go_mod = (
        "\tgithub.com/rakyll/hey v0.1.5 // indirect\n\tgithub.com/tsenart/vegeta/v12 v12.13.0 // indirect\n"
    )
    assert pinned_in(go_mod, "/hey") == "0.1.5"
    assert pinned_in(go_mod, "/vegeta") == "12.13.0"


@pytest.mark.parametrize(
    "argv",
    [
        ["--rounds", "0"],
        ["--only", "everything"],
        ["--unknown"],
        ["--against", "/no/replay"],
        ["--wrk2", "/no/wrk2"],
        ["--quick", "--document", "peers.md"],
    ],
)
def test_wrong_usage_ends_with_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "examples:" in capsys.readouterr().out


WRITTEN = [
    ("all cases", [], ["page.md"]),
    ("one case", ["--only", "one"], []),
    ("all of them, but quickly", ["--quick"], []),
    ("one case, and a page that was asked for", ["--only", "one", "--document", "mine.md"], ["mine.md"]),
]


@pytest.mark.parametrize(("why", "argv", "pages"), WRITTEN, ids=[row[0] for row in WRITTEN])
def test_only_a_whole_run_writes_the_page_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str, argv: list[str], pages: list[str]
) -> None:
    def case(name: str) -> object:
        return SimpleNamespace(
            NEEDS=(), run_case=lambda _: Result(name, name, "", [Goal("speed", "2 ×", "≥ 1 ×", True)])
        )

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(program, "CASES", {name: case(name) for name in ("one", "two")})
    monkeypatch.setattr(program, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(program, "DOCUMENT", tmp_path / "page.md")
    assert program.main(argv) == 0
    assert [path.name for path in tmp_path.glob("*.md")] == pages, why


# Installing: a peer that cannot be had is named with the reason, and the others go on.


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
    assert "it has no src/hdr_histogram.c" in installing.install(["wrk2"], {"wrk2": source})["wrk2"].why
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
