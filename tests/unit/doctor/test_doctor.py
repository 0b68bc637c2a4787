"""`plimsoll doctor`: as it is called, its rules on a machine, and the one list of programs and packages."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll.cli import main
from plimsoll.doctor import (
    CONTRIBUTORS,
    USES,
    Check,
    Missing,
    Verdict,
    check_machine,
    find_missing,
    find_outdated_go,
    is_here,
    judge_clock,
    judge_files,
    judge_governor,
    judge_lag,
    judge_ports,
    judge_processors,
    judge_steal,
    read_quota,
    read_table,
)
from plimsoll.lab.saturators import SATURATORS
from tests.support.programs import DOCS, ROOT


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *words])


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Missing]]:
    """Return what is missing by use, for a test to fill; the machine is a good one."""
    lacking: dict[str, list[Missing]] = {}
    monkeypatch.setattr("plimsoll.doctor.find_missing", lambda use, _: lacking.get(use, []))
    monkeypatch.setattr("plimsoll.doctor.check_machine", lambda _: [Check("processors", "8")])
    return lacking


FIO = Missing("fio", "apt-get install fio", "fio")


READY: list[tuple[str, dict[str, list[Missing]], list[str], int, str]] = [
    ("all is here", {}, [], 0, "Ready for replay."),
    ("what nobody asked for is missing", {"fileio": [FIO]}, [], 0, "Ready for replay."),
    ("what is asked for is missing", {"fileio": [FIO]}, ["--for", "fileio"], 1, "missing for fileio."),
    ("something else is asked for", {"fileio": [FIO]}, ["--for", "site"], 0, "Ready for replay, site."),
    (
        "bin/replay is missing",
        {"replay": [Missing("bin/replay", "make build")]},
        [],
        1,
        "missing for replay.",
    ),
]


@pytest.mark.parametrize(("why", "missing", "words", "code", "says"), READY, ids=[row[0] for row in READY])
def test_the_answer(
    bench: dict[str, list[Missing]],
    why: str,
    missing: dict[str, list[Missing]],
    words: list[str],
    code: int,
    says: str,
) -> None:
    bench.update(missing)
    done = run(*words)
    assert done.exit_code == code, why
    assert done.output.endswith(f"{says}\n")
    for lacking in missing.values():
        assert f"{lacking[0].what}: {lacking[0].get}" in done.output
    told = json.loads(run(*words, "--json").output)
    assert told["ready"] == (code == 0)
    assert told["packages"] == [one.package for lack in missing.values() for one in lack if one.package]


def test_a_machine_that_is_not_fit(bench: dict[str, list[Missing]], monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        Check("open files", "64", "bad", "raise it"),
        Check("governor", "powersave", "caution", "faster"),
    ]
    monkeypatch.setattr("plimsoll.doctor.check_machine", lambda _: found)
    done = run()
    assert done.exit_code == 1
    assert "  x open files  64\n                raise it\n  ! governor    powersave\n" in done.output
    assert done.output.endswith("Ready for replay. This machine is not fit to generate load: open files.\n")


def test_it_looks_at_this_machine() -> None:
    told = json.loads(run("--measure-s", "0", "--json").output)
    assert [use["use"] for use in told["uses"]] == list(USES)
    assert [check["name"] for check in told["machine"]][:2] == ["processors", "clock"]


def test_wrong_usage() -> None:
    assert run("--for", "everything").exit_code == 2
    assert run("--measure-s", "-1").exit_code == 2


def test_every_use_is_documented() -> None:
    page = (DOCS / "doctor.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [f"| `{name}` | {use.what} |" for name, use in USES.items()] == rows


# The machine: what is read of it is judged by rules that say what to do.


STAT = "cpu  {busy} 0 100 1000 0 0 0 {stolen} 0 0\ncpu0 1 1 1 1\n"
LAG = {"wakes": 5000, "lag_ms": {"p50": 0.03, "p99": 0.1, "p99.9": 0.4, "max": 3.0}}


RULES: list[tuple[str, Check, Verdict, str, str]] = [
    ("two processors are enough", judge_processors(2, None), "good", "2", ""),
    ("one is shared by all threads", judge_processors(1, None), "caution", "1", "two or more"),
    (
        "a limit below them stops all threads",
        judge_processors(8, 1.5),
        "caution",
        "1.5 of 8 (limit of the container)",
        "--cpuset-cpus",
    ),
    ("a limit above them stops none", judge_processors(2, 4.0), "good", "2", ""),
    ("a clock that is read without a system call", judge_clock("tsc"), "good", "tsc", ""),
    ("a clock on the bus", judge_clock("hpet"), "caution", "hpet", "clocksource=tsc"),
    ("a kernel that does not say", judge_clock(""), "unknown", "unknown", ""),
    ("full speed", judge_governor({"performance"}), "good", "performance", ""),
    ("half speed", judge_governor({"powersave"}), "caution", "powersave", "cpupower"),
    (
        "some at half speed",
        judge_governor({"performance", "schedutil"}),
        "caution",
        "performance, schedutil",
        "-g",
    ),
    ("a virtual machine", judge_governor({""}), "unknown", "unknown", "its host decides"),
    ("any number of files", judge_files(-1), "good", "unlimited", ""),
    ("enough files", judge_files(20_000), "good", "20,000", ""),
    (
        "files for some connections",
        judge_files(1024),
        "caution",
        "1,024",
        "past 960 connections, requests wait",
    ),
    ("files for hardly any", judge_files(300), "bad", "300", "needs more"),
    ("the usual ports", judge_ports("32768\t60999"), "good", "28,232", ""),
    ("few ports", judge_ports("60000 60999"), "caution", "1,000", "--source-address"),
    ("no such file", judge_ports(""), "unknown", "unknown", ""),
    ("a range in words", judge_ports("a b"), "unknown", "unknown", ""),
    (
        "nothing stolen",
        judge_steal(STAT.format(busy=0, stolen=5), STAT.format(busy=900, stolen=5)),
        "good",
        "0 %",
        "",
    ),
    (
        "a tenth stolen",
        judge_steal(STAT.format(busy=0, stolen=5), STAT.format(busy=900, stolen=105)),
        "caution",
        "10 %",
        "does not share its processors",
    ),
    (
        "no time passed",
        judge_steal(STAT.format(busy=1, stolen=1), STAT.format(busy=1, stolen=1)),
        "unknown",
        "unknown",
        "",
    ),
    ("no /proc", judge_steal("", ""), "unknown", "unknown", ""),
    (
        "a sender that wakes in time",
        judge_lag({**LAG, "in_time": True}),
        "good",
        "p50 0.030 ms, p99.9 0.400 ms, max 3.000 ms",
        "",
    ),
    (
        "one that does not",
        judge_lag({**LAG, "in_time": False}),
        "bad",
        "p50 0.030 ms, p99.9 0.400 ms, max 3.000 ms",
        "generator_limited",
    ),
]


@pytest.mark.parametrize(("why", "check", "verdict", "value", "remedy"), RULES, ids=[row[0] for row in RULES])
def test_what_is_read_is_judged(why: str, check: Check, verdict: Verdict, value: str, remedy: str) -> None:
    assert (check.verdict, check.value) == (verdict, value), why
    assert remedy in check.remedy


@pytest.mark.parametrize(
    ("text", "processors_"),
    [("max 100000", None), ("150000 100000", 1.5), ("", None), ("1 0", None), ("x y", None), ("1", None)],
)
def test_the_limit_of_a_control_group(text: str, processors_: float | None) -> None:
    assert read_quota(text) == processors_


def test_this_machine_is_looked_at() -> None:
    names = ["processors", "clock", "governor", "open files", "ports"]
    assert [check.name for check in check_machine(0)] == names
    found = {check.name: check for check in check_machine(1)}
    assert list(found) == [*names, "steal", "timer lag"]
    assert found["timer lag"].verdict in ("good", "bad"), found["timer lag"]


def test_without_bin_replay_the_lag_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.doctor.replay_program", lambda: "/nowhere/bin/replay")
    found = {check.name: check for check in check_machine(1)}["timer lag"]
    assert (found.verdict, found.remedy) == ("unknown", "bin/replay measures it: make build")


def test_a_bin_replay_that_knows_no_lag_is_told_to_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.doctor.replay_program", lambda: "/bin/false")
    found = {check.name: check for check in check_machine(1)}["timer lag"]
    assert (found.verdict, found.remedy) == ("unknown", "bin/replay is of another version: make build")


# The list: Python and the shell read it alike, and it has what is called.


ALL = read_table()


def test_every_use_needs_something_and_has_words() -> None:
    for name, use in USES.items():
        assert use.what
        assert use.own or use.modules or any(name in needed.uses for needed in ALL), name


def test_what_saturators_call_is_in_the_list() -> None:
    listed = {program for needed in ALL for program in needed.programs}
    called = {program for kind in SATURATORS for program in kind.programs}
    # zfs comes with zpool, btrfs with mkfs.btrfs; Python is everywhere.
    assert called - {"zfs", "btrfs", "python3"} <= listed
    assert {"fio", "rsync", "lsblk", "zpool"} <= called


@pytest.mark.parametrize(
    ("line", "wrong"), [("fio fio", "three columns"), ("fio fio filio", "no use is {'filio'}")]
)
def test_a_line_that_is_none_is_refused(line: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        read_table(line)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of programs that is all there is on the PATH: just what the shell itself takes."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("dirname", "sh", "tr"):
        (folder / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("plimsoll.doctor._PATH", "")
    return folder


@pytest.mark.parametrize("use", [*sorted(CONTRIBUTORS), "bench", "site", "qemu"])
def test_the_shell_and_python_miss_the_same(use: str, bare: Path, tmp_path: Path) -> None:
    script = tmp_path / "tools" / "missing"
    script.parent.mkdir()
    text = (ROOT / "tools" / "missing").read_text().replace("PATH=$PATH:/usr/sbin:/sbin", "")
    script.write_text(text)
    script.chmod(0o755)
    (tmp_path / "plimsoll").symlink_to(ROOT / "plimsoll")
    needed = [one for one in ALL if use in one.uses]
    absent = [one for one in needed if not any(map(is_here, one.programs))]
    packages = list(dict.fromkeys(one.packages[0] for one in absent))
    ran = subprocess.run([script, use], capture_output=True, text=True, check=True, env=os.environ)
    assert ran.stdout.split() == packages
    assert packages, "on a PATH without programs some are missing"
    for one in absent:
        (bare / one.programs[-1].rpartition("/")[2].replace("*", "")).touch(0o755)
    left = subprocess.run([script, use], capture_output=True, text=True, check=True, env=os.environ)
    assert len(left.stdout.split()) < len(packages)


def test_what_is_missing_says_how_to_get_it(bare: Path) -> None:
    assert find_missing("emulated")[-2:] == [
        Missing("mkfs.xfs", "apt-get install xfsprogs", "xfsprogs"),
        Missing("mkfs.btrfs", "apt-get install btrfs-progs", "btrfs-progs"),
    ]
    assert find_missing("zfs") == [
        Missing("zpool", "apt-get install zfs-fuse (or zfsutils-linux)", "zfs-fuse")
    ]
    assert [one.what for one in find_missing("schedule")] == ["systemctl"]
    (bare / "crontab").symlink_to("/bin/true")
    assert find_missing("schedule") == []


def test_a_use_lacks_what_the_uses_do_that_it_is_made_of(bare: Path) -> None:
    whats = [one.what for one in find_missing("bench")]
    assert {"docker", "go", "losetup"} <= set(whats)
    assert len(whats) == len(set(whats))


def test_a_plugin_in_the_home_folder_is_found(bare: Path, tmp_path: Path) -> None:
    pattern = "~/.docker/cli-plugins/docker-compose"
    assert not is_here(pattern)
    (tmp_path / ".docker" / "cli-plugins").mkdir(parents=True)
    (tmp_path / ".docker" / "cli-plugins" / "docker-compose").touch()
    assert is_here(pattern)


def test_own_programs_and_modules_are_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("plimsoll.doctor.replay_program", lambda: str(tmp_path / "bin" / "replay"))
    assert find_missing("replay") == [Missing("bin/replay", "make build")]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "replay").touch()
    assert find_missing("replay") == []
    monkeypatch.setattr("plimsoll.doctor.find_spec", lambda _: None)
    assert find_missing("regress") == [Missing("Python's otava", "make .venv/.regress")]


@pytest.mark.parametrize(
    ("version", "old"),
    [
        ("go1.19.8", "go1.19.8"),
        ("go1.21.0", None),
        ("go1.25", None),
        ("devel", None),
        (None, None),
    ],
)
def test_a_go_that_cannot_fetch_a_newer_one(version: str | None, old: str | None) -> None:
    assert find_outdated_go(version) == old


def test_a_docker_that_does_not_answer_is_missing(bare: Path) -> None:
    for name in ("docker", "docker-compose"):
        (bare / name).symlink_to("/bin/false")
    assert [one.what for one in find_missing("site")] == ["an answer from Docker"]
    (bare / "docker").unlink()
    (bare / "docker").symlink_to("/bin/true")
    assert find_missing("site") == []
