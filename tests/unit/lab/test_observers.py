"""What the observers make of the texts that a host gives, second by second."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.lab.observers import ObserverSettings, diskstats, find_observer, kstat, mariadb, proc, zpool
from plimsoll.lab.observers.observer import FileSource, ReadingPair
from tests.support.recorded import (
    ARCSTATS,
    DISKSTATS,
    DISKSTATS_LATER,
    DISKSTATS_OLD,
    IOSTAT_EXACT,
    IOSTAT_FUSE,
    IOSTAT_LATENCY,
    MEMINFO,
    PRESSURE,
    STAT,
)
from tests.support.scripted import FakeMachine

SECOND_NS = 1_000_000_000


def _named(source: FileSource, texts: list[str], at_s: float) -> dict[str, float | None]:
    values = source.sample(texts, int(at_s * SECOND_NS))
    return dict(zip((column.name for column in source.columns), values, strict=True))


def _source(name: str) -> FileSource:
    """The observer, prepared on a host with the disk vda."""
    machine = FakeMachine(answers={"ls /sys/block": "vda"})
    source = asyncio.run(find_observer(name).prepare(machine, ObserverSettings(disks=("vda",)), print))
    assert isinstance(source, FileSource)
    return source


def _two(name: str, before: list[str], after: list[str], seconds: float = 1.0) -> dict[str, float | None]:
    source = _source(name)
    _named(source, before, 10)
    return _named(source, after, 10 + seconds)


def test_a_disk_is_told_by_what_it_did_since_the_last_sample() -> None:
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
    source = _source("diskstats")
    if before:
        _named(source, [before], 1)
    assert _named(source, [after], 2)[column] == value


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
    assert lines.take().now == {}, "no line is told twice"


@given(st.binary())
def test_no_bytes_crash_a_parser(data: bytes) -> None:
    text = data.decode("utf-8", "backslashreplace")
    for parse in (
        kstat.parse_kstat,
        proc.parse_cpu,
        diskstats.parse,
        mariadb.parse,
        proc.parse_meminfo,
        proc.parse_pages,
        proc.parse_pressure,
        zpool.parse,
    ):
        parse(text)


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
