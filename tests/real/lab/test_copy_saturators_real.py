"""Real rsync, a real MariaDB and real commands keep disks busy: stopped and killed, they leave nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.saturators import aim_saturator, find_saturator_kind, make_saturator
from plimsoll.lab.saturators.saturator import Runner
from plimsoll.lab.steps.runner import StepRunner
from tests.support.disks import LABEL, clear, emulated, left_of_tests, need_disks, run
from tests.support.forum import MariaDB
from tests.support.labs import plimsoll, write_lab
from tests.support.programs import awaited, need
from tests.support.saturators import (
    BY,
    FILE_BYTES,
    LAB,
    NOWHERE,
    SETTINGS,
    command_lines,
    drive,
    fill,
    is_whole_story,
    kill_when,
    until_bytes,
)
from tests.support.servers import receiving

SECRET = "not on any command line"  # noqa: S105 of a server on loopback


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with a large file, small ones, and a name that a shell would trip over."""
    folder = tmp_path / "the site"
    (folder / "mysql").mkdir(parents=True)
    fill(folder / "mysql" / "ibdata1", FILE_BYTES)
    for number in range(50):
        (folder / f"{number} 'x'; $(reboot)").write_text("small")
    (folder / "link").symlink_to("/etc/passwd")
    return folder


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    folder = tmp_path / "back up"
    folder.mkdir()
    return folder


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    yield from receiving(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDB]:
    need("mariadb-dump")
    server = MariaDB(tmp_path_factory.mktemp("db"))
    server.sql("CREATE TABLE post (id INT AUTO_INCREMENT PRIMARY KEY, text LONGTEXT)")
    server.sql("INSERT INTO post (text) SELECT REPEAT('a post ', 20000) FROM seq_1_to_100")
    server.sql(
        f"CREATE USER backup@localhost IDENTIFIED BY '{SECRET}'; GRANT ALL ON forum.* TO backup@localhost"
    )
    yield server
    server.stop()


def option_file(folder: Path, database: MariaDB, password: str = SECRET) -> Path:
    file = folder / "lab.cnf"
    file.write_text(f'[client]\nuser=backup\npassword="{password}"\nsocket={database.socket}\n')
    file.chmod(0o600)
    return file


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "all files, again and again"),
        ({"mode": "incremental"}, "those that changed"),
        pytest.param({"rate_bytes_per_s": "8M"}, "no faster than asked", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("to", ["local", "remote"])
def test_rsync(
    to: str, settings: dict[str, Any], says: str, site: Path, backup: Path, host: dict[str, Any]
) -> None:
    need("rsync")
    sink = (host if to == "remote" else {"to": "local"}) | {"into": str(backup)}
    said = SETTINGS.validate_python({"kind": "rsync", "folder": str(site), "sink": sink, **settings})
    events: list[dict[str, Any]] = []
    copy = backup / f"plimsoll-{BY}.rsync"
    (backup / "thesis.txt").touch()

    async def work() -> None:
        await until_bytes(events, FILE_BYTES * 9 // 10)
        await awaited("a file", lambda: (copy / "mysql" / "ibdata1").exists())
        assert (copy / "link").is_symlink()
        assert (copy / "0 'x'; $(reboot)").read_text() == "small"
        if settings.get("mode") == "incremental":
            fill(site / "later", FILE_BYTES)
        await until_bytes(events, FILE_BYTES * 3 // 2)

    run(lambda machine: drive(machine, said, events, work))
    is_whole_story(events, "rsync")
    assert [path.name for path in backup.iterdir()] == ["thesis.txt"], "somebody else's stays"
    if "rate_bytes_per_s" in settings:
        assert max(event.get("bytes_per_s", 0) for event in events) < 3 * (8 << 20)


def test_a_disk_is_copied_with_the_clone_on_it(work: Path, backup: Path) -> None:
    need("rsync")
    need_disks("xfs")
    disk = emulated("xfs", work)
    events: list[dict[str, Any]] = []

    async def life(machine: LocalMachine) -> None:
        await StepRunner(machine).do(disk.create())
        fill(Path(disk.place().folder) / "file", FILE_BYTES)
        await StepRunner(machine).do(disk.limit())
        settings = SETTINGS.validate_python({"kind": "rsync", "sink": {"to": "local", "into": str(backup)}})
        pointed = aim_saturator(settings, DataLocation(disk.place().folder))
        await drive(machine, pointed, events, lambda: until_bytes(events, FILE_BYTES * 3 // 2))
        await clear(machine, disk.find)

    run(life)
    is_whole_story(events, "rsync")
    assert list(backup.iterdir()) == []
    assert left_of_tests(work) == []


def dump_of(database: MariaDB, folder: Path, sink: dict[str, Any], **settings: Any) -> Any:
    file = str(option_file(folder, database))
    return SETTINGS.validate_python(
        {"kind": "database-dump", "defaults_file": file, "databases": ["forum"], "sink": sink, **settings}
    )


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "in one transaction"),
        pytest.param({"lock_tables": True}, "with the tables locked", marks=pytest.mark.slow),
        pytest.param({"rate_bytes_per_s": "4M"}, "no faster than asked", marks=pytest.mark.slow),
        ({"program": ["nice", "mysqldump"]}, "by its older name, with words before it"),
    ],
)
@pytest.mark.parametrize("to", ["folder", pytest.param("null", marks=pytest.mark.slow)])
def test_a_database_is_dumped(
    to: str, settings: dict[str, Any], says: str, database: MariaDB, tmp_path: Path, backup: Path
) -> None:
    sink = {"to": "folder", "folder": str(backup)} if to == "folder" else {"to": "null"}
    said = dump_of(database, tmp_path, sink, **settings)
    events: list[dict[str, Any]] = []
    dump = backup / f"plimsoll-{BY}.dump.sql"

    async def work() -> None:
        if to == "folder":
            await awaited("a dump", lambda: dump.exists() and dump.stat().st_size > 100_000)
            assert b"CREATE TABLE `post`" in dump.read_bytes()[:100_000]
            assert dump.stat().st_mode & 0o777 == 0o600, "nobody else reads a dump"
        assert not [line for line in command_lines() if SECRET in line]
        await until_bytes(events, FILE_BYTES)

    run(lambda machine: drive(machine, said, events, work))
    is_whole_story(events, "database-dump")
    assert list(backup.iterdir()) == []
    if "rate_bytes_per_s" in settings:
        assert max(event.get("bytes_per_s", 0) for event in events) < 3 * (4 << 20)


@pytest.mark.parametrize(
    ("password", "names", "problem"),
    [("wrong", ["forum"], "Access denied"), (SECRET, ["forum", "gone"], "it finds 1 of these 2 databases")],
)
def test_what_keeps_a_database_from_being_dumped_is_said_before(
    password: str, names: list[str], problem: str, database: MariaDB, tmp_path: Path
) -> None:
    settings = dump_of(database, tmp_path, {"to": "null"}).model_copy(
        update={"databases": tuple(names), "retries": 0}
    )
    option_file(tmp_path, database, password)

    async def life(machine: LocalMachine) -> None:
        one = find_saturator_kind(settings).checks(settings)[-1]
        answer = await machine.run(one.words, check=False)
        assert answer.status == 1 and problem in answer.err
        busy = make_saturator(machine, settings, BY, lambda event: None)
        assert isinstance(busy, Runner)
        await busy.start()
        await awaited("it fails", lambda: busy.failure)
        await busy.stop()
        assert (
            busy.failure
            and SECRET not in busy.failure
            and "database-dump ended with status 1" in busy.failure
        )

    run(life)


def work_of(kind: str, site: Path, backup: Path, database: MariaDB, tmp_path: Path) -> tuple[Any, str]:
    """The saturator of this kind, as JSON, and a file or folder that it makes."""
    into = {"to": "local", "into": str(backup)}
    if kind == "rsync":
        said = {"kind": kind, "folder": str(site), "sink": into, "rate_bytes_per_s": "2M"}
        return SETTINGS.validate_python(said), f"plimsoll-{BY}.rsync"
    if kind == "database-dump":
        sink = {"to": "folder", "folder": str(backup)}
        return dump_of(database, tmp_path, sink, rate_bytes_per_s="1M"), f"plimsoll-{BY}.dump.sql"
    file = f"{backup}/@own.zeros"
    start = ["dd", "if=/dev/zero", f"of={file}", "bs=64K", "count=100000", "status=progress", "oflag=dsync"]
    said = {
        "kind": kind,
        "start": start,
        "progress": "^(?P<bytes>[0-9]+) bytes",
        "cleanup": ["rm", "-f", "--", file],
    }
    return SETTINGS.validate_python(said), f"plimsoll-{BY}.zeros"


SLOW_KINDS = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("rsync", "database-dump")]


def test_a_command_of_ones_own(site: Path, backup: Path, database: MariaDB, tmp_path: Path) -> None:
    settings, file = work_of("command", site, backup, database, tmp_path)
    events: list[dict[str, Any]] = []

    async def work() -> None:
        await until_bytes(events, 1 << 20)
        assert (backup / file).exists()

    run(lambda machine: drive(machine, settings, events, work))
    is_whole_story(events, "command")
    assert list(backup.iterdir()) == []
    assert not list(Path("/var/tmp").glob(f"plimsoll-{BY}*"))


@pytest.mark.parametrize("kind", [*SLOW_KINDS, "command"])
def test_lab_clean_removes_what_a_kill_left(
    kind: str, site: Path, backup: Path, database: MariaDB, tmp_path: Path
) -> None:
    """By the command; what was killed has ended, its programs too."""
    need("rsync")
    settings, file = work_of(kind, site, backup, database, tmp_path)
    (backup / "thesis.txt").touch()
    keys = settings.model_dump_json(exclude={"kind"}, exclude_defaults=True)[1:-1]
    lab_yml = write_lab(tmp_path, LABEL.experiment, LAB, kind=kind, keys=keys)

    def cleaned(*words: str) -> str:
        done = plimsoll("clean", lab_yml, *words)
        return done.stdout + done.stderr

    def at_work() -> bool:
        return any(str(backup) in line for line in command_lines())

    async def life(machine: LocalMachine) -> None:
        there = backup / file
        await kill_when(settings.model_dump_json(), NOWHERE, there.exists)
        await awaited("nobody works", lambda: not at_work())
        assert there.exists()
        assert str(backup) in cleaned("--dry-run") or "command left" in cleaned("--dry-run")
        assert there.exists(), "only looked"
        cleaned()
        assert [path.name for path in backup.iterdir()] == ["thesis.txt"]
        assert not list(Path("/var/tmp").glob(f"plimsoll-{BY}*"))
        assert "nothing" in cleaned("--dry-run").lower()

    run(life)


@pytest.mark.parametrize("kind", [*SLOW_KINDS, "command"])
def test_what_a_kill_left_goes_when_it_begins_again(
    kind: str, site: Path, backup: Path, database: MariaDB, tmp_path: Path
) -> None:
    need("rsync")
    settings, file = work_of(kind, site, backup, database, tmp_path)
    events: list[dict[str, Any]] = []

    async def life(machine: LocalMachine) -> None:
        await kill_when(settings.model_dump_json(), NOWHERE, (backup / file).exists)
        await drive(machine, settings, events, lambda: until_bytes(events, 1 << 20))

    run(life)
    is_whole_story(events, kind)
    assert list(backup.iterdir()) == []


def test_a_copy_on_a_host_is_found_there(site: Path, backup: Path, host: dict[str, Any]) -> None:
    need("rsync")
    said = {
        "kind": "rsync",
        "folder": str(site),
        "sink": host | {"into": str(backup)},
        "rate_bytes_per_s": "2M",
    }
    settings = SETTINGS.validate_python(said)
    copy = backup / f"plimsoll-{BY}.rsync"

    async def life(machine: LocalMachine) -> None:
        await kill_when(settings.model_dump_json(), NOWHERE, copy.exists)
        found = await find_saturator_kind(settings).find(machine, settings, BY, "zfs")
        assert [one.what for one in found] == [f"{copy} on root@127.0.0.1"]
        for one in found * 2:
            await StepRunner(machine).do(one.remove)
        assert list(backup.iterdir()) == []

    run(life)
