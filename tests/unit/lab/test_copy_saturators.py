"""`rsync`, `database-dump` and `command`: settings, command lines, progress, and what is found of them."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Line, LocalMachine
from plimsoll.lab.saturators import AnySaturator, aim_saturator, database_dump, make_saturator, rsync
from plimsoll.lab.saturators.saturator import LineProgress, amount_bytes
from plimsoll.lab.saturators.sinks import find_left, removal_command
from plimsoll.lab.steps.runner import StepRunner
from tests.support.scripted import ScriptedMachine, ScriptedProcess

SETTINGS: TypeAdapter[Any] = TypeAdapter(AnySaturator)
LOCAL = {"kind": "rsync", "folder": "/srv/site", "sink": {"to": "local", "into": "/backup"}}
REMOTE = LOCAL | {"sink": {"to": "remote", "host": "root@backup", "port": 2222, "into": "/b b"}}
COMMAND = {"kind": "command", "start": ["work"], "progress": "^(?P<bytes>[0-9]+) bytes"}
BY = "move--ssd"
HOME = DataLocation(folder="/srv/lab")


def settings_of(given_: dict[str, Any]) -> Any:
    return SETTINGS.validate_python(given_)


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
    ("given_", "says"),
    [
        (LOCAL | {"sink": {"to": "null"}}, "nothing to copy to"),
        (LOCAL | {"sink": {"to": "local", "into": "backup"}}, "a relative path"),
        (LOCAL | {"sink": {"to": "local", "into": "/srv/site"}}, "a copy in itself"),
        (LOCAL | {"sink": {"to": "local", "into": "/srv/site/b"}}, "a copy in what is copied"),
        (LOCAL | {"folder": "/"}, "everything, with the copy"),
        (LOCAL | {"rate_bytes_per_s": 100}, "less than rsync can limit to"),
        (LOCAL | {"folder": "/srv/../etc"}, "a way up"),
        ({"kind": "database-dump", "password": "x"}, "a password in lab.yml"),
        ({"kind": "database-dump", "defaults_file": "lab.cnf"}, "a relative path"),
        ({"kind": "database-dump", "databases": ["a'; DROP"]}, "no name"),
        ({"kind": "database-dump", "databases": ["-e"]}, "an option"),
        ({"kind": "database-dump", "program": []}, "no program"),
        ({"kind": "database-dump", "sink": {"to": "remote", "host": "h", "into": "/x"}}, "no such sink"),
        (COMMAND | {"start": []}, "no command"),
        (COMMAND | {"start": "dd if=/dev/zero"}, "a line for a shell"),
        (COMMAND | {"start": ["a\nb"]}, "a line end"),
        (COMMAND | {"cleanup": ["rm", "${HOME}"]}, "what would read as a reference"),
        (COMMAND | {"progress": "("}, "no regular expression"),
        (COMMAND | {"progress": "([0-9]+)"}, "no group called bytes"),
        (COMMAND | {"counts": "up"}, "an unknown way to count"),
        ({"kind": "command", "start": ["a"]}, "no word of its progress"),
    ],
)
def test_settings_that_are_refused(given_: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError):
        settings_of(given_)


@pytest.mark.parametrize("given_", [LOCAL, REMOTE, {"kind": "database-dump"}, COMMAND])
def test_settings_outlive_an_experiment_that_is_resumed(given_: dict[str, Any]) -> None:
    settings = settings_of(given_)
    assert settings_of(settings.model_dump(mode="json")) == settings


def test_a_copy_beside_a_folder_whose_name_begins_alike_is_none_in_itself() -> None:
    assert settings_of(LOCAL | {"sink": {"to": "local", "into": "/srv/site2"}})
    clone = settings_of({"kind": "rsync", "sink": {"to": "local", "into": "/srv/lab/b"}})
    with pytest.raises(ValueError, match="lies in what is copied, /srv/lab"):
        aim_saturator(clone, HOME)
    assert aim_saturator(clone, DataLocation(folder="/srv/la")).folder == "/srv/la"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given_", "key"),
    [
        ({"kind": "rsync", "sink": {"to": "local", "into": "/b"}}, "folder: is missing"),
        ({"kind": "database-dump"}, r"sink\.folder: is missing"),
    ],
)
def test_what_is_left_open_must_be_known(given_: dict[str, Any], key: str) -> None:
    with pytest.raises(ValueError, match=key):
        aim_saturator(settings_of(given_), DataLocation())


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
    settings = settings_of(LOCAL | {"sink": {"to": "local", "into": str(tmp_path)}})

    async def cleared() -> list[str]:
        machine = LocalMachine()
        found = await rsync.RSYNC.find(machine, settings, BY, "ssd")
        for one in found * 2:  # twice does no harm
            await StepRunner(machine).do(one.remove)
        assert await rsync.RSYNC.find(machine, settings, BY, "ssd") == []
        await machine.close()
        return [one.what for one in found]

    assert asyncio.run(cleared()) == [f"{tmp_path}/plimsoll-{BY}.rsync"]
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


def test_more_time_to_end_for_what_needs_it() -> None:
    graces: list[float] = []

    class Patient(ScriptedProcess):
        async def stop(self, grace_s: float = 5.0) -> int:
            graces.append(grace_s)
            return await super().stop()

    async def drive(given_: dict[str, Any]) -> None:
        machine = ScriptedMachine(begun=lambda command: Patient([], None))
        one = make_saturator(machine, settings_of(given_), BY, lambda event: None)
        await one.start()
        while not machine.processes:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        await one.stop()

    asyncio.run(drive(LOCAL))
    asyncio.run(drive({"kind": "backup", "guest": 9001}))
    assert graces == [5.0, 60.0]


def test_one_obstacle_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text('#!/bin/sh\nexit "$STATUS"\n')
    (tmp_path / "ssh").chmod(0o755)
    checks = rsync.RSYNC.checks(settings_of(REMOTE | {"folder": "@clone"}))
    for status, wrong in ((255, 1), (127, 3), (0, 0)):
        environment = {"PATH": f"{tmp_path}:/bin:/usr/bin", "STATUS": str(status)}
        done = [subprocess.run(one.words, env=environment, check=False).returncode for one in checks]
        assert sum(map(bool, done)) == wrong
