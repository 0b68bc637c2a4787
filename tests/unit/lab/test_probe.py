"""`plimsoll lab check` tries what a run would try first, and changes nothing."""

import json
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from plimsoll.cli import main
from plimsoll.lab.experiment import machines
from plimsoll.lab.experiment.labfile import ReplayOptions
from plimsoll.lab.experiment.scenarios import flag_problems, logs_in, reading_words
from plimsoll.lab.machine import CommandResult, LocalMachine
from plimsoll.lab.tuning import apply
from plimsoll.scenarios import list_scenarios
from tests.support.programs import ROOT

LOG = ROOT / "examples" / "access.log"
REPLAY = f"scenario: replay, options: {{log: {LOG}}}"
STATIC = 'driver: static, target: "http://127.0.0.1:9"'


def check(tmp_path: Path, backend: str, scenario: str = REPLAY, more: str = "") -> str:
    """Return the problems that are told, one a line."""
    path = tmp_path / "lab.yml"
    path.write_text(
        f"name: lab\nout: {tmp_path}/out\nwork: {tmp_path}/work\n{more}"
        f"backends:\n- {{name: a, {backend}}}\nscenarios:\n- {{{scenario}}}\n"
    )
    before = sorted(tmp_path.rglob("*"))
    done = CliRunner().invoke(main, ["lab", "check", str(path), "--json"])
    assert done.exit_code == 1, done.output
    assert sorted(tmp_path.rglob("*")) == before, "something was changed"
    return "\n".join(json.loads(done.stdout)["problems"])


def folder(more: str) -> str:
    return f"disk: {{kind: folder, {more}}}, clone: {{driver: compose}}"


MACHINE = [
    ("a folder", folder("path: /no/lab"), "a: disk.path: folder /no/lab does not exist: create it"),
    (
        "a disk",
        folder("path: /tmp, devices: [nvme9n9]"),
        "a: disk.devices: disk nvme9n9 does not exist: lsblk",
    ),
    (
        "a dataset",
        folder("path: /tmp, dataset: no/such"),
        "a: disk.dataset: dataset no/such does not exist: zfs",
    ),
    (
        "room",
        "disk: {kind: emulated, filesystem: ext4, size_bytes: 900000G}, clone: {driver: compose}",
        "a: disk.size_bytes: the disk does not fit: 900000.0 GiB are needed and ",
    ),
    (
        "Plimsoll's folder",
        "disk: {kind: folder, path: /tmp}, clone: {driver: compose, project: /no/plimsoll}",
        "a: clone.project: /no/plimsoll is not Plimsoll's folder on that machine",
    ),
    (
        "an image",
        "disk: {kind: folder, path: /tmp}, clone: {driver: qemu, image: /no/vm.qcow2}",
        "a: clone.image: ",
    ),
    ("a site that serves", f"clone: {{{STATIC}}}", "a: clone.target: http://127.0.0.1:9: does not serve"),
    ("a setting", f"clone: {{{STATIC}}}, tuning: {{disks: {{nvme9n9: {{scheduler: none}}}}}}", "a: tuning: "),
    (
        "a saturator's dataset",
        f"clone: {{{STATIC}}}, saturator: {{kind: zfs-send, dataset: no/such}}",
        "a: saturator.dataset: dataset no/such does not exist",
    ),
    (
        "a RAM disk",
        f"clone: {{{STATIC}}}, saturator: {{kind: zfs-send, dataset: a, sink: {{to: ramdisk, folder: /no}}}}",
        "a: saturator.sink.folder: folder /no does not exist",
    ),
]


@pytest.mark.parametrize(("what", "backend", "says"), MACHINE, ids=[row[0] for row in MACHINE])
def test_what_is_not_there_on_the_machine(tmp_path: Path, what: str, backend: str, says: str) -> None:
    assert says in check(tmp_path, backend), what


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        backend = f"disk: {{kind: folder, path: {tmp_path}}}, clone: {{driver: compose, port: {port}}}"
        said = check(tmp_path, backend)
    assert f"a: clone.port: 127.0.0.1:{port} cannot be listened on: choose another: Address" in said


def test_one_obstacle_hides_no_other(tmp_path: Path) -> None:
    said = check(tmp_path, folder("path: /no/lab, devices: [nvme9n9]"), more="observe: {disks: [sdzz]}\n")
    for part in ("/no/lab", "nvme9n9", "sdzz"):
        assert part in said


def test_what_is_the_same_for_many_variants_is_asked_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    run = LocalMachine.run

    async def noted(self: LocalMachine, command: Sequence[str], **further: Any) -> CommandResult:
        asked.append(tuple(command))
        return await run(self, command, **further)

    monkeypatch.setattr(LocalMachine, "run", noted)
    factors = """factors:
- {name: recordsize, values: [4K, 8K, 16K, 32K]}
- {name: buffer_pool, values: [64M, 128M, 256M, 512M]}
- {name: swappiness, key: tuning.vm.swappiness, values: [1, 10, 60, 100]}
"""
    disk = "disk: {kind: emulated, filesystem: zfs, size_bytes: 1G}"
    said = check(tmp_path, f"{disk}, clone: {{driver: compose, project: /no/plimsoll}}", more=factors)
    told = [line for line in said.splitlines() if "/no/plimsoll is not" in line]
    told = [line.partition(": clone.project")[0] for line in said.splitlines() if "/no/plimsoll is" in line]
    assert told == ["a-4k, a-8k, a-16k and a-32k"]
    assert len(asked) == len(set(asked)), [one for one in asked if asked.count(one) > 1]


def test_a_journal_of_a_killed_experiment_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "FOLDER", str(tmp_path / "tuning"))
    monkeypatch.setattr(machines, "LOCK_PATH", str(tmp_path / "nobody's.lock"))
    (tmp_path / "tuning").mkdir()
    swappiness = {"kind": "vm", "name": "swappiness", "value": "60"}
    property_ = {"kind": "property", "dataset": "no/such", "name": "recordsize", "value": "128K"}
    for name, holds in {
        "plimsoll-other--hdd": {"by": "experiment other in /far/results", "put_back": [swappiness]},
        "plimsoll-third--hdd": {"by": "experiment third", "put_back": [property_]},
    }.items():
        (tmp_path / "tuning" / f"{name}.json").write_text(json.dumps({"format": 1, **holds}))
    (tmp_path / "tuning" / "plimsoll-broken--hdd.json").write_text("{")
    said = check(tmp_path, f"clone: {{{STATIC}}}")
    for part in (
        "local: is still tuned by experiment other in /far/results",
        "vm.swappiness = 60, which run puts back first",
        "no/such.recordsize = 128K, which run cannot put back: the pool no is not imported: import it first",
        "plimsoll-broken--hdd.json: is not a tuning journal",
    ):
        assert part in said, said


def test_two_disks_that_fit_only_alone(tmp_path: Path) -> None:
    free_bytes = shutil.disk_usage(tmp_path).free
    disk = f"disk: {{kind: emulated, filesystem: ext4, size_bytes: {free_bytes * 2 // 3}}}"
    said = check(
        tmp_path, f"{disk}, clone: {{driver: compose}}}}\n- {{name: b, {disk}, clone: {{driver: compose}}"
    )
    assert "the disk of a (" in said and "do not fit together" in said
    assert "size_bytes: the disk does not fit" not in said


def replay(log: str) -> str:
    return f"scenario: replay, options: {{log: {log}}}"


SCENARIOS = [
    ("a log that is none", replay("/etc/passwd"), "replay: log: /etc/passwd: no known format matches it"),
    ("no log", replay("/no/access.log"), "replay: log: /no/access.log does not exist"),
    ("no log of a pattern", replay("'/no/*.log'"), "replay: log: no log to read: nothing matches /no/*.log"),
    (
        "a flag that there is not",
        f"scenario: replay, options: {{log: {LOG}, flags: [--no-cokies]}}",
        "replay: flags: --no-cokies is not a flag of bin/replay run",
    ),
    ("no account", "scenario: browser", "browser: user: is missing; set --user or PLIMSOLL_USER"),
    (
        "no consent",
        "scenario: save-article",
        "save-article changes the site, and http://127.0.0.1:9 is not listed under clones in plimsoll.yml",
    ),
    (
        "a file of pages",
        "scenario: visitors, options: {pages: /no/pages.txt}",
        "visitors: options.pages: /no/pages.txt cannot be read here",
    ),
]


@pytest.mark.parametrize(("what", "scenario", "says"), SCENARIOS, ids=[row[0] for row in SCENARIOS])
def test_what_is_not_there_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, scenario: str, says: str
) -> None:
    monkeypatch.delenv("PLIMSOLL_USER", raising=False)
    monkeypatch.chdir(tmp_path)
    assert says in check(tmp_path, f"clone: {{{STATIC}}}", scenario), what


def test_results_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    assert "out: " in check(tmp_path, f"clone: {{{STATIC}}}")


def test_the_log_is_read_as_the_replay_will_read_it() -> None:
    options = ReplayOptions.model_validate(
        {"log": "a", "format": "%h", "flags": ["--tz", "UTC", "--unconditional", "--date-format=%F"]}
    )
    assert reading_words(options) == ["--tz", "UTC", "--date-format=%F", "--format", "%h", "--", "a"]
    assert flag_problems(options.flags, ["--tz", "--date-format"]) == [
        "--unconditional is not a flag of bin/replay run"
    ]


def test_whether_a_scenario_logs_in_is_known_by_its_settings() -> None:
    guests = {one.name for one in list_scenarios() if not logs_in(one.name)}
    assert guests == {"download", "visitors"}
