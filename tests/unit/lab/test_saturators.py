"""Saturators: what they run, how progress is read, what they tell, and that they destroy only their own."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.names import checked_label, is_own_snapshot, snapshot_name
from plimsoll.lab.saturators import AnySaturator, aim_saturator, fio, make_saturator
from plimsoll.lab.saturators.btrfs_send import BtrfsSend, BtrfsSource
from plimsoll.lab.saturators.btrfs_send import leftovers as btrfs_leftovers
from plimsoll.lab.saturators.copier import chunk_bytes, copy, pause_s
from plimsoll.lab.saturators.fio import Fio
from plimsoll.lab.saturators.saturator import Meter
from plimsoll.lab.saturators.sinks import (
    NullSink,
    RamDiskSink,
    RemoteSink,
    copied_bytes,
    copy_to_sink_command,
    count_received_command,
    over_ssh,
)
from plimsoll.lab.saturators.zfs_send import (
    ZFS_SEND,
    ZfsSend,
    ZfsSource,
    estimated_bytes,
    leftovers,
    progress_bytes,
)
from tests.support.programs import ROOT
from tests.support.scripted import ScriptedMachine

SETTINGS: TypeAdapter[Any] = TypeAdapter(AnySaturator)
ZFS = ZfsSend(kind="zfs-send", dataset="tank/site", retries=1)
BTRFS = BtrfsSend(kind="btrfs-send", subvolume="/srv/site", snapshots="/srv/.snap shots")
FIO = Fio(kind="fio", folder="/srv/disk", jobs=2)
RAM = RamDiskSink(to="ramdisk", folder="/dev/shm", size_bytes=1 << 20)
REMOTE = RemoteSink(to="remote", host="root@backup", port=2222, into="backup/lab")
OWN = "tank/site@plimsoll-nightly-000001"


@pytest.mark.parametrize(
    ("line", "bytes_", "says"),
    [
        ("12:00:01\t123456\ttank/site@a", 123456, "OpenZFS with -v -P"),
        ("12:00:01\t123456\t789\ttank/site@a", 123456, "with -vv blocks stand behind the bytes"),
        ("00:00:00\t0\ttank@a", 0, "nothing yet"),
        ("full\ttank/site@a\t123456", None, "what is sent, with its estimate"),
        ("incremental\ta\ttank/site@b\t123456", None, "the same of an increment"),
        ("size\t123456", None, "an estimate is no progress"),
        ("TIME        SENT   SNAPSHOT", None, "the head without -P"),
        ("12:00:01   1.2G   tank/site@a", None, "rounded without -P: not exact, not taken"),
        ("sending from @ to tank/site@a", None, "zfs-fuse"),
        ("12:00:01\t-5\ttank/site@a", None, "no number"),
        ("cannot open 'tank/site@a': dataset does not exist", None, "an error"),
        ("", None, "nothing"),
    ],
)
def test_progress_of_zfs(line: str, bytes_: int | None, says: str) -> None:
    assert progress_bytes(line) == bytes_, says


def test_estimates_and_totals() -> None:
    assert estimated_bytes("size\t300") == 300
    assert estimated_bytes("full\ttank@a\t300") is None
    assert copied_bytes("bytes 12") == 12
    assert copied_bytes("bytes -1") is None
    assert (copied_bytes("received 12"), copied_bytes("received 12", "received")) == (None, 12)


@given(st.text())
def test_any_line_is_read_or_left(line: str) -> None:
    for read in (progress_bytes, estimated_bytes, copied_bytes, fio.FioProgress().feed):
        found = read(line)
        assert found is None or found >= 0


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        ("tank/site@plimsoll-nightly-1", "not our number of digits"),
        ("tank/site@plimsoll-nightly-2-000001", "an experiment whose label begins alike"),
        ("tank/site@plimsoll-other-000001", "another experiment"),
        ("tank/site@daily-2024-01-01", "the user's own"),
        ("tank/site@my-plimsoll-nightly-000001", "ours in the middle only"),
        ("tank/site/child@plimsoll-nightly-000001", "a dataset below"),
        ("tank/site2@plimsoll-nightly-000001", "a dataset with a longer name"),
        ("tank@plimsoll-nightly-000001", "the pool itself"),
        ("tank/site", "the dataset itself"),
        ("tank/site@plimsoll-nightly-000001,daily", "two at once, as zfs destroy takes them"),
        ("tank/site@plimsoll-nightly-000001%daily", "a range, as zfs destroy takes it"),
        ("tank/site@plimsoll-nightly-000001 ", "a blank behind it"),
        ("tank/site@plimsoll-nightly-٠٠٠٠٠١", "other digits"),
        ("tank/site@plimsoll-nightly-000001; rm -rf /", "a command behind it"),
        ("-r tank/site@plimsoll-nightly-000001", "an option before it"),
        ("", "nothing"),
    ],
)
def test_what_is_not_ours_is_never_destroyed(listed: str, says: str) -> None:
    assert leftovers(f"{listed}\n{OWN}\n", "tank/site", "nightly") == [OWN], says
    with pytest.raises(ValueError, match="not a snapshot of this experiment"):
        ZfsSource(ZFS, "nightly", True).destroy(listed)
    path = listed.replace("tank/site@", "/srv/.snap shots/")
    with pytest.raises(ValueError, match="not a snapshot of this experiment"):
        BtrfsSource(BTRFS, "nightly").destroy(path)


def test_snapshots_of_btrfs_are_right_in_their_folder() -> None:
    ours = "/srv/.snap shots/plimsoll-nightly-000007"
    listed = [ours, ours + "/x", ours + "\n", "/srv/.snap shots/a/plimsoll-nightly-000007", "/srv/other", ""]
    assert btrfs_leftovers("\0".join(listed), "/srv/.snap shots", "nightly") == [ours]


@given(st.from_regex(r"[a-z0-9][a-z0-9-]{0,39}", fullmatch=True), st.integers(1, 999_999), st.text())
def test_a_name_belongs_to_one_label(label: str, number: int, other: str) -> None:
    name = snapshot_name(label, number)
    assert is_own_snapshot(name, label)
    try:
        checked_label(other)
    except ValueError:
        return
    assert is_own_snapshot(name, other) == (other == label)


@pytest.mark.parametrize(
    "label", ["", "-a", "A", "a b", "a'", "a;b", "a/b", "a@b", "../a", "é", "a\n", "a" * 41]
)
def test_labels_that_are_refused(label: str) -> None:
    with pytest.raises(ValueError, match="a label has"):
        make_saturator(ScriptedMachine(), ZFS, label, print)


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"kind": "tar"}, "an unknown kind"),
        ({"kind": "zfs-send", "dataset": "tank/a b"}, "a blank"),
        ({"kind": "zfs-send", "dataset": "-r"}, "an option"),
        ({"kind": "zfs-send", "dataset": "tank@a"}, "a snapshot"),
        ({"kind": "zfs-send", "dataset": "/tank"}, "a path"),
        ({"kind": "zfs-send", "dataset": "tank/../x"}, "a way up"),
        ({"kind": "zfs-send", "dataset": "tank; reboot"}, "a command"),
        ({"kind": "zfs-send", "dataset": "tank", "rate_bytes_per_s": 0}, "no rate"),
        ({"kind": "zfs-send", "dataset": "tank", "speed": 1}, "an unknown key"),
        ({"kind": "zfs-send", "dataset": "tank", "sink": {"to": "tape"}}, "an unknown sink"),
        (
            {
                "kind": "zfs-send",
                "dataset": "tank",
                "sink": {"to": "remote", "host": "-oProxyCommand=x", "into": "b"},
            },
            "an option of ssh",
        ),
        (
            {"kind": "zfs-send", "dataset": "tank", "sink": {"to": "remote", "host": "h", "into": "/path"}},
            "a path is no dataset",
        ),
        (
            {"kind": "zfs-send", "dataset": "tank", "sink": {"to": "local", "into": "tank/backup"}},
            "what is sent would hold what is received",
        ),
        ({"kind": "zfs-replicate", "sink": {"to": "null"}}, "nothing receives"),
        ({"kind": "zfs-replicate"}, "no word of who receives"),
        ({"kind": "zfs-replicate", "mode": "full", "sink": {"to": "local", "into": "b"}}, "no replication"),
        ({"kind": "zfs-replicate", "interval_s": 0, "sink": {"to": "local", "into": "b"}}, "no interval"),
        ({"kind": "btrfs-send", "subvolume": "a", "snapshots": "/b"}, "a relative path"),
        ({"kind": "btrfs-send", "subvolume": "/a", "snapshots": "/b/../c"}, "a way up"),
        ({"kind": "fio", "folder": "/a:b"}, "two folders, to fio"),
        ({"kind": "fio", "folder": "/a", "rw": "trim"}, "a disk that would be emptied"),
    ],
)
def test_settings_that_are_refused(given_: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError):
        SETTINGS.validate_python(given_)


def test_the_commands_of_zfs() -> None:
    new, old = ZfsSource(ZFS, "nightly", True), ZfsSource(ZFS, "nightly", False)
    assert new.send(1, None) == ["zfs", "send", "-v", "-P", OWN]
    assert old.send(1, None) == ["zfs", "send", OWN], "zfs-fuse knows neither -P nor this -v"
    second = "tank/site@plimsoll-nightly-000002"
    assert new.send(2, 1) == ["zfs", "send", "-v", "-P", "-i", OWN, second]
    assert new.snapshot(1) == ["zfs", "snapshot", OWN]
    assert new.destroy(OWN) == ["zfs", "destroy", OWN]
    assert (new.receive(), new.forget()) == (None, [])
    remote = ZfsSource(ZFS.model_copy(update={"sink": REMOTE}), "nightly", True)
    assert remote.receive() == ["zfs", "receive", "-F", "-u", "backup/lab/plimsoll-nightly"]
    assert remote.prune(3) == [["zfs", "destroy", "backup/lab/plimsoll-nightly@plimsoll-nightly-000003"]]
    assert [words[-1] for words in remote.forget()] == ["backup/lab/plimsoll-nightly"]
    assert (new.prune(3), new.forget()) == ([], [])


def test_all_datasets_of_a_clone_are_sent_of_one_snapshot() -> None:
    at = DataLocation(dataset="tank/site", parts={"@web": ("tank/site/wordpress", "tank/site/static")})
    settings: Any = aim_saturator(
        SETTINGS.validate_python({"kind": "zfs-send", "sink": REMOTE.model_dump()}), at
    )
    source = ZfsSource(settings, "nightly", True)
    assert source.snapshot(1) == ["zfs", "snapshot", "-r", OWN]
    sources = [source, *source.below]
    name = OWN.partition("@")[2]
    datasets = ["tank/site", "tank/site/wordpress", "tank/site/static"]
    assert [each.send(1, None)[-1] for each in sources] == [f"{one}@{name}" for one in datasets]
    assert [each.receive()[-1] for each in sources] == [  # type: ignore[index]
        f"backup/lab/plimsoll-nightly{below}" for below in ("", "/wordpress", "/static")
    ]
    listed = "".join(f"{one}@{name}\n" for one in [*datasets, "tank/site/mine"])
    assert [each.own(listed) for each in sources] == [[f"{one}@{name}"] for one in datasets]
    assert [each.destroy(f"{one}@{name}") for each, one in zip(sources, datasets, strict=True)] == [
        ["zfs", "destroy", f"{one}@{name}"] for one in datasets
    ]
    assert ZFS_SEND.rounds(settings) == 3
    named = SETTINGS.validate_python({"kind": "zfs-send", "dataset": "tank/b"})
    assert aim_saturator(named, at) == named, "what is named is sent alone"


def test_the_commands_of_btrfs() -> None:
    source = BtrfsSource(BTRFS.model_copy(update={"sink": REMOTE.model_copy(update={"into": "/b"})}), "n")
    one, two = "/srv/.snap shots/plimsoll-n-000001", "/srv/.snap shots/plimsoll-n-000002"
    assert source.snapshot(1) == ["btrfs", "subvolume", "snapshot", "-r", "/srv/site", one]
    assert source.send(2, 1) == ["btrfs", "send", "-q", "-p", one, two]
    assert source.destroy(one) == ["btrfs", "subvolume", "delete", one]
    assert source.receive() == ["btrfs", "receive", "/b"]
    assert source.forget()[0][-3:] == ["delete", "{}", ";"]
    assert source.prune(1) == [["btrfs", "subvolume", "delete", "/b/plimsoll-n-000001"]]


def test_the_commands_around_a_send() -> None:
    command = copy_to_sink_command(["zfs", "send", OWN], RAM, 5, "nightly", None)
    assert command[:2] == ["python3", "-c"]
    assert command[3:] == [
        "--rate=5",
        "--to=/dev/shm/plimsoll-nightly.stream",
        "--wrap=1048576",
        "--",
        "zfs",
        "send",
        OWN,
    ]
    ssh = over_ssh(REMOTE, ["btrfs", "receive", "/a b'; x"])
    assert ssh[-3:] == ["--", "root@backup", "btrfs receive '/a b'\"'\"'; x'"]
    assert {"BatchMode=yes", "StrictHostKeyChecking=yes", "2222"} <= set(ssh)


def test_the_commands_of_fio() -> None:
    command = fio.command(FIO.model_copy(update={"iodepth": 8, "rate_bytes_per_s": 9}), "nightly")
    assert {"--directory=/srv/disk", "--ioengine=libaio", "--rate=9", "--status-interval=1"} <= set(command)
    files = [f"/srv/disk/plimsoll-nightly.{job}" for job in (0, 1)]
    assert fio.remove(FIO, "nightly") == ["rm", "-f", "--", *files]


def test_documents_of_a_real_fio() -> None:
    text = (ROOT / "tests" / "fixtures" / "saturators" / "fio-status.json").read_text(encoding="utf-8")
    documents = fio.FioProgress()
    totals = [total for line in text.splitlines() if (total := documents.feed(line)) is not None]
    assert totals[0] == 418021376 + 421920768, "what it read and wrote in the first second"
    assert len(totals) == 4
    assert totals == sorted(totals), "it counts from its start"
    cut = fio.FioProgress()
    lines = ["fio: a warning", "}", "{", ' "jobs" : 3', "{", ' "jobs" : []', "}"]
    assert [cut.feed(line) for line in lines] == [None] * 6 + [0]


@given(st.lists(st.one_of(st.integers(0, 1 << 50), st.none())))
def test_a_meter_counts_over_processes(said: list[int | None]) -> None:
    meter, total, largest = Meter(), 0, 0
    for one in said:
        if one is None:
            meter.next_process()
            total, largest = total + largest, 0
        else:
            meter.now(one)
            largest = max(largest, one)
        assert meter.total == total + largest
    assert meter.per_second(1.0) == meter.total
    assert meter.per_second(1.0) == 0


@given(st.integers(1, 1 << 40), st.integers(0, 1 << 50), st.floats(0, 1e6))
def test_a_pause_is_what_the_rate_asks_for(rate: int, copied: int, elapsed_s: float) -> None:
    assert pause_s(None, copied, elapsed_s) == 0
    wait_s = pause_s(rate, copied, elapsed_s)
    assert wait_s >= 0
    assert copied / rate <= (elapsed_s + wait_s) * (1 + 1e-9) + 1e-9
    assert 1 <= chunk_bytes(rate) <= 1 << 20


def test_a_copy_goes_round_and_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(5 << 20))
    sink = os.open(tmp_path / "sink", os.O_WRONLY | os.O_CREAT)
    with source.open("rb", buffering=0) as file:
        assert isinstance(file, io.FileIO)
        copy(file.fileno(), sink, None, 2 << 20)
    os.close(sink)
    assert (tmp_path / "sink").stat().st_size == 2 << 20
    assert capsys.readouterr().out.endswith(f"bytes {5 << 20}\n")


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["--", "printf", "abc"], 0, "all went well"),
        (["--", "sh", "-c", "printf abc; exit 3"], 1, "the sender failed"),
        (['--into=["sh","-c","cat >/dev/null; exit 3"]', "--", "printf", "abc"], 1, "the receiver failed"),
    ],
)
def test_pace_as_a_program(words: list[str], status: int, says: str) -> None:
    command = copy_to_sink_command(["true"], NullSink(), None, "n", None)[:3]
    done = subprocess.run([sys.executable, *command[1:], *words], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (status, "bytes 3\n"), says + done.stderr


def test_both_ends_are_counted_apart() -> None:
    receive = count_received_command(["sh", "-c", "cat >/dev/null"])
    command = [
        *copy_to_sink_command(["true"], NullSink(), None, "n", None)[:3],
        f"--into={json.dumps(receive)}",
    ]
    words = [sys.executable, *command[1:], "--", "printf", "abc"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["bytes 3", "received 3"]), done.stderr


def test_pace_says_what_it_copied_when_it_is_told_to_end() -> None:
    command = copy_to_sink_command(["true"], NullSink(), None, "n", None)[:3]
    words = [sys.executable, *command[1:], "--rate=100000", "--", "yes"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        first = copied_bytes(process.stdout.readline().strip())
        process.terminate()
        *_, last = [copied_bytes(line.strip()) for line in process.stdout]
    assert process.returncode == 1
    assert first is not None
    assert last is not None
    assert last >= first > 0


_CLONE = DataLocation(dataset="tank/site", subvolume="/mnt/site", folder="/mnt")


@pytest.mark.parametrize(
    ("given_", "pointed_at", "says"),
    [
        ({"kind": "zfs-send"}, {"dataset": "tank/site"}, "the clone's dataset is sent"),
        ({"kind": "zfs-send", "dataset": "tank/b"}, {"dataset": "tank/b"}, "what is named stays"),
        ({"kind": "btrfs-send"}, {"subvolume": "/mnt/site", "snapshots": "/mnt"}, "the clone's subvolume"),
        ({"kind": "fio"}, {"folder": "/mnt"}, "files beside the clone"),
    ],
)
def test_what_is_left_open_is_the_clones(
    given_: dict[str, Any], pointed_at: dict[str, str], says: str
) -> None:
    settings: Any = TypeAdapter(AnySaturator).validate_python(given_)
    found = aim_saturator(settings, _CLONE).model_dump()
    assert {key: found[key] for key in pointed_at} == pointed_at
    if set(given_) == {"kind"}:
        with pytest.raises(ValueError, match="missing: the lab knows no"):
            aim_saturator(settings, DataLocation())
