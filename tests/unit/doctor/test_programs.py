"""The one list of programs and packages: Python and the shell read it alike, and it has what is called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from plimsoll.doctor import CONTRIBUTORS, USES, Missing, find_missing, find_outdated_go, is_here, read_table
from plimsoll.lab.saturators import SATURATORS
from tests.support.programs import ROOT

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
