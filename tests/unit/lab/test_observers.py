"""What the observers make of the texts of a host, of MariaDB and of PHP, second by second."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.lab.machine import CommandResult
from plimsoll.lab.observers import (
    ObserverSettings,
    WithOwnKeys,
    diskstats,
    find_observer,
    fsync,
    kstat,
    mariadb,
    php,
    poolstate,
    proc,
    zpool,
)
from plimsoll.lab.observers.mariadb import MariadbSettings
from plimsoll.lab.observers.observer import FileSource, ReadingPair
from plimsoll.lab.observers.php import COLUMNS, PhpSettings, PhpWatch
from tests.support.recorded import (
    ARCSTATS,
    DISKSTATS,
    DISKSTATS_LATER,
    DISKSTATS_OLD,
    IOSTAT_EXACT,
    IOSTAT_FUSE,
    IOSTAT_LATENCY,
    MARIADB,
    MEMINFO,
    PRESSURE,
    STAT,
    sampled,
)
from tests.support.scripted import FakeMachine, FakeProcess

SECOND_NS = 1_000_000_000


def _source(name: str) -> FileSource:
    """The observer, prepared on a host with the disk vda."""
    machine = FakeMachine(answers={"ls /sys/block": "vda"})
    source = asyncio.run(find_observer(name).prepare(machine, ObserverSettings(disks=("vda",)), print))
    assert isinstance(source, FileSource)
    return source


def _two(name: str, before: list[str], after: list[str], seconds: float = 1.0) -> dict[str, float | None]:
    return sampled(_source(name), before, after, every_s=seconds)


def test_a_disk_is_described_by_what_it_did_since_the_last_sample() -> None:
    figures = _two("diskstats", [DISKSTATS], [DISKSTATS_LATER])
    assert figures == pytest.approx(
        {
            "vda_reads_per_s": 100,
            "vda_writes_per_s": 50,
            "vda_read_bytes_per_s": 3200 * 512,
            "vda_write_bytes_per_s": 800 * 512,
            "vda_read_latency_ms": 2.5,
            "vda_write_latency_ms": 8,
            "vda_flushes_per_s": 10,
            "vda_flush_latency_ms": 3,
            "vda_in_flight_count": 3,
            "vda_queue_count": 0.65,
            "vda_util_percent": 50,
        }
    )


MISSING = [
    ("the first sample has nothing to compare with", None, DISKSTATS, "vda_reads_per_s", None),
    ("a disk that did nothing has a rate of 0", DISKSTATS, DISKSTATS, "vda_reads_per_s", 0),
    ("and no latency, not one of 0", DISKSTATS, DISKSTATS, "vda_read_latency_ms", None),
    ("counters that fell were reset or wrapped around", DISKSTATS_LATER, DISKSTATS, "vda_reads_per_s", None),
    ("what a disk stands at is known at once", None, DISKSTATS_LATER, "vda_in_flight_count", 3),
    ("a disk that is gone has no figures", DISKSTATS, DISKSTATS_OLD, "vda_util_percent", None),
]


@pytest.mark.parametrize(
    ("before", "after", "column", "value"), [row[1:] for row in MISSING], ids=[row[0] for row in MISSING]
)
def test_what_is_missing_is_none(before: str | None, after: str, column: str, value: float | None) -> None:
    texts = [[text] for text in (before, after) if text]
    assert sampled(_source("diskstats"), *texts)[column] == value


def test_old_kernels_count_no_flushes() -> None:
    assert "flushes" not in diskstats.parse(DISKSTATS_OLD)["sda"]
    assert diskstats.parse(DISKSTATS_OLD)["sda"]["ms queued"] == 45


WATCHED = [
    ("whole disks, without loop devices and partitions", ["loop0", "vda", "zram0"], [], ("vda",)),
    ("what is chosen, loop devices too, in that order", ["loop0", "vda"], ["loop0", "vda"], ("loop0", "vda")),
    ("a chosen one that is yet to come", ["vda"], ["loop9"], ("loop9",)),
    ("what the kernel lists and counts only", ["vda", "sdb"], [], ("vda",)),
]


@pytest.mark.parametrize(
    ("whole", "chosen", "devices"), [row[1:] for row in WATCHED], ids=[row[0] for row in WATCHED]
)
def test_which_disks_are_watched(whole: list[str], chosen: list[str], devices: tuple[str, ...]) -> None:
    assert diskstats.choose_devices(DISKSTATS, whole, chosen) == devices


def test_pressure_is_the_share_of_the_time_between_two_samples() -> None:
    before = [PRESSURE[resource] for resource in proc.RESOURCES]
    after = [text.replace("total=235695759", "total=235895759") for text in before]
    assert _two("pressure", before, after)["io_some_percent"] == pytest.approx(20)
    assert _two("pressure", before, after, seconds=2)["io_some_percent"] == pytest.approx(10)
    assert _two("pressure", before, after)["memory_full_percent"] == 0


def test_the_processor_s_shares_make_a_hundred() -> None:
    later = STAT.replace("566632 19063 184853 589465 11782", "566652 19063 184863 589525 11792")
    figures = _two("cpu", [STAT], [later])
    assert figures["user_percent"] == pytest.approx(20)
    assert figures["system_percent"] == pytest.approx(10)
    assert figures["iowait_percent"] == pytest.approx(10)
    assert figures["idle_percent"] == pytest.approx(60)
    assert figures["blocked_count"] == 1


def test_iowait_that_falls_is_missing_alone() -> None:
    later = STAT.replace("589465 11782", "589565 11780")
    figures = _two("cpu", [STAT], [later])
    assert figures["iowait_percent"] is None
    assert figures["user_percent"] == 0


def test_memory_is_in_bytes() -> None:
    figures = _two("memory", [MEMINFO, ""], [MEMINFO, ""])
    assert figures["dirty_bytes"] == 628 * 1024
    assert figures["swap_used_bytes"] == 48576 * 1024
    assert figures["dirty_limit_bytes"] is None, "a kernel that says no limit"
    assert figures["dirty_limit_percent"] is None


LIMITS = [
    ("pages of 4 KiB, a little more of them free than a moment before", 4096, 1.02),
    ("pages of 16 KiB", 16384, 1.0),
    ("pages of 64 KiB, a little less of them free", 65536, 0.97),
]


@pytest.mark.parametrize(("page", "moved"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_what_may_be_dirty_is_counted_in_pages_whose_size_is_found(page: int, moved: float) -> None:
    free_bytes = proc.parse_meminfo(MEMINFO)["MemFree"]
    vmstat = f"nr_free_pages {int(free_bytes * moved / page)}\nnr_dirty_threshold {(64 << 20) // page}\n"
    figures = _two("memory", [MEMINFO, vmstat], [MEMINFO, vmstat])
    assert figures["dirty_limit_bytes"] == 64 << 20
    dirty_bytes, writing_bytes = figures["dirty_bytes"], figures["writeback_bytes"]
    assert dirty_bytes is not None
    assert writing_bytes is not None
    assert figures["dirty_limit_percent"] == pytest.approx(100 * (dirty_bytes + writing_bytes) / (64 << 20))


def test_the_arc_s_hits_are_those_of_the_second() -> None:
    later = ARCSTATS.replace("4    1000000", "4    1000090").replace("4    20000\n", "4    20010\n")
    figures = _two("arcstats", [ARCSTATS], [later])
    assert figures["hits_per_s"] == 90
    assert figures["hit_percent"] == pytest.approx(90)
    assert figures["size_bytes"] == 6442450944
    assert _two("arcstats", [ARCSTATS], [ARCSTATS])["hit_percent"] is None


POOL_LINES = [
    (
        "with waits in nanoseconds",
        IOSTAT_LATENCY,
        {"reads": 120, "read wait": 1048576, "write disk wait": 851968},
    ),
    ("exact, without waits", IOSTAT_EXACT, {"writes": 340, "write bytes": 45088768}),
    (
        "rounded, as zfs-fuse prints",
        IOSTAT_FUSE.splitlines()[4],
        {"write bytes": 7.14 * 1024**2, "writes": 402},
    ),
    (
        "a wait that did not happen is missing",
        IOSTAT_LATENCY.replace("1048576", "-"),
        {"write wait": 3145728},
    ),
]


@pytest.mark.parametrize(
    ("line", "some"), [row[1:] for row in POOL_LINES], ids=[row[0] for row in POOL_LINES]
)
def test_a_line_of_zpool_iostat(line: str, some: dict[str, float]) -> None:
    found = zpool.parse(line)
    assert found
    assert found[0] == "tank"
    assert found[1].items() >= some.items()


def test_a_pool_s_name_may_hold_spaces() -> None:
    found = zpool.parse(IOSTAT_EXACT.replace("tank", "my pool"))
    assert found
    assert found[0] == "my pool"
    assert found[1]["reads"] == 120


@pytest.mark.parametrize("line", IOSTAT_FUSE.splitlines()[:3])
def test_headers_and_rules_are_no_samples(line: str) -> None:
    assert zpool.parse(line) is None


def test_the_first_line_of_an_old_zpool_is_a_mean_and_left_out() -> None:
    lines = zpool.IostatReader(zpool.FORMS[-1])
    for line in IOSTAT_FUSE.splitlines()[:4]:
        lines.add(line)
    assert lines.take().now == {}
    lines.add(IOSTAT_FUSE.splitlines()[4])
    assert lines.take().gauge("tank writes") == 402
    assert lines.take().now == {}, "no line is read twice"


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


def test_an_error_of_the_client_ends_the_round_and_is_reported_once() -> None:
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


# As PHP 8.2's pages print them, behind a TCP socket.
STATUS = {
    "pool": "www",
    "process manager": "static",
    "start time": 1795467512,
    "accepted conn": 100,
    "listen queue": 3,
    "max listen queue": 7,
    "listen queue len": 511,
    "idle processes": 0,
    "active processes": 2,
    "total processes": 2,
    "max children reached": 0,
    "slow requests": 1,
}


OPCACHE = {
    "opcache_enabled": True,
    "memory_usage": {"used_memory": 9169016, "free_memory": 125048712, "wasted_memory": 0},
    "opcache_statistics": {
        "hits": 1000,
        "misses": 10,
        "oom_restarts": 0,
        "hash_restarts": 0,
        "manual_restarts": 1,
        "opcache_hit_rate": 99.0,
    },
}
SOCKET = PhpSettings(fastcgi="/run/php/php8.2-fpm.sock", opcache="/srv/opcache.php")


def php_line(at_s: float = 1, **more: Any) -> str:
    found: dict[str, Any] = {"at_ns": int(at_s * 1e9), "waited_ms": 2.5, "status": STATUS, "opcache": OPCACHE}
    return json.dumps(found | more)


def sampled_php(*lines: str, settings: PhpSettings = SOCKET) -> tuple[dict[str, float | None], list[str]]:
    """The figures after all lines, and what was said."""
    heard = list[str]()

    async def run() -> list[float | None]:
        machine = FakeMachine()
        machine.process = FakeProcess(lines)
        watch = PhpWatch(machine, settings)
        await watch.start(heard.append)
        for _ in range(3):
            await asyncio.sleep(0)
        return watch.sample()

    values = asyncio.run(run())
    return {column.name: value for column, value in zip(COLUMNS, values, strict=True)}, heard[:-1]


def test_two_answers_become_rates() -> None:
    later = STATUS | {"accepted conn": 150, "slow requests": 2, "max children reached": 4}
    counted = {"opcache_statistics": OPCACHE["opcache_statistics"] | {"hits": 1400, "oom_restarts": 1}}  # type: ignore[operator]
    figures, heard = sampled_php(php_line(1), php_line(3, status=later, opcache=OPCACHE | counted))
    assert heard == []
    assert (figures["accepted_per_s"], figures["slow_requests_per_s"]) == (25, 0.5)
    assert (figures["opcache_hits_per_s"], figures["opcache_misses_per_s"]) == (200, 0)
    assert (figures["opcache_restarts_per_s"], figures["max_children_reached_per_s"]) == (0.5, 2)
    assert (figures["queue_count"], figures["busy_percent"], figures["status_wait_ms"]) == (3, 100, 2.5)


def test_of_a_unix_socket_the_queue_is_not_known() -> None:
    figures, _ = sampled_php(php_line(status=STATUS | {"listen queue": 0, "listen queue len": 0}))
    assert figures["queue_count"] is None
    assert figures["active_count"] == 2


def test_a_status_page_that_waits_is_a_figure_and_the_next_rate_covers_the_gap() -> None:
    waiting = json.dumps({"at_ns": 2_000_000_000, "waited_ms": 1000.0})
    figures, _ = sampled_php(php_line(1), waiting)
    assert figures["status_wait_ms"] == 1000
    assert {value for name, value in figures.items() if name != "status_wait_ms"} == {None}
    figures, _ = sampled_php(php_line(1), waiting, php_line(5, status=STATUS | {"accepted conn": 180}))
    assert figures["accepted_per_s"] == 20


def test_a_pool_that_was_started_anew_has_no_rates() -> None:
    figures, _ = sampled_php(php_line(1), php_line(2, status=STATUS | {"accepted conn": 1}))
    assert figures["accepted_per_s"] is None


def test_what_goes_wrong_is_reported_once() -> None:
    refused = json.dumps({"at_ns": 1, "waited_ms": 0.1, "error": "/status: [Errno 111] Connection refused"})
    _, heard = sampled_php(refused, refused)
    assert heard == ["php: /status: [Errno 111] Connection refused"]


LIES = [
    ("no JSON", "<html>"),
    ("no object", "[1]"),
    ("no instant", "{}"),
    ("an instant that is none", '{"at_ns": "now"}'),
    ("an answer that is no object", '{"at_ns": 1, "status": [1], "opcache": 7}'),
    ("figures that are words", '{"at_ns": 1, "status": {"listen queue": "many", "listen queue len": 5}}'),
    ("a truth for a number", '{"at_ns": 1, "status": {"active processes": true}}'),
    ("beyond any count", '{"at_ns": 1, "status": {"active processes": 1e300}}'),
    ("below none", '{"at_ns": 1, "status": {"active processes": -1}}'),
    ("not a number", '{"at_ns": 1, "status": {"active processes": NaN}}'),
]


@pytest.mark.parametrize("line", [row[1] for row in LIES], ids=[row[0] for row in LIES])
def test_a_site_that_lies_is_left_out(line: str) -> None:
    figures, _ = sampled_php(line)
    assert set(figures.values()) == {None}


REFUSED = [
    ("a device with a path", {"disks": ["../../etc"]}, "disks.0"),
    ("a device with a semicolon", {"disks": ["sda;reboot"]}, "disks.0"),
    ("a pool that is an option", {"pools": ["-v"]}, "pools.0"),
    ("a pool with a space", {"pools": ["my pool"]}, "pools.0"),
    ("an observer that does not exist", {"observe": ["weather"]}, "observe.0"),
    ("something twice", {"disks": ["sda", "sda"]}, ""),
    ("a database that nobody said how to ask", {"observe": ["mariadb"]}, ""),
    ("no socket for a path", {"php": {}}, "php"),
    ("a socket that is none", {"php": {"fastcgi": "php"}}, "php.fastcgi"),
    ("a file for an address", {"php": {"status": "file:///etc/passwd"}}, "php.status"),
    ("an address without a host", {"php": {"status": "http:///status"}}, "php.status"),
    ("a script at no socket", {"php": {"status": "http://localhost/s", "opcache": "/o.php"}}, "php"),
    ("a defaults file of no absolute path", {"mariadb": {"defaults_file": "x.cnf"}}, "mariadb.defaults_file"),
]


@pytest.mark.parametrize(("given_", "where"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_cannot_be_observed_is_refused(given_: dict[str, object], where: str) -> None:
    with pytest.raises(ValidationError) as caught:
        WithOwnKeys.model_validate(given_)
    assert where in [".".join(str(part) for part in error["loc"]) for error in caught.value.errors()]


def test_the_php_observer_needs_its_settings() -> None:
    with pytest.raises(ValidationError, match="needs a socket"):
        WithOwnKeys.model_validate({"observe": ["php"]})


PARSERS: list[Callable[[str], object]] = [
    *(diskstats.parse, fsync.parse, mariadb.parse, php.parse, poolstate.parse, poolstate.parse_status),
    *(kstat.parse_kstat, kstat.parse_groups, kstat.instant_ns, zpool.parse),
    *(proc.parse_cpu, proc.parse_meminfo, proc.parse_pages, proc.parse_pressure),
]


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: f"{parse.__module__}.{parse.__name__}")
@given(data=st.binary())
def test_no_bytes_crash_a_parser(parse: Callable[[str], object], data: bytes) -> None:
    parse(data.decode("utf-8", "backslashreplace"))


@given(st.text())
def test_no_words_in_their_forms_crash_one(text: str) -> None:
    fsync.parse(f"probe {text}")
    php.parse(json.dumps({"at_ns": 1, "status": text, "opcache": {text: text}}))


@given(
    st.lists(
        st.sampled_from(
            [*DISKSTATS.split(), *ARCSTATS.split(), *STAT.split(), "\n", "²", "9" * 400, "-1", "nan"]
        )
    )
)
def test_no_words_in_the_wrong_place_crash_one_either(words: list[str]) -> None:
    text = " ".join(words)
    for name in ("arcstats", "cpu", "diskstats", "memory"):
        files = len(_source(name).paths)
        _two(name, [text] * files, [text[::-1]] * files)
    zpool.parse(text)


@given(
    st.dictionaries(st.sampled_from("ab"), st.floats(0, 2**64)),
    st.none() | st.dictionaries(st.sampled_from("ab"), st.floats(0, 2**64)),
    st.floats(-1, 100),
)
def test_no_rate_is_ever_negative(
    now: dict[str, float], before: dict[str, float] | None, elapsed_s: float
) -> None:
    rate = ReadingPair(now, before, elapsed_s).rate("a")
    assert rate is None or rate >= 0
