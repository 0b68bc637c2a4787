"""`fio`, `rsync`, `database-dump` and `command`: what they run and read, and what is found of them."""

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Line, LocalMachine
from plimsoll.lab.saturators import (
    AnySaturator,
    aim_saturator,
    any_command,
    database_dump,
    fio,
    rsync,
)
from plimsoll.lab.saturators.fio import Fio
from plimsoll.lab.saturators.saturator import LineProgress, amount_bytes, fill_words
from plimsoll.lab.saturators.sinks import find_left, removal_command
from tests.support.disks import remove_leftovers
from tests.support.programs import ROOT, awaited
from tests.support.scripted import ScriptedMachine, at_work

settings_of = TypeAdapter[Any](AnySaturator).validate_python
FIO = {"kind": "fio", "folder": "/srv/disk", "jobs": 2}
LOCAL = {"kind": "rsync", "folder": "/srv/site", "sink": {"to": "local", "into": "/backup"}}
REMOTE = LOCAL | {"sink": {"to": "remote", "host": "root@backup", "port": 2222, "into": "/b b"}}
COMMAND = {"kind": "command", "start": ["work"], "progress": "^(?P<bytes>[0-9]+) bytes"}
BY = "move--ssd"
HOME = DataLocation(folder="/srv/lab")


def test_the_commands_of_fio() -> None:
    command = fio.command(settings_of(FIO | {"iodepth": 8, "rate_bytes_per_s": 9}), BY)
    assert {"--directory=/srv/disk", "--ioengine=libaio", "--rate=9", "--status-interval=1"} <= set(command)
    files = [f"/srv/disk/plimsoll-{BY}.{job}" for job in (0, 1)]
    assert fio.remove(settings_of(FIO), BY) == ["rm", "-f", "--", *files]


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


def test_what_a_killed_fio_left_is_found_and_removed(tmp_path: Path) -> None:
    for end in (".0", ".2", ".9", "2.0"):
        (tmp_path / f"plimsoll-{BY}{end}").write_text("")
    own = [f"{tmp_path}/plimsoll-{BY}.0, {tmp_path}/plimsoll-{BY}.2"]
    assert remove_leftovers(settings_of(FIO | {"folder": str(tmp_path), "jobs": 3}), BY) == own
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"plimsoll-{BY}.9", f"plimsoll-{BY}2.0"]


def test_fio_of_a_clone_whose_folder_nobody_knows_left_nothing_to_find() -> None:
    machine = ScriptedMachine(lambda command: (0, "/x\n", ""))
    assert asyncio.run(fio.FIO.find(machine, Fio(kind="fio"), BY, "ssd")) == []


@pytest.mark.parametrize(
    ("number", "unit", "bytes_"),
    [
        ("0", None, 0),
        ("1,234,567", None, 1_234_567),
        ("12", "bytes", 12),
        ("4.2", "GiB", round(4.2 * (1 << 30))),
        ("4", "K", 4096),
        ("4", "k", 4096),
        ("1.5", "MB", 1_500_000),
        ("2", " kB ", 2000),
        ("1", "MiBit", None),
        ("x", None, None),
        ("-1", None, None),
        ("nan", None, None),
        ("inf", None, None),
        ("9" * 40, None, None),
        ("9" * 18, "P", None),
    ],
)
def test_amounts(number: str, unit: str | None, bytes_: int | None) -> None:
    assert amount_bytes(number, unit) == bytes_


@given(st.text(), st.none() | st.text())
def test_any_amount_is_read_or_left(number: str, unit: str | None) -> None:
    found = amount_bytes(number, unit)
    assert found is None or 0 <= found < 1 << 62


@pytest.mark.parametrize(
    ("line", "bytes_", "says"),
    [
        ("          32768   0%    0.00kB/s    0:00:00  ", 32768, "a line of rsync 3.5.0"),
        ("       60000000 100%   19.38MB/s    0:00:02 (xfr#1, to-chk=0/2)", 60_000_000, "the last one"),
        ("     22,183,936  36%   19.45MB/s    0:00:01", None, "with separators: not what was asked for"),
        ("sending incremental file list", None, "another line"),
        ("a file called 12 13% done", None, "a name that looks alike"),
    ],
)
def test_progress_of_rsync(line: str, bytes_: int | None, says: str) -> None:
    assert LineProgress(rsync._PROGRESS).read(Line("out", line, 0)) == bytes_, says


def test_the_commands_of_rsync() -> None:
    words = rsync.command(settings_of(LOCAL | {"rate_bytes_per_s": "20M"}), BY)
    assert words[-3:] == ["--", "/srv/site/", f"/backup/plimsoll-{BY}.rsync/"]
    assert {"--ignore-times", "--whole-file", "--bwlimit=20480"} <= set(words)
    words = rsync.command(settings_of(REMOTE | {"mode": "incremental"}), BY)
    assert words[-5] == "-e"
    assert words[-4].startswith("ssh -o BatchMode=yes -o StrictHostKeyChecking=yes")
    assert words[-4].endswith("-p 2222")
    assert words[-1] == f"root@backup:/b b/plimsoll-{BY}.rsync/"
    assert not {"--ignore-times", "--whole-file"} & set(words), "only what changed"
    assert rsync.remove_command(settings_of(REMOTE), BY)[-2:][0] == "root@backup"


def test_the_commands_of_a_dump() -> None:
    given_: dict[str, Any] = {"kind": "database-dump"}
    named: Any = aim_saturator(
        settings_of(given_ | {"defaults_file": "/root/lab.cnf", "databases": ["wordpress"]}), HOME
    )
    words = database_dump.command(named, BY)
    assert f"--to=/srv/lab/plimsoll-{BY}.dump.sql" in words
    dump = words[words.index("--") + 1 :]
    assert dump == [
        "mariadb-dump",
        "--defaults-file=/root/lab.cnf",
        "--single-transaction",
        "--quick",
        "--no-tablespaces",
        "--databases",
        "wordpress",
    ]
    given_ |= {"container": "@own-db", "lock_tables": True, "sink": {"to": "null"}}
    words = database_dump.command(settings_of(given_), BY)
    assert not [word for word in words if word.startswith("--to=")]
    dump = words[words.index("--") + 1 :]
    assert dump[-6:-4] == [f"plimsoll-{BY}-db", "mariadb-dump"]
    assert dump[-4:] == ["--lock-tables", "--quick", "--no-tablespaces", "--all-databases"]


@pytest.mark.parametrize(
    ("said", "status", "problem", "says"),
    [
        ("1 5000", 0, "", "all is there"),
        ("0 0", 0, "it finds 0 of these 1 databases", "no such database"),
        (f"1 {10**18}", 0, "make room", "no room"),
        (
            "ERROR 1045 (28000): Access denied for user 'x'@'localhost'",
            1,
            "Access denied",
            "a wrong password",
        ),
        (
            "ERROR 2002 (HY000): Can't connect to local server",
            1,
            "",
            "a server that only runs with the clone",
        ),
    ],
)
def test_lab_check_asks_the_database(said: str, status: int, problem: str, says: str, tmp_path: Path) -> None:
    program = tmp_path / "mariadb"
    program.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\necho "{said}"\nexit {status}\n')
    for file in (program, tmp_path / "mariadb-dump"):
        file.touch()
        file.chmod(0o755)
    sink = {"to": "folder", "folder": str(tmp_path)}
    given_ = {"kind": "database-dump", "program": [f"{program}-dump"], "databases": ["forum"], "sink": sink}
    checks = database_dump.DATABASE_DUMP.checks(settings_of(given_))
    done = [subprocess.run(one.words, capture_output=True, text=True, check=False) for one in checks]
    assert [one.returncode for one in done] == [0, 0, 1 if problem else 0], says
    assert problem in done[-1].stderr
    assert "schema_name IN ('forum')" in (tmp_path / "asked").read_text()


def test_a_client_elsewhere_is_asked_there() -> None:
    def asked(**given_: Any) -> list[tuple[str, ...]]:
        sink = {"to": "null"}
        settings = settings_of(
            {"kind": "database-dump", "sink": sink, "defaults_file": "/root/x.cnf", **given_}
        )
        return [one.words for one in database_dump.DATABASE_DUMP.checks(settings)]

    program, query = asked(program=["ssh", "db", "mysqldump"])
    assert program[-1] == "ssh"
    assert query[6:10] == ("ssh", "db", "mysql", "--defaults-file=/root/x.cnf"), "its option file is there"
    words = asked(container="db")
    assert [one[-1] for one in words[:2]] == ["docker", "nsenter"]
    assert words[2][10:13] == ("db", "mariadb", "--defaults-file=/root/x.cnf")
    assert len(asked(container="@own-db")) == 2, "a container that only runs with the clone"


def test_room_for_a_copy(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 100_000)
    fits = next(
        one
        for one in rsync.RSYNC.checks(settings_of(LOCAL | {"folder": str(tmp_path)}))
        if "fit" in one.problem
    )
    for free, status in ((10_000, 1), (10_000_000, 0)):
        words = [*fits.words[:5], "printf", f"head\\na b c {free} d\\n"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert ("make room" in done.stderr) == bool(status)


def test_only_what_bears_the_name_is_found_and_removed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "file").touch()
    (tmp_path / f"plimsoll-{BY}.rsync").mkdir()
    (tmp_path / f"plimsoll-{BY}.rsync" / "link").symlink_to(theirs)
    (tmp_path / f"plimsoll-{BY}").mkdir()
    into = {"sink": {"to": "local", "into": str(tmp_path)}}
    assert remove_leftovers(settings_of(LOCAL | into), BY) == [f"{tmp_path}/plimsoll-{BY}.rsync"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"plimsoll-{BY}", "theirs"]
    assert (theirs / "file").exists()


def test_a_link_of_that_name_goes_without_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    subprocess.run(removal_command(str(tmp_path / "link")), check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_a_host_that_cannot_be_asked_counts_as_not_clean() -> None:
    sink = settings_of(REMOTE).sink
    for status, found in ((255, 1), (1, 0), (0, 1)):
        machine = ScriptedMachine(lambda command, status=status: (status, "", ""))  # type: ignore[misc]
        assert len(asyncio.run(find_left(machine, "/b/x", "ssd", sink))) == found
    assert asyncio.run(find_left(ScriptedMachine(lambda command: (255, "", "")), "/b/x", "ssd")) == []


def test_rsync_that_lost_files_on_its_way_did_not_fail(tmp_path: Path) -> None:
    (tmp_path / "rsync").write_text('#!/bin/sh\nexit "$STATUS"\n')
    (tmp_path / "rsync").chmod(0o755)
    for status, kept in ((24, 0), (0, 0), (23, 23), (12, 12)):
        environment = {"PATH": f"{tmp_path}:/bin:/usr/bin", "STATUS": str(status)}
        done = subprocess.run(rsync.command(settings_of(LOCAL), BY), env=environment, check=False)
        assert done.returncode == kept


def test_one_obstacle_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text('#!/bin/sh\nexit "$STATUS"\n')
    (tmp_path / "ssh").chmod(0o755)
    checks = rsync.RSYNC.checks(settings_of(REMOTE | {"folder": "@clone"}))
    for status, wrong in ((255, 1), (127, 3), (0, 0)):
        environment = {"PATH": f"{tmp_path}:/bin:/usr/bin", "STATUS": str(status)}
        done = [subprocess.run(one.words, env=environment, check=False).returncode for one in checks]
        assert sum(map(bool, done)) == wrong


def test_a_command_gets_its_names() -> None:
    assert fill_words(["@own", "of=@clone/@own.x", "a@own", "@@own", "@owner", "@clone"], "l", "/d") == [
        "plimsoll-l",
        "of=/d/plimsoll-l.x",
        "a@own",
        "@@own",
        "@owner",
        "/d",
    ]
    given_ = COMMAND | {"start": ["dd", "of=@clone/@own"], "cleanup": ["rm", "-f", "--", "@clone/@own"]}
    settings = aim_saturator(settings_of(given_), HOME)
    assert any_command.command(settings, "l") == ["dd", "of=/srv/lab/plimsoll-l"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("form", "counts", "lines", "said"),
    [
        (r"^(?P<bytes>\d+) bytes", "total", ["5 bytes", "x", "9 bytes (9 B) copied"], [5, None, 9]),
        (r"wrote (?P<bytes>\d+)", "each", ["a: wrote 5", "b: wrote 7", "c"], [5, 12, None]),
        (r"(?P<bytes>[\d.]+) (?P<unit>\w+) done", "total", ["1.5 KiB done", "2 qB done"], [1536, None]),
        (r"(?P<bytes>\d+)?%", "total", ["%"], [None]),
    ],
)
def test_a_line_format(form: str, counts: str, lines: list[str], said: list[int | None]) -> None:
    figures = LineProgress(re.compile(form), counts == "each")
    assert [figures.read(Line("err", line, 0)) for line in lines] == said


def test_a_command_is_started_again_and_cleaned_up_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.lab.saturators.any_command._MARKS", str(tmp_path))
    work = 'echo x >>"$0"; printf "1000 bytes\\r2000 bytes\\n" >&2'
    own = f"{tmp_path}/@own.log"
    given_ = {"start": ["sh", "-c", work, own], "cleanup": ["rm", "-f", "--", own], "interval_s": 0.1}
    settings = settings_of(COMMAND | given_)
    events: list[dict[str, Any]] = []
    log, marked = tmp_path / f"plimsoll-{BY}.log", tmp_path / f"plimsoll-{BY}.command"

    async def drive() -> None:
        machine = LocalMachine()
        log.write_text("of a crash\n")
        async with at_work(machine, settings, BY, events):
            await awaited("three rounds", lambda: log.exists() and log.read_text().count("x") >= 3)
            assert "crash" not in log.read_text()
            assert marked.is_dir()
            found = await any_command.COMMAND.find(machine, settings, BY, "ssd")
            assert [one.what for one in found] == [f"what the saturator's command left, marked by {marked}"]
        assert await any_command.COMMAND.find(machine, settings, BY, "ssd") == []
        await machine.close()

    asyncio.run(drive())
    marked.mkdir()
    log.touch()
    assert len(remove_leftovers(settings, BY)) == 1
    assert list(tmp_path.iterdir()) == []
    assert events[-1]["bytes"] >= 3 * 2000


def test_a_clean_up_that_fails_is_tried_again_by_lab_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.lab.saturators.any_command._MARKS", str(tmp_path))
    settings = settings_of(COMMAND | {"cleanup": ["sh", "-c", f"test ! -e {tmp_path}/stuck"]})

    async def drive() -> list[Any]:
        machine = LocalMachine()
        with pytest.raises(MachineError, match="ended with status 1"):
            async with at_work(machine, settings, BY):
                (tmp_path / "stuck").touch()
        found = await any_command.COMMAND.find(machine, settings, BY, "ssd")
        await machine.close()
        return found

    assert len(asyncio.run(drive())) == 1
