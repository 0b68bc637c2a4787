"""What each saturator refuses, works on, reads and survives: tables over all kinds."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Line
from plimsoll.lab.saturators import AnySaturator, aim_saturator, backup, make_saturator
from plimsoll.lab.saturators.fio import FioProgress
from plimsoll.lab.saturators.saturator import amount_bytes
from plimsoll.lab.saturators.scrub import ScanProgress
from plimsoll.lab.saturators.sinks import copied_bytes
from plimsoll.lab.saturators.zfs_send import estimated_bytes, progress_bytes
from tests.support.scripted import ScriptedMachine

settings_of = TypeAdapter[Any](AnySaturator).validate_python
SEND = {"kind": "zfs-send", "dataset": "tank"}
REPLICATE = {"kind": "zfs-replicate", "sink": {"to": "local", "into": "b"}}
RSYNC = {"kind": "rsync", "folder": "/srv/site", "sink": {"to": "local", "into": "/backup"}}
RSYNC_FAR = RSYNC | {"sink": {"to": "remote", "host": "root@backup", "port": 2222, "into": "/b b"}}
DUMP: dict[str, Any] = {"kind": "database-dump"}
COMMAND = {"kind": "command", "start": ["work"], "progress": "^(?P<bytes>[0-9]+) bytes"}
BACKUP: dict[str, Any] = {"kind": "backup"}
SERVER = {"to": "repository", "repository": "lab@pbs!t@backup:store", "password_file": "/root/pbs.secret"}
STORED = BACKUP | {"guest": 9001, "sink": {"to": "storage", "storage": "pbs"}}
ON_SERVER = BACKUP | {"folder": "/srv", "sink": SERVER}
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("an unknown kind", {"kind": "tar"}),
    ("a dataset with a blank", SEND | {"dataset": "tank/a b"}),
    ("an option for a dataset", SEND | {"dataset": "-r"}),
    ("a snapshot for a dataset", SEND | {"dataset": "tank@a"}),
    ("a path for a dataset", SEND | {"dataset": "/tank"}),
    ("a way up from a dataset", SEND | {"dataset": "tank/../x"}),
    ("a dataset with a command", SEND | {"dataset": "tank; reboot"}),
    ("a rate of nothing", SEND | {"rate_bytes_per_s": 0}),
    ("an unknown key", SEND | {"speed": 1}),
    ("an unknown sink", SEND | {"sink": {"to": "tape"}}),
    ("an option of ssh", SEND | {"sink": {"to": "remote", "host": "-oProxyCommand=x", "into": "b"}}),
    ("a path, where a dataset is received", SEND | {"sink": {"to": "remote", "host": "h", "into": "/path"}}),
    ("what is sent would hold what is received", SEND | {"sink": {"to": "local", "into": "tank/backup"}}),
    ("nothing receives what is replicated", REPLICATE | {"sink": {"to": "null"}}),
    ("no word of who receives it", {"kind": "zfs-replicate"}),
    ("all of it each time is no replication", REPLICATE | {"mode": "full"}),
    ("no interval", REPLICATE | {"interval_s": 0}),
    ("a relative subvolume", {"kind": "btrfs-send", "subvolume": "a", "snapshots": "/b"}),
    ("a way up from snapshots", {"kind": "btrfs-send", "subvolume": "/a", "snapshots": "/b/../c"}),
    ("two folders, to fio", {"kind": "fio", "folder": "/a:b"}),
    ("a disk that fio would empty", {"kind": "fio", "folder": "/a", "rw": "trim"}),
    ("a dataset for a pool", {"kind": "scrub", "pool": "tank/site"}),
    ("an option for a pool", {"kind": "scrub", "pool": "-s"}),
    ("a pool with a command", {"kind": "scrub", "pool": "tank; reboot"}),
    ("a pool to resilver by name", {"kind": "resilver", "pool": "tank"}),
    ("nothing to copy to", RSYNC | {"sink": {"to": "null"}}),
    ("a relative path to copy to", RSYNC | {"sink": {"to": "local", "into": "backup"}}),
    ("a copy in itself", RSYNC | {"sink": {"to": "local", "into": "/srv/site"}}),
    ("a copy in what is copied", RSYNC | {"sink": {"to": "local", "into": "/srv/site/b"}}),
    ("everything, with the copy", RSYNC | {"folder": "/"}),
    ("less than rsync can limit to", RSYNC | {"rate_bytes_per_s": 100}),
    ("a way up from what is copied", RSYNC | {"folder": "/srv/../etc"}),
    ("a password in lab.yml", DUMP | {"password": "x"}),
    ("a relative option file", DUMP | {"defaults_file": "lab.cnf"}),
    ("a database of no such name", DUMP | {"databases": ["a'; DROP"]}),
    ("an option for a database", DUMP | {"databases": ["-e"]}),
    ("no program that dumps", DUMP | {"program": []}),
    ("a sink that a dump has not", DUMP | {"sink": {"to": "remote", "host": "h", "into": "/x"}}),
    ("no command", COMMAND | {"start": []}),
    ("a line for a shell", COMMAND | {"start": "dd if=/dev/zero"}),
    ("a line end in a command", COMMAND | {"start": ["a\nb"]}),
    ("what would read as a reference", COMMAND | {"cleanup": ["rm", "${HOME}"]}),
    ("no regular expression", COMMAND | {"progress": "("}),
    ("no group called bytes", COMMAND | {"progress": "([0-9]+)"}),
    ("an unknown way to count", COMMAND | {"counts": "up"}),
    ("no word of a command's progress", {"kind": "command", "start": ["a"]}),
    ("a number that no guest has", BACKUP | {"guest": 99}),
    ("a guest with a command", BACKUP | {"guest": "9001; reboot"}),
    ("the site would be stopped", BACKUP | {"mode": "stop"}),
    ("a folder, where vzdump backs up a guest", BACKUP | {"folder": "/srv"}),
    ("a guest, where a repository has a folder", ON_SERVER | {"guest": 9001}),
    ("an option for a storage", BACKUP | {"sink": {"to": "storage", "storage": "--all"}}),
    ("a path for a storage", BACKUP | {"sink": {"to": "storage", "storage": "../x"}}),
    ("a server's password in lab.yml", BACKUP | {"sink": SERVER | {"password": "x"}}),
    ("half a fingerprint", BACKUP | {"sink": SERVER | {"fingerprint": "ab"}}),
    ("a repository with a blank", BACKUP | {"sink": SERVER | {"repository": "a b"}}),
    ("less than vzdump can limit to", BACKUP | {"rate_bytes_per_s": 100}),
]


@pytest.mark.parametrize("given_", [row[1] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_settings_that_are_refused(given_: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings_of(given_)


@pytest.mark.parametrize(
    "given_",
    [
        RSYNC,
        RSYNC | {"sink": {"to": "local", "into": "/srv/site2"}},  # beside a folder whose name begins alike
        RSYNC_FAR,
        DUMP,
        COMMAND,
        STORED,
        ON_SERVER,
        BACKUP,
        BACKUP | {"sink": SERVER},
    ],
)
def test_settings_outlive_an_experiment_that_is_resumed(given_: dict[str, Any]) -> None:
    settings = settings_of(given_)
    assert settings_of(settings.model_dump(mode="json")) == settings, "the folder has every key, defaults too"


CLONE = DataLocation(dataset="tank/lab/site", subvolume="/srv/lab/site", folder="/srv/lab", guest=9001)
EMULATED = DataLocation("/srv/plimsoll-move--hdd/mnt", "plimsoll-move--hdd/site")
REPLICA = REPLICATE | {"sink": {"to": "local", "into": "tank/lab/x"}}
COPY = {"kind": "rsync", "sink": {"to": "local", "into": "/srv/lab/b"}}
TO_FILE = BACKUP | {"sink": {"to": "folder"}}
AT_CLONE = COMMAND | {"start": ["dd", "of=@clone/@own"], "cleanup": ["rm", "-f", "--", "@clone/@own"]}
AIMED: list[tuple[str, dict[str, Any], DataLocation, dict[str, Any]]] = [
    ("the clone's dataset is sent", {"kind": "zfs-send"}, CLONE, {"dataset": "tank/lab/site"}),
    ("a dataset that is named stays", SEND | {"dataset": "tank/b"}, CLONE, {"dataset": "tank/b"}),
    ("the clone's subvolume is sent, with snapshots beside it", {"kind": "btrfs-send"}, CLONE,
     {"subvolume": "/srv/lab/site", "snapshots": "/srv/lab"}),
    ("fio has files beside the clone", {"kind": "fio"}, CLONE, {"folder": "/srv/lab"}),
    ("a replica stands beside a dataset whose name begins alike", REPLICA, DataLocation(dataset="tank/la"),
     {"dataset": "tank/la"}),
    ("the pool of the clone is scrubbed", {"kind": "scrub"}, CLONE, {"pool": "tank"}),
    ("a pool that is named stays", {"kind": "scrub", "pool": "rust"}, CLONE, {"pool": "rust"}),
    ("a copy stands beside a folder whose name begins alike", COPY, DataLocation(folder="/srv/la"),
     {"folder": "/srv/la"}),
    ("the clone's guest is backed up beside it", TO_FILE, CLONE,
     {"guest": 9001, "sink": {"to": "folder", "folder": "/srv/lab"}}),
    ("the clone's folder goes to a server", BACKUP | {"sink": SERVER}, CLONE, {"folder": "/srv/lab"}),
]  # fmt: skip


@pytest.mark.parametrize(("given_", "at", "aimed"), [row[1:] for row in AIMED], ids=[row[0] for row in AIMED])
def test_what_is_left_open_is_the_clones(
    given_: dict[str, Any], at: DataLocation, aimed: dict[str, Any]
) -> None:
    found = aim_saturator(settings_of(given_), at).model_dump()
    assert {key: found[key] for key in aimed} == aimed


MADE = "kind: resilver works only on a pool that the lab makes"
UNKNOWN = DataLocation()
NOT_AIMED: list[tuple[str, dict[str, Any], DataLocation, str]] = [
    ("a send of no dataset", {"kind": "zfs-send"}, UNKNOWN, "missing: the lab knows no"),
    ("a send of no subvolume", {"kind": "btrfs-send"}, UNKNOWN, "missing: the lab knows no"),
    ("files of fio in no folder", {"kind": "fio"}, UNKNOWN, "missing: the lab knows no"),
    ("a scrub of no pool", {"kind": "scrub"}, UNKNOWN, "pool: is missing"),
    ("a copy of no folder", {"kind": "rsync", "sink": {"to": "local", "into": "/b"}}, UNKNOWN,
     "folder: is missing"),
    ("a dump into no folder", DUMP, UNKNOWN, "sink.folder: is missing"),
    ("a command in no folder", AT_CLONE, UNKNOWN, "@clone: is missing"),
    ("a backup of no guest", TO_FILE, DataLocation(folder="/srv/lab"), "vmid_range of one number"),
    ("a backup into no folder", TO_FILE, DataLocation(guest=9001), "sink.folder: is missing"),
    ("a backup of no folder", BACKUP | {"sink": SERVER}, DataLocation(guest=9001), "folder: is missing"),
    ("a copy in the clone", COPY, CLONE, "lies in what is copied, /srv/lab"),
    ("a replica in the clone", REPLICA, DataLocation(dataset="tank/lab"),
     "sink.into: tank/lab/x lies in what is sent, tank/lab: name a dataset"),
    ("a resilver of the host's pool", {"kind": "resilver"}, DataLocation("/tank/lab", "tank/lab/x"),
     f"{MADE}, and this clone is on the pool tank: give"),
    ("a resilver of a pool that only bears such a name", {"kind": "resilver"},
     DataLocation("/tank/mnt", "plimsoll-a--b/site"),
     f"{MADE}, and this clone is on the pool plimsoll-a--b: give"),
    ("a resilver of a pool whose folder only bears such a name", {"kind": "resilver"},
     DataLocation("/plimsoll-a--b/mnt", "tank/lab/x"), f"{MADE}, and this clone is on the pool tank: give"),
    ("a resilver of a folder", {"kind": "resilver"}, DataLocation("/srv/plimsoll-a--b/mnt"),
     f"{MADE}, and this clone is on no ZFS pool that the lab knows: give"),
    ("a resilver of nothing known", {"kind": "resilver"}, UNKNOWN,
     f"{MADE}, and this clone is on no ZFS pool that the lab knows: give"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given_", "at", "problem"), [row[1:] for row in NOT_AIMED], ids=[row[0] for row in NOT_AIMED]
)
def test_what_no_clone_can_fill_in_is_refused_with_its_key(
    given_: dict[str, Any], at: DataLocation, problem: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        aim_saturator(settings_of(given_), at)


def percent_of_a_pool(line: str) -> int | None:
    figures = ScanProgress()
    figures.total_bytes = 1 << 60
    return figures.read(Line("out", line, 0))


READERS: dict[str, Callable[[str], int | None]] = {
    "a send": progress_bytes,
    "its estimate": estimated_bytes,
    "the copier": copied_bytes,
    "fio": lambda line: FioProgress().feed(line),
    "a scan of a pool": percent_of_a_pool,
    "vzdump onto a storage": lambda line: backup.reader(settings_of(STORED))(Line("out", line, 0)),
    "the client of a backup server": lambda line: backup.reader(settings_of(ON_SERVER))(Line("out", line, 0)),
    "vzdump through the copier": lambda line: backup.reader(settings_of(BACKUP))(Line("out", line, 0)),
    "an amount": amount_bytes,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@given(line=st.text())
def test_any_line_is_read_or_left(read: Callable[[str], int | None], line: str) -> None:
    found = read(line)
    assert found is None or found >= 0


@pytest.mark.parametrize(
    "label", ["", "-a", "A", "a b", "a'", "a;b", "a/b", "a@b", "../a", "é", "a\n", "a" * 41]
)
def test_labels_that_are_refused(label: str) -> None:
    with pytest.raises(ValueError, match="a label has"):
        make_saturator(ScriptedMachine(), settings_of(SEND), label, print)
