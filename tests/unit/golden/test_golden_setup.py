"""What the commands say that set things up: doctor, config, schema and hosts."""

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden import Row, check_golden, run, settle, transcript


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settle(tmp_path, monkeypatch)
    return tmp_path


GOOD = {
    "/sys/fs/cgroup/cpu.max": "max 100000",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "/proc/sys/net/ipv4/ip_local_port_range": "32768 60999",
}
POOR = {
    "/sys/fs/cgroup/cpu.max": "50000 100000",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
    "/proc/sys/net/ipv4/ip_local_port_range": "60000 60999",
}
LATE = {"p50": 0.03, "p99": 0.1, "p99.9": 0.4, "max": 3.0}
DOCTOR: list[Row] = [
    ("whether it can replay", "plimsoll doctor"),
    ("whether it can do more", "plimsoll doctor --for site --for qemu --measure-s 0"),
    ("the same as JSON", "plimsoll doctor --for site --json"),
]


def _machine(patch: pytest.MonkeyPatch, files: dict[str, str], good: bool) -> None:
    """Let this machine be another: with all programs and an idle hypervisor, or with few of both."""
    clocks = iter(f"cpu  {n * 900} 0 100 1000 0 0 0 {0 if good else n * 500}\n" for n in range(100))
    read, run_ = Path.read_text, subprocess.run
    answers = {
        "lag": json.dumps({"lag_ms": LATE, "in_time": good}),
        "env": "go1.26.0" if good else "go1.19.8",
    }

    def text_of(path: Path, *rest: Any, **options: Any) -> str:
        if str(path) == "/proc/stat":
            return next(clocks)
        if str(path).startswith(("/proc/", "/sys/")):
            return files.get(str(path), "")
        return read(path, *rest, **options)

    def paths_in(folder_: Path, pattern: str) -> Iterator[Path]:
        found = [Path(name) for name in files if Path(name).match(pattern)] or [folder_ / pattern]
        return iter(found if good or pattern in ("bin/replay", "cpu*/cpufreq/scaling_governor") else [])

    def answer(words: list[str], **options: Any) -> Any:
        if words[0] == "docker":
            return subprocess.CompletedProcess(words, 0 if good else 1, "an id", "")
        return (
            subprocess.CompletedProcess(words, 0, answers[words[1]], "")
            if words[1] in answers
            else run_(words, **options)
        )

    patch.setattr(Path, "read_text", text_of)
    patch.setattr(Path, "glob", paths_in)
    patch.setattr(subprocess, "run", answer)
    patch.setattr(
        shutil,
        "which",
        lambda name, **_: f"/usr/bin/{name}" if good or name in ("go", "docker", "fio") else None,
    )
    patch.setattr(os, "sched_getaffinity", lambda _: set(range(8 if good else 1)))
    patch.setattr(resource, "getrlimit", lambda _: (1024, 1 << 20 if good else 300))


@pytest.mark.parametrize(("name", "files"), [("good", GOOD), ("poor", POOR)])
def test_doctor(name: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = DOCTOR[:1] if name == "good" else DOCTOR
    with monkeypatch.context() as patch:
        _machine(patch, files, name == "good")
        said = run(rows)
    versions = {
        r"(plimsoll |\"version\": \")\d+\.\d+\.\d+": r"\1N",
        r"(Python |\"python\": \")3\.\d+\.\d+": r"\g<1>N",
    }
    check_golden(f"doctor-{name}.txt", transcript(rows, said, versions))


CONFIG: list[Row] = [
    ("nothing is set", "plimsoll config"),
    ("a variable is", "PLIMSOLL_COMPARE_GATES=gates.yml plimsoll config"),
    (
        "a file is, and a variable wins",
        "PLIMSOLL_CONFIG=mine.toml PLIMSOLL_COMPARE_GATES=gates.yml plimsoll config",
    ),
    ("the same as JSON", "PLIMSOLL_CONFIG=mine.toml PLIMSOLL_COMPARE_GATES=gates.yml plimsoll config --json"),
    ("all options that there are", "plimsoll config --all"),
]


def test_config(folder: Path) -> None:
    text = "[compare]\ngates = 'strict.yml'\n[regress]\nkeep-raw-days = 30\n[check]\nno-probe = true\n"
    (folder / "mine.toml").write_text(text)
    check_golden("config.txt", transcript(CONFIG, run(CONFIG)))


SCHEMAS: list[Row] = [
    (f"the keys of {name}", f"plimsoll schema {name}")
    for name in ("lab.yml", "gates.yml", "hosts.yml", "plimsoll.yml")
]


def _keys(schema: dict[str, Any]) -> Iterator[str]:
    """Yield a line a key: the same schema, in a form that a difference can be read in."""
    for name, part in {"": schema, **schema.pop("$defs", {})}.items():
        for key, about in part.pop("properties", {}).items():
            yield f"{name}.{key}: {json.dumps(about, sort_keys=True, ensure_ascii=False)}"
        yield f"{name}: {json.dumps(part, sort_keys=True, ensure_ascii=False)}"


def test_schema() -> None:
    said = [(code, "\n".join(_keys(json.loads(out))), err) for code, out, err in run(SCHEMAS)]
    check_golden("schema.txt", transcript(SCHEMAS, said))


HOSTS: list[Row] = [
    ("two hosts, neither of which answers", "plimsoll hosts exec --parallel 1 --hosts hosts.yml -- uptime"),
    ("the same as JSON", "plimsoll hosts exec --parallel 1 --hosts hosts.yml --json -- uptime"),
    ("one of them", "plimsoll hosts exec --hosts hosts.yml --group db -- uptime"),
]


def test_hosts(folder: Path) -> None:
    (folder / "hosts.yml").write_text(
        "hosts:\n"
        "- {name: web-1, address: 127.0.0.1, port: 1, user: root, groups: [web]}\n"
        "- {name: db-1, address: 127.0.0.1, port: 1, user: root, groups: [db]}\n"
    )
    took = {r'(, |"[a-z_]+_s": )\d+\.\d+\b': r"\1#"}
    check_golden("hosts.txt", transcript(HOSTS, run(HOSTS), took))


HELP: list[Row] = [("what make can do; docs/commands.md has every --help", "make help"), ("the same", "make")]


def test_help() -> None:
    check_golden("help-make.txt", transcript(HELP, run(HELP)))
