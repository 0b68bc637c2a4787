"""`plimsoll check` tries what a run would try first, adds up room by file system, and changes nothing."""

import asyncio
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
from plimsoll.lab.experiment.check import (
    Claim,
    FileSystem,
    VolumeUses,
    collect_claims,
    file_system,
    find_growth_risks,
    find_shortages,
)
from plimsoll.lab.experiment.labfile import Lab, ReplayOptions
from plimsoll.lab.experiment.rig import build_rig
from plimsoll.lab.experiment.scenarios import flag_problems, logs_in, reading_words
from plimsoll.lab.machine import CommandResult, LocalMachine
from plimsoll.lab.tuning import apply
from plimsoll.scenarios import list_scenarios
from tests.support.programs import ROOT
from tests.support.scripted import ScriptedMachine

LOG = ROOT / "examples" / "access.log"
REPLAY = f"scenario: replay, options: {{log: {LOG}}}"
STATIC = 'driver: static, target: "http://127.0.0.1:9"'


def check(tmp_path: Path, backend: str, scenario: str = REPLAY, more: str = "") -> str:
    """Return the problems that are reported, one a line."""
    path = tmp_path / "lab.yml"
    path.write_text(
        f"name: lab\nout: {tmp_path}/out\nwork: {tmp_path}/work\n{more}"
        f"backends:\n- {{name: a, {backend}}}\nscenarios:\n- {{{scenario}}}\n"
    )
    before = sorted(tmp_path.rglob("*"))
    done = CliRunner().invoke(main, ["check", str(path), "--json"])
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


def test_what_is_the_same_for_many_variants_is_asked_and_reported_once(
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
    named = [line.partition(": clone.project")[0] for line in said.splitlines() if "/no/plimsoll is" in line]
    assert named == ["a-4k, a-8k, a-16k and a-32k"]
    assert len(asked) == len(set(asked)), [one for one in asked if asked.count(one) > 1]


def test_a_journal_of_a_killed_experiment_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        "a flag that does not exist",
        f"scenario: replay, options: {{log: {LOG}, flags: [--no-cokies]}}",
        "replay: flags: --no-cokies is not a flag of plimsoll replay",
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
        "--unconditional is not a flag of plimsoll replay"
    ]


def test_whether_a_scenario_logs_in_is_known_by_its_settings() -> None:
    guests = {one.name for one in list_scenarios() if not logs_in(one.name)}
    assert guests == {"download", "visitors"}


GIB = 1 << 30
TANK = FileSystem("the pool tank", "/tank", 10 * GIB)
SYSTEM = FileSystem("/dev/sda1", "/", 10 * GIB)
BTRFS = FileSystem("/dev/sdb1", "/fast", 10 * GIB, clones=True)


def claim(backend: str, on: FileSystem, gib: float, most: float = 0, of: FileSystem | None = None) -> Claim:
    return Claim(backend, "disk", "the clone", on, int(gib * GIB), int(most * GIB), of)


FITS = [
    ("each fits, and both do", [claim("a", TANK, 4), claim("b", TANK, 6)], []),
    (
        "each fits, and both do not",
        [claim("a", TANK, 4), claim("b", TANK, 7)],
        [
            "the clone of a (4.0 GiB) and the clone of b (7.0 GiB) do not fit together: 11.0 GiB are needed "
            "and the pool tank has 10.0 GiB: make room, or choose another folder"
        ],
    ),
    ("on two file systems", [claim("a", TANK, 7), claim("b", SYSTEM, 7)], []),
    (
        "one that does not fit anyway is reported alone",
        [claim("a", TANK, 4), claim("b", TANK, 11)],
        [
            "disk: the clone does not fit: 11.0 GiB are needed and /tank has 10.0 GiB: make room, or choose "
            "another folder"
        ],
    ),
    (
        "many are counted",
        [claim(name, TANK, 2) for name in "abcdefgh"],
        [
            "the clone of a (2.0 GiB), the clone of b (2.0 GiB), the clone of c (2.0 GiB) and 5 more do not "
            "fit together: 16.0 GiB are needed and the pool tank has 10.0 GiB: make room, or choose another "
            "folder"
        ],
    ),
    (
        "copies that share what they copy do not add up",
        [claim("a", BTRFS, 7, of=BTRFS), claim("b", BTRFS, 7, of=BTRFS)],
        [],
    ),
    (
        "copies from elsewhere do",
        [claim("a", BTRFS, 4, of=SYSTEM), claim("b", BTRFS, 7, of=SYSTEM)],
        [
            "the clone of a (4.0 GiB) and the clone of b (7.0 GiB) do not fit together: 11.0 GiB are needed "
            "and /dev/sdb1 has 10.0 GiB: make room, or choose another folder"
        ],
    ),
]


@pytest.mark.parametrize(("says", "claims", "expected"), FITS, ids=[row[0] for row in FITS])
def test_what_does_not_fit(says: str, claims: Sequence[Claim], expected: list[str]) -> None:
    assert [what for _, what in find_shortages(claims)] == expected, says


MAY_GROW = [
    ("to no more than there is room for", [claim("a", TANK, 1, most=9)], []),
    (
        "to more",
        [claim("a", TANK, 1, most=20)],
        [
            "what is made fits, but guests may write more: the clone of a to 20.0 GiB; the pool tank has "
            "10.0 GiB, and a guest that runs out of room gets errors"
        ],
    ),
    (
        "to more together",
        [claim("a", TANK, 1, most=6), claim("b", TANK, 1, most=6)],
        [
            "what is made fits, but guests may write more: the clone of a to 6.0 GiB and the clone of b to "
            "6.0 GiB; the pool tank has 10.0 GiB, and a guest that runs out of room gets errors"
        ],
    ),
    ("what does not fit at all is no caution", [claim("a", TANK, 11, most=20)], []),
]


@pytest.mark.parametrize(("says", "claims", "expected"), MAY_GROW, ids=[row[0] for row in MAY_GROW])
def test_what_may_grow(says: str, claims: Sequence[Claim], expected: list[str]) -> None:
    assert list(find_growth_risks(claims)) == expected, says


SHOWN = [
    ("a partition", "/srv\n/dev/sda1 ext4 100 40 60 40% /\n", FileSystem("/dev/sda1", "/srv", 60)),
    ("a dataset", "/t/a\ntank/a zfs 100 40 60 40% /t/a\n", FileSystem("the pool tank", "/t/a", 60)),
    ("one of zfs-fuse", "/t/a\ntank/a fuse 100 40 60 40% /t/a\n", FileSystem("the pool tank", "/t/a", 60)),
    ("over a network", "/n\nhost:/x nfs4 100 40 60 40% /n\n", FileSystem("/n", "/n", 60)),
    ("one of two RAM disks", "/run/a\ntmpfs tmpfs 100 40 60 40% /run\n", FileSystem("/run", "/run/a", 60)),
    (
        "one that clones files",
        "/b\n/dev/sdb btrfs 9 4 5 4% /b\n",
        FileSystem("/dev/sdb", "/b", 5, clones=True),
    ),
    ("a mount point with a blank", "/a b\n/dev/sdc xfs 9 4 5 4% /a b\n", FileSystem("/dev/sdc", "/a b", 5)),
]


@pytest.mark.parametrize(("says", "shown", "found"), SHOWN, ids=[row[0] for row in SHOWN])
def test_file_systems_as_df_shows_them(says: str, shown: str, found: FileSystem) -> None:
    assert file_system(shown) == found, says


def _machine(golden: bool) -> ScriptedMachine:
    """A machine with 10 GiB on one file system, an image of 1 GiB whose disk has 20, and perhaps a site."""

    def answer(command: Sequence[str]) -> tuple[int, str, str]:
        line = " ".join(command)
        if "df -P" in line:
            return 0, f"/var\n/dev/sda1 ext4 9 4 {10 * GIB} 4% /\n", ""
        if command[0] == "du":
            return (0, f"{3 * GIB}\t{command[-1]}\n", "") if golden or ".qcow2" in line else (1, "", "none")
        if "qemu-img measure" in line:
            return 0, f"{20 * GIB}\n", ""
        if tuple(command[:2]) == ("test", "-f"):
            return int(not golden), "", ""
        return 0, "", ""

    return ScriptedMachine(answer)


def _claims(golden: bool, *backends: str) -> list[Claim]:
    def backend(number: int, said: str) -> dict[str, object]:
        disk, _, driver = said.partition("+")
        disks = {
            "emulated": {"kind": "emulated", "filesystem": "ext4", "size_bytes": "6G"},
            "resilvered": {"kind": "emulated", "filesystem": "zfs", "size_bytes": "4G"},
            "folder": {"kind": "folder", "path": "/srv"},
        }
        clones = {"compose": {"driver": "compose"}, "qemu": {"driver": "qemu", "image": "/vm.qcow2"}}
        busy: dict[str, object] = {"saturator": {"kind": "resilver"}} if disk == "resilvered" else {}
        return {"name": f"b{number}", "disk": disks[disk], "clone": clones[driver], **busy}

    lab = Lab.model_validate(
        {
            "name": "room",
            "out": Path("/tmp"),
            "backends": [backend(number, said) for number, said in enumerate(backends)],
            "scenarios": [{"scenario": "download"}],
        }
    )
    machine = _machine(golden)

    async def claimed() -> list[Claim]:
        return await collect_claims(
            [await build_rig(lab, one, machine, lambda *_: None) for one in lab.backends], VolumeUses()
        )

    return asyncio.run(claimed())


def test_two_disks_of_one_machine_and_the_copies_on_them() -> None:
    claims = _claims(True, "emulated+compose", "emulated+compose")
    assert [(one.on.name, one.bytes // GIB) for one in claims] == [
        ("/dev/sda1", 6),
        ("the disk of b0", 3),
        ("/dev/sda1", 6),
        ("the disk of b1", 3),
    ]
    assert "the disk of b0 (6.0 GiB) and the disk of b1 (6.0 GiB) do not fit together" in "".join(
        what for _, what in find_shortages(claims)
    )


def test_a_disk_that_is_resilvered_has_two_sides() -> None:
    first, second, _ = _claims(True, "resilvered+compose")
    assert [(one.on.name, one.bytes // GIB) for one in (first, second)] == [("/dev/sda1", 4)] * 2
    assert (second.key, second.what) == ("saturator", "the second side that resilver gives it")


def test_the_site_to_copy_counts_too_while_it_is_still_to_be_made() -> None:
    claims = _claims(False, "folder+compose", "folder+compose")
    assert [(one.what, one.bytes) for one in claims] == [
        ("the clone", 1_400_000_000),
        ("the clone", 1_400_000_000),
        ("the site to copy", 1_400_000_000),
    ]


def test_a_virtual_machine_takes_what_its_image_takes_and_may_grow_to_its_disk() -> None:
    (claim,) = _claims(True, "folder+qemu")
    assert claim.bytes == 3 * GIB + (256 << 20)
    assert claim.most_bytes == 20 * GIB
