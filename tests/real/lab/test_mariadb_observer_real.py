"""The mariadb observer on a real server: with performance_schema and without the right to read it."""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Iterator

import pytest

from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.observers import WithOwnKeys, find_observer
from plimsoll.lab.observers.mariadb import MariadbSettings, MariadbWatch
from tests.support.forum import MariaDB
from tests.support.programs import LONGEST_S, wait_for


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDB]:
    # A socket's path has 107 characters at most.
    found = MariaDB(tmp_path_factory.mktemp("db"), "--performance-schema=ON", "--log-bin=b")
    yield found
    found.stop()


def account(server: MariaDB, name: str) -> MariadbSettings:
    """An account that may not read everything."""
    server.sql(f"CREATE USER {name}@localhost IDENTIFIED BY 'secret'")
    file = server.socket.with_name(f"{name}.cnf")
    file.write_text(f"[client]\nuser={name}\npassword=secret\nsocket={server.socket}\n")
    file.chmod(0o600)
    return MariadbSettings(defaults_file=str(file))


WITHOUT_RIGHTS = (
    "mariadb: may not read performance_schema: GRANT SELECT ON performance_schema.* TO the account"
)
Figures = dict[str, float | None]
_MOST_SAMPLES = 10 * LONGEST_S  # a tenth of a second each


@contextlib.asynccontextmanager
async def _watching(settings: MariadbSettings, said: list[str]) -> AsyncIterator[MariadbWatch]:
    machine = LocalMachine()
    options = WithOwnKeys.model_validate({"observe": ("mariadb",), "mariadb": settings})
    watch = await find_observer("mariadb").prepare(machine, options, said.append)
    assert isinstance(watch, MariadbWatch)
    await watch.start(said.append)
    try:
        yield watch
    finally:
        await watch.stop()
        await machine.close()


async def _next(watch: MariadbWatch) -> Figures:
    names = [column.name for column in watch.columns]
    for _ in range(_MOST_SAMPLES):
        await asyncio.sleep(0.1)
        figures = dict(zip(names, watch.sample(), strict=True))
        if figures["threads_running_count"] is not None:
            return figures
    raise AssertionError("it never answered")


def _seen(server: MariaDB, settings: MariadbSettings, meanwhile: str) -> tuple[Figures, list[str]]:
    """The most of each column in the two rounds since some SQL began, and what was said."""
    said = list[str]()

    async def run() -> list[Figures]:
        async with _watching(settings, said) as watch:
            await _next(watch)
            server.sql(meanwhile)
            return [await _next(watch) for _ in range(2)]

    first, second = asyncio.run(run())
    known = {name: [each[name] for each in (first, second) if each[name] is not None] for name in first}
    return {
        name: max((value for value in values if value is not None), default=None)
        for name, values in known.items()
    }, said


WORK = "CREATE OR REPLACE TABLE t (v INT); " + "INSERT INTO t VALUES (1); " * 20


def test_an_account_without_rights_sees_all_but_the_files(server: MariaDB) -> None:
    figures, said = _seen(server, account(server, "plain"), WORK)
    assert figures["queries_per_s"]
    assert figures["log_writes_per_s"]
    assert figures["log_write_requests_per_s"]
    assert figures["fsyncs_per_s"]
    assert figures["pending_fsyncs_count"] is not None
    assert figures["row_lock_current_waits_count"] == 0
    assert figures["checkpoint_percent"] is not None
    assert figures["binlog_wait_ms"] is None
    assert said == [WITHOUT_RIGHTS]


def test_one_with_them_sees_what_the_files_took(server: MariaDB) -> None:
    settings = account(server, "granted")
    server.sql("GRANT SELECT ON performance_schema.* TO granted@localhost")
    figures, said = _seen(server, settings, WORK)
    assert figures["binlog_wait_ms"]
    assert figures["data_file_wait_ms"]
    assert said == []


def test_a_server_that_goes_is_said_once_and_watched_again_when_it_is_back(server: MariaDB) -> None:
    settings, said = account(server, "patient"), list[str]()

    async def run() -> list[float | None]:
        async with _watching(settings, said) as watch:
            await _next(watch)
            await asyncio.to_thread(server.stop)
            while not any("ERROR 2002" in each for each in said):
                await asyncio.sleep(0.1)
            watch.sample()  # of before
            await asyncio.sleep(1.5)
            gone = watch.sample()
            await asyncio.to_thread(server.start)
            assert (await _next(watch))["queries_per_s"] is None, "its counters began at 0"
            assert (await _next(watch))["queries_per_s"]
            return gone

    assert set(asyncio.run(run())) == {None}
    assert len([each for each in said if "ERROR" in each]) == len(set(said) - {WITHOUT_RIGHTS}), said


def test_a_client_that_was_ended_leaves_no_connection(server: MariaDB) -> None:
    settings, said = account(server, "gone"), list[str]()

    async def run() -> None:
        async with _watching(settings, said) as watch:
            await _next(watch)
            assert "gone" in str(server.sql("SHOW PROCESSLIST"))

    asyncio.run(run())
    wait_for("its session is gone", lambda: "gone" not in str(server.sql("SHOW PROCESSLIST")))


def test_a_row_that_somebody_holds_is_seen_while_it_is_held(server: MariaDB) -> None:
    server.sql("CREATE OR REPLACE TABLE h (v INT PRIMARY KEY); INSERT INTO h VALUES (1)")
    update = "UPDATE h SET v = 1"
    words = [
        server.client,
        "--no-defaults",
        f"--socket={server.socket}",
        "--user=root",
        "forum",
        "-e",
        update,
    ]
    with contextlib.ExitStack() as held:
        held.enter_context(server.blocking(f"{update}; SELECT 'held'"))
        with subprocess.Popen(words) as waiter:
            settings = account(server, "watching")
            for _ in range(300):
                figures, _said = _seen(server, settings, "SELECT 1")
                if figures["row_lock_current_waits_count"]:
                    break
            assert figures["row_lock_current_waits_count"] == 1
            held.close()
            assert waiter.wait(LONGEST_S) == 0, "it gets the row in the end"
