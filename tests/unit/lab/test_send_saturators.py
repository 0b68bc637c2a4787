"""Sends and replication: what is run and counted, and that only the lab's own snapshots are destroyed."""

import asyncio
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Line
from plimsoll.lab.saturators import AnySaturator, aim_saturator
from plimsoll.lab.saturators.btrfs_send import BtrfsSend, BtrfsSource
from plimsoll.lab.saturators.btrfs_send import leftovers as btrfs_leftovers
from plimsoll.lab.saturators.copier import chunk_bytes, copy, pause_s
from plimsoll.lab.saturators.send import discard_command
from plimsoll.lab.saturators.sinks import (
    NullSink,
    RamDiskSink,
    RemoteSink,
    copied_bytes,
    copy_to_sink_command,
    count_received_command,
    over_ssh,
)
from plimsoll.lab.saturators.zfs_replicate import ZFS_REPLICATE
from plimsoll.lab.saturators.zfs_send import (
    ZFS_SEND,
    ZfsSend,
    ZfsSource,
    estimated_bytes,
    leftovers,
    progress_bytes,
)
from plimsoll.lab.steps.step import Command
from tests.support.programs import awaited
from tests.support.scripted import ScriptedMachine, ScriptedProcess, at_work

settings_of = TypeAdapter[Any](AnySaturator).validate_python
ZFS = ZfsSend(kind="zfs-send", dataset="tank/site", retries=1)
BTRFS = BtrfsSend(kind="btrfs-send", subvolume="/srv/site", snapshots="/srv/.snap shots")
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
    settings: Any = aim_saturator(settings_of({"kind": "zfs-send", "sink": REMOTE.model_dump()}), at)
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
    named = settings_of({"kind": "zfs-send", "dataset": "tank/b"})
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


PACE = [sys.executable, *copy_to_sink_command(["true"], NullSink(), None, "n", None)[1:3]]


def pace(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PACE, *words], capture_output=True, text=True, timeout=60, check=False)


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
    done = pace(*words)
    assert (done.returncode, done.stdout) == (status, "bytes 3\n"), says + done.stderr


def test_both_ends_are_counted_apart() -> None:
    receive = count_received_command(["sh", "-c", "cat >/dev/null"])
    done = pace(f"--into={json.dumps(receive)}", "--", "printf", "abc")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["bytes 3", "received 3"]), done.stderr


def test_pace_says_what_it_copied_when_it_is_told_to_end() -> None:
    with subprocess.Popen(
        [*PACE, "--rate=100000", "--", "yes"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        first = copied_bytes(process.stdout.readline().strip())
        process.terminate()
        *_, last = [copied_bytes(line.strip()) for line in process.stdout]
    assert process.returncode == 1
    assert first and last and last >= first > 0


def test_pace_follows_no_symbolic_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "link").symlink_to(victim)
    assert pace(f"--to={tmp_path}/link", "--", "printf", "abc").returncode != 0
    assert victim.read_text() == "precious"


def test_pace_writes_a_file_of_its_own_each_time(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "file").hardlink_to(victim)
    for text in ("abc", "de"):
        assert pace(f"--to={tmp_path}/file", "--", "printf", text).returncode == 0
        assert (tmp_path / "file").read_text() == text
    assert victim.read_text() == "precious"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("script", "status", "says"),
    [
        ('[ ! /dev/fd/1 -ef /dev/null ] || { echo "cannot send: Invalid argument" >&2; exit 1; }', 0, ""),
        ("echo size >&2; head -c 300000 /dev/zero", 0, "size\n"),
        ("echo no such dataset >&2; exit 3", 3, "no such dataset\n"),
        ("kill -9 $$", 137, ""),
    ],
    ids=["it is not /dev/null", "what it says is heard", "its status counts", "its end counts"],
)
def test_a_stream_is_thrown_away_and_its_sender_is_heard(script: str, status: int, says: str) -> None:
    done = subprocess.run(discard_command(["sh", "-c", script]), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (status, "")
    assert says in done.stderr


LOCAL = {"to": "local", "into": "backup/lab"}
FAR = {"to": "remote", "host": "root@backup", "into": "backup/lab"}
RECEIVED = "backup/lab/plimsoll-nightly"


def replicate(**further: Any) -> Any:
    return settings_of({"kind": "zfs-replicate", "dataset": "tank/site", "sink": LOCAL} | further)


def own(number: int, dataset: str = "tank/site") -> str:
    return f"{dataset}@plimsoll-nightly-{number:06d}"


class Pools:
    """Two pools, as far as `zfs` shows them: the snapshots of what is sent, and of what is received."""

    def __init__(self, *snapshots: str) -> None:
        self.snapshots = list(snapshots)
        self.there = True  # what is received

    def answer(self, command: Sequence[str]) -> tuple[int, str, str]:
        words = shlex.split(command[-1]) if command[0] == "ssh" else list(command)
        match words:
            case ["zfs", "list", *_]:
                return 0, "\n".join(one for one in self.snapshots if one.startswith("tank")), ""
            case ["zfs", "snapshot", name]:
                self.snapshots.append(name)
            case ["zfs", "destroy", name]:
                self.snapshots.remove(name)
            case ["sh", "-c", script, "sh", name] if "zfs destroy -r" in script:
                self.snapshots = [one for one in self.snapshots if not one.startswith(f"{name}@")]
                self.there = False
            case ["sh", "-c", _, "sh", _]:
                return int(not self.there), "", ""
        return 0, "", ""

    def sent(self, command: Sequence[str], received: str = RECEIVED) -> list[str]:
        """The words of `zfs send`, whose snapshot is there on the other end from now on."""
        words = list(command)[list(command).index("zfs") :]
        self.snapshots.append(words[-1].replace("tank/site", received))
        self.there = True
        return words


@pytest.mark.parametrize("sink", [LOCAL, FAR], ids=["on this host", "on another"])
def test_what_is_new_is_sent_and_the_old_goes_on_both_ends(sink: dict[str, str]) -> None:
    pools, sends = Pools("tank/site@daily", own(9)), list[list[str]]()
    events: list[dict[str, Any]] = []
    lines = [Line("out", "bytes 70", 0), Line("out", "received 60", 0), Line("out", "received 70", 0)]

    def begin(command: Sequence[str]) -> ScriptedProcess:
        sends.append(pools.sent(command))
        return ScriptedProcess(lines, None if len(sends) == 4 else 0)

    async def drive() -> ScriptedMachine:
        settings = replicate(keep=2, sink=sink).model_copy(update={"interval_s": 0.01})
        machine = ScriptedMachine(pools.answer, begin)
        async with at_work(machine, settings, "nightly", events):
            await awaited("four rounds", lambda: len(sends) == 4)
            assert pools.snapshots == [
                "tank/site@daily",
                *(own(2), own(2, RECEIVED)),
                *(own(3), own(3, RECEIVED)),
                *(own(4), own(4, RECEIVED)),
            ], "two on both ends, and the one that is sent"
            await awaited("a throughput", lambda: any("bytes_per_s" in event for event in events))
        return machine

    machine = asyncio.run(drive())
    say = ["zfs", "send", "-v", "-P"]
    assert sends[0] == [*say, own(1)]
    assert sends[1:] == [[*say, "-i", own(number - 1), own(number)] for number in (2, 3, 4)]
    assert pools.snapshots == ["tank/site@daily"]
    assert not pools.there
    assert (events[0]["event"], events[-1]["bytes"]) == ("zfs-replicate", 280)
    reported = [event for event in events if event["event"] == "zfs-replicate received bytes"]
    assert bool(reported) == (sink is FAR), "a local one takes what is sent"
    pipeline = next(words for words in machine.ran if words[0] == "python3")
    assert any("--word=received" in word for word in pipeline) == (sink is FAR)


def test_a_failed_round_begins_anew_with_all_of_it() -> None:
    pools, sends = Pools(), list[list[str]]()

    def begin(command: Sequence[str]) -> ScriptedProcess:
        sends.append(pools.sent(command))
        return ScriptedProcess([], {1: 0, 2: 1}.get(len(sends)))

    async def drive() -> None:
        settings = replicate().model_copy(update={"interval_s": 0.01})
        async with at_work(ScriptedMachine(pools.answer, begin), settings, "nightly"):
            await awaited("a third round", lambda: len(sends) == 3)
            assert pools.snapshots == [own(3), own(3, RECEIVED)], "nothing of the rounds before"

    asyncio.run(drive())
    assert "-i" not in sends[2]


def test_the_plan_shows_the_rounds_without_waiting() -> None:
    settings = replicate(keep=7, interval_s=900)
    brief = ZFS_REPLICATE.brief(settings)
    assert (brief.rhythm.every_s, ZFS_REPLICATE.rounds(brief)) == (0, 2)
    assert ZFS_REPLICATE.brief(brief) == brief
    assert ZFS_SEND.brief(settings) is settings


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        (replicate(), ["saturator.dataset", "saturator.sink.into", "saturator.sink.into"]),
        (replicate(dataset="@clone"), ["saturator.sink.into"]),
        (
            replicate(dataset="@clone", sink=FAR),
            ["saturator.sink.host", "saturator.sink.into", "saturator.sink.host"],
        ),
    ],
)
def test_what_lab_check_looks_at(settings: Any, keys: list[str]) -> None:
    checks = ZFS_REPLICATE.checks(settings)
    assert [one.problem.split(":")[0] for one in checks] == keys
    over_ssh = [one.words[0] == "ssh" for one in checks]
    assert all(over_ssh) == (settings.sink.to == "remote")


@pytest.mark.parametrize(
    ("kind", "settings", "found"),
    [
        (ZFS_REPLICATE, replicate(), [f"the snapshot {own(2)}", f"the dataset {RECEIVED}"]),
        (
            ZFS_REPLICATE,
            replicate(sink=FAR),
            [f"the snapshot {own(2)}", f"the dataset {RECEIVED} on root@backup"],
        ),
        (ZFS_REPLICATE, replicate(dataset="tank/plimsoll-nightly/x"), [f"the dataset {RECEIVED}"]),
        (ZFS_REPLICATE, replicate(dataset="@clone"), [f"the dataset {RECEIVED}"]),
        (
            ZFS_SEND,
            settings_of({"kind": "zfs-send", "dataset": "tank/site"}),
            [f"the snapshot {own(2)}"],
        ),
        (ZFS_SEND, settings_of({"kind": "zfs-send"}), []),
    ],
)
def test_what_a_kill_left_is_found_on_both_ends_and_removed(
    kind: Any, settings: Any, found: list[str]
) -> None:
    pools = Pools("tank/site@daily", own(2), own(2, RECEIVED), "tank/site@plimsoll-other-000001")

    async def look_and_remove() -> list[str]:
        machine = ScriptedMachine(pools.answer)
        remains = await kind.find(machine, settings, "nightly", "ssd")
        for step in (step for one in remains for step in one.remove):
            assert isinstance(step, Command)
            await machine.run(step.words)
        assert await kind.find(machine, settings, "nightly", "ssd") == []
        return [one.what for one in remains]

    assert asyncio.run(look_and_remove()) == found
    assert {"tank/site@daily", "tank/site@plimsoll-other-000001"} <= set(pools.snapshots)


def test_a_host_that_cannot_be_asked_is_not_clean() -> None:
    machine = ScriptedMachine(lambda command: (255, "", "ssh: connect to host backup port 22: refused"))
    remains = asyncio.run(ZFS_REPLICATE.find(machine, replicate(sink=FAR), "nightly", "ssd"))
    assert [one.what for one in remains] == [
        f"the dataset {RECEIVED} on root@backup, or not: it cannot be asked"
    ]
    step = remains[0].remove[0]
    assert isinstance(step, Command)
    with pytest.raises(MachineError, match="255"):
        asyncio.run(machine.run(step.words))
