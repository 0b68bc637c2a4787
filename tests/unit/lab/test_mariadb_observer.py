"""What the mariadb observer makes of what a client prints, round by round."""

import asyncio
from collections.abc import Sequence

import pytest

from plimsoll.lab.machine import CommandResult
from plimsoll.lab.observers import WithOwnKeys, find_observer, mariadb
from plimsoll.lab.observers.mariadb import MariadbSettings
from tests.support.recorded import MARIADB
from tests.support.scripted import FakeMachine

SECOND_NS = 1_000_000_000


class Client:
    """What a client prints, round by round, and the clock of who reads it."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._rounds = mariadb.MariadbReader(now_ns=lambda: self.now_ns)

    def take(self, text: str, at_s: float, *, whole: bool = True) -> None:
        self.now_ns = int(at_s * SECOND_NS)
        for line in [*text.splitlines(), *(["end of a round"] if whole else [])]:
            self._rounds.add(line)

    def figures(self) -> dict[str, float | None]:
        taken = self._rounds.take()
        return {column.name: column.formula(taken) for column in mariadb.COLUMNS}

    def seen(self, text: str, at_s: float) -> dict[str, float | None]:
        self.take(text, at_s)
        return self.figures()


def test_a_database_that_was_started_anew_has_no_rates() -> None:
    client = Client()
    client.seen(MARIADB, 1)
    assert client.seen(MARIADB.replace("120000", "120500"), 2)["queries_per_s"] == 500
    anew = MARIADB.replace("Uptime\t3600", "Uptime\t2").replace("120000", "999999")
    assert client.seen(anew, 3)["queries_per_s"] is None
    assert client.seen(anew, 4)["threads_running_count"] == 4


def test_a_second_without_a_whole_round_is_empty_and_the_next_rate_is_that_of_the_gap() -> None:
    client = Client()
    client.seen(MARIADB, 1)
    later = MARIADB.replace("120000", "120500")
    client.take(later, 1.9, whole=False)
    assert set(client.figures().values()) == {None}
    assert client.seen(later, 3)["queries_per_s"] == 250
    client.take(later.replace("120500", "120600"), 3.1)
    client.take(later.replace("120500", "120900"), 3.8)
    assert client.figures()["queries_per_s"] == 500, "of two rounds in a second the later one"


def test_an_error_of_the_client_ends_the_round_and_is_said_once() -> None:
    said = list[str]()
    refused = "ERROR 2002 (HY000): Can't connect to local server through socket '/run/mysqld.sock' (2)"
    rounds = mariadb.MariadbReader()
    rounds.log = said.append
    for line in ("Queries\t7", "-" * 14, "SHOW GLOBAL STATUS", "-" * 14, refused, refused, "end of a round"):
        rounds.add(line)
    assert rounds.take().now == {}
    assert said == [f"mariadb: {refused}"]


# As MariaDB 10.6 prints them; 10.11 has no line for the redo log.
FILE_WAITS = """\
wait/io/file/innodb/innodb_log_file waits\t1000
wait/io/file/innodb/innodb_data_file waits\t196
wait/io/file/innodb/innodb_log_file ps\t4000000000000
wait/io/file/innodb/innodb_data_file ps\t39862432610
Innodb_checkpoint_age\t20204882
Innodb_checkpoint_max_age\t80819529
Innodb_row_lock_time\t1500
"""


def test_what_mariadb_s_files_took_is_a_mean_over_the_second() -> None:
    client = Client()
    client.seen(MARIADB + FILE_WAITS, 1)
    later = FILE_WAITS.replace("\t1000", "\t1010").replace("4000000000000", "4050000000000")
    figures = client.seen(MARIADB + later.replace("\t1500", "\t2100"), 2)
    assert figures["log_file_wait_ms"] == pytest.approx(5.0)
    assert figures["data_file_wait_ms"] is None, "nothing was waited for"
    assert figures["binlog_wait_ms"] is None
    assert figures["checkpoint_percent"] == pytest.approx(25.0)
    assert figures["row_lock_time_ms_per_s"] == 600


ASKED = [
    ("performance_schema is on and open", FILE_WAITS, "", 0, True, []),
    ("it is off: its tables are empty", "", "", 0, False, []),
    (
        "it is closed to the account",
        "",
        "ERROR 1142 (42000): SELECT command denied to user for table `performance_schema`.`events…`",
        1,
        False,
        ["mariadb: may not read performance_schema: GRANT SELECT ON performance_schema.* TO the account"],
    ),
    ("the server does not answer", "", "ERROR 2002 (HY000): Can't connect", 1, False, []),
]


@pytest.mark.parametrize(
    ("out", "err", "status", "waits", "said"), [row[1:] for row in ASKED], ids=[row[0] for row in ASKED]
)
def test_file_waits_are_asked_for_where_they_can_be_had(
    out: str, err: str, status: int, waits: bool, said: list[str]
) -> None:
    class Host(FakeMachine):
        def result_of(self, command: Sequence[str], stdin: bytes | None) -> CommandResult:
            return CommandResult(tuple(command), status, out, err)

    settings = WithOwnKeys.model_validate({"mariadb": MariadbSettings(defaults_file="/root/lab.cnf")})
    heard, host = list[str](), Host()

    async def run() -> None:
        watch = await find_observer("mariadb").prepare(host, settings, heard.append)
        assert isinstance(watch, mariadb.MariadbWatch)
        await watch.start(print)
        await watch.stop()

    asyncio.run(run())
    asked = host.ran[-1][-1]
    assert asked.startswith("--execute=SHOW GLOBAL STATUS")
    assert ("performance_schema" in asked) is waits
    assert heard == said


def test_no_secret_is_on_the_client_s_command_line() -> None:
    settings = MariadbSettings(defaults_file="/root/lab.cnf", client=("docker", "exec", "db", "mariadb"))
    assert mariadb.command(settings)[:5] == [
        "docker",
        "exec",
        "db",
        "mariadb",
        "--defaults-file=/root/lab.cnf",
    ]
