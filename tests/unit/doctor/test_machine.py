"""What is read of a machine is judged by rules that say what to do."""

import pytest

from plimsoll.doctor import (
    Check,
    Verdict,
    check_machine,
    judge_clock,
    judge_files,
    judge_governor,
    judge_lag,
    judge_ports,
    judge_processors,
    judge_steal,
    read_quota,
)

STAT = "cpu  {busy} 0 100 1000 0 0 0 {stolen} 0 0\ncpu0 1 1 1 1\n"
LAG = {"wakes": 5000, "lag_ms": {"p50": 0.03, "p99": 0.1, "p99.9": 0.4, "max": 3.0}}

ROWS: list[tuple[str, Check, Verdict, str, str]] = [
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


@pytest.mark.parametrize(("why", "check", "verdict", "value", "remedy"), ROWS, ids=[row[0] for row in ROWS])
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
