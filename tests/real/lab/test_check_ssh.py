"""`plimsoll check` of machines over a real sshd: what is missing there, and what is in the way."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.cli import main
from plimsoll.lab.experiment import machines
from plimsoll.lab.tuning import apply
from tests.support.programs import REPLAY, ROOT, need
from tests.support.servers import Sshd

LAB = """
name: check
out: {folder}/out
work: {folder}/work
hosts:
  - {{name: far, address: 127.0.0.1, port: {port}, key: {key}, known_hosts: {known_hosts}}}
  - {{name: gone, address: 127.0.0.1, port: 1, key: {key}, known_hosts: {known_hosts}}}
backends:
{backends}
scenarios:
  - scenario: replay
    options: {{log: "{log}"}}
"""
STATIC = 'clone: {driver: static, target: "http://127.0.0.1:9"}'


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """The other machine, whose lock and journals are not this one's: others may be at work here."""
    need(REPLAY)
    monkeypatch.setattr(machines, "LOCK_PATH", str(tmp_path / "lab.lock"))
    monkeypatch.setattr(apply, "FOLDER", str(tmp_path / "tuning"))
    server = Sshd(tmp_path)
    yield server
    server.stop()


def check(sshd: Sshd, folder: Path, *backends: str) -> list[str]:
    """What is told of backends on that machine, or on the host that they name."""
    lines = [
        f"  - {{name: b{number}, {'' if 'host:' in one else 'host: far, '}{one}}}"
        for number, one in enumerate(backends)
    ]
    text = LAB.format(
        folder=folder,
        port=sshd.port,
        key=sshd.key,
        known_hosts=sshd.known_hosts,
        backends="\n".join(lines),
        log=ROOT / "examples" / "access.log",
    )
    (folder / "lab.yml").write_text(text)
    done = CliRunner().invoke(main, ["check", str(folder / "lab.yml"), "--json"])
    assert done.exit_code == 1, done.output
    problems: list[str] = json.loads(done.stdout)["problems"]
    return problems


def emulated(size: str, more: str = "") -> str:
    return f"disk: {{kind: emulated, filesystem: ext4, size_bytes: {size}}}, clone: {{driver: compose}}{more}"


MISSING = [
    (
        "a folder and a disk",
        "disk: {kind: folder, path: /no/lab, devices: [nvme9n9]}, clone: {driver: compose}",
        ["disk.path: folder /no/lab does not exist", "disk.devices: disk nvme9n9 does not exist"],
    ),
    (
        "room",
        emulated("900000G"),
        ["disk.size_bytes: the disk does not fit: 900000.0 GiB are needed and "],
    ),
    (
        "Plimsoll's folder",
        "disk: {kind: folder, path: /tmp}, clone: {driver: compose, project: /no/plimsoll}",
        ["clone.project: /no/plimsoll is not Plimsoll's folder on that machine"],
    ),
    (
        "a program",
        'clone: {driver: static, target: "http://127.0.0.1:9", reset: [[reboot-plimsoll-site]]}',
        ["far has no reboot-plimsoll-site: install it"],
    ),
    (
        "a setting of the kernel",
        f"{STATIC}, tuning: {{disks: {{nvme9n9: {{scheduler: none}}}}}}",
        ["tuning: "],
    ),
    (
        "a base",
        "disk: {kind: folder, path: /tmp}, clone: {driver: libvirt, base: none, target: 'http://127.0.0.1'}",
        ["far: cannot clone none: "],
    ),
]


def test_all_that_is_missing_or_in_the_way_there(sshd: Sshd, tmp_path: Path) -> None:
    """All problems at once: backend after backend."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        site = f"disk: {{kind: folder, path: /tmp}}, clone: {{driver: compose, port: {port}}}"
        says = [f"clone.port: 127.0.0.1:{port} cannot be listened on"]
        rows = [*MISSING, ("a port that is taken", site, says)]
        problems = check(sshd, tmp_path, *(backend for _, backend, _ in rows))
    for number, (what, _, says) in enumerate(rows):
        for part in says:
            assert any(one.startswith(f"b{number}: {part}") for one in problems), (what, problems)


def test_disks_that_fit_only_one_by_one(sshd: Sshd, tmp_path: Path) -> None:
    free = subprocess.run([need("df"), "-P", "-B1", tmp_path], capture_output=True, text=True, check=True)
    size = str(int(free.stdout.splitlines()[-1].split()[3]) * 2 // 3)
    told = check(sshd, tmp_path, emulated(size), emulated(size))
    assert [one for one in told if one.startswith("the disk of b0 (") and "do not fit together" in one], told


def test_a_machine_that_is_at_work_and_one_that_was_left_tuned(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "tuning").mkdir()
    value = {"kind": "vm", "name": "swappiness", "value": "60"}
    left = {"format": 1, "by": "experiment other in /far/results", "put_back": [value]}
    (tmp_path / "tuning" / "plimsoll-other--hdd.json").write_text(json.dumps(left))
    told = check(sshd, tmp_path, STATIC)
    assert any(one.startswith("far: is still tuned by experiment other in /far/results (") for one in told), (
        told
    )

    with subprocess.Popen(
        machines.hold_command("experiment busy"), stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        told = check(sshd, tmp_path, STATIC)
        holder.kill()
    assert "far: another experiment uses this machine: wait until it ends: experiment busy" in told
    assert not any("is still tuned" in one for one in told), "it is the other's, who is at work"


def test_a_machine_that_cannot_be_reached_hides_no_other(sshd: Sshd, tmp_path: Path) -> None:
    told = check(
        sshd, tmp_path, f"host: gone, {STATIC}", emulated("900000G"), f"host: gone, {emulated('1G')}"
    )
    assert len([one for one in told if "gone" in one]) == 1, told
    assert any("the disk does not fit" in one for one in told), told


def test_a_key_that_the_machine_does_not_take(sshd: Sshd, tmp_path: Path) -> None:
    sshd.key = sshd.other_key
    told = check(sshd, tmp_path, emulated("1G"))
    (one,) = [one for one in told if "far" in one]
    assert one.startswith("far: "), told
