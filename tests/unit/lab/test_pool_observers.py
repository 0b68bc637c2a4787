"""Transaction groups, the ZIL, waits, vdevs and the state of pools, second by second."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.lab.observers import ObserverSettings, find_observer, poolstate, poolwaits, vdevs
from plimsoll.lab.observers import kstat as kernel
from plimsoll.lab.observers.observer import END, CommandStream, FileSource
from plimsoll.lab.observers.poolstate import Leaf
from tests.support.programs import ROOT
from tests.support.recorded import TXGS_HEAD, histograms, kstat, sampled, vdev_line
from tests.support.recorded import txg as line
from tests.support.scripted import FakeMachine, FakeProcess

SECOND_NS = 1_000_000_000
MS_NS = 1_000_000
STATUS = ROOT / "tests" / "fixtures" / "saturators" / "zpool-status"


def _txgs(now_s: float, *lines: str, delayed: int = 0) -> list[str]:
    return [
        kstat(int(now_s * SECOND_NS), zil_commit_count=1),
        kstat(1, dmu_tx_dirty_delay=delayed),
        TXGS_HEAD + "".join(lines),
    ]


def _seconds(*texts: list[str]) -> dict[str, float | None]:
    """What the last of these seconds shows."""
    groups = kernel.Groups(["tank"])
    return sampled(FileSource("txg", kernel.txg_columns(["tank"]), groups.read, groups.paths), *texts)


OLD = line(100, "C", 0, 999, 999, (5 * SECOND_NS, 0, 0, 60 * SECOND_NS))
OPEN = line(104, "O", 20 * SECOND_NS)
SHORT = line(101, "C", 0, 1000, 4000, (1, 1, 1, 40 * MS_NS))
LONG = line(102, "C", 0, 9000, 6000, (1, 1, 1, 3500 * MS_NS))
# Born at 10 s, open for 2 s, quiesced for 0.5 s, waited for 0.5 s: it began to sync at 13 s.
SYNCING = line(103, "S", 10 * SECOND_NS, times=(2 * SECOND_NS, SECOND_NS // 2, SECOND_NS // 2, 0))
WAITING = line(103, "W", 10 * SECOND_NS, times=(2 * SECOND_NS, SECOND_NS // 2, 0, 0))

GROUPS = [
    ("groups of before the run are not reported", [_txgs(1, OLD)], None),
    ("nor is one reported twice", [_txgs(1, OLD), _txgs(2, OLD)], None),
    ("one that ended since the last sample", [_txgs(1, OLD), _txgs(2, OLD, SHORT)], 40),
    ("of two, the longer", [_txgs(1, OLD), _txgs(2, OLD, SHORT, LONG, OPEN)], 3500),
    ("one still syncing, as far as it is", [_txgs(1, OLD), _txgs(17.25, OLD, SYNCING, OPEN)], 4250),
    ("also in the first sample", [_txgs(17.25, OLD, SYNCING, OPEN)], 4250),
    ("whichever is longer", [_txgs(1, OLD), _txgs(13.5, OLD, LONG, SYNCING)], 3500),
    ("one that waits to be synced took no time yet", [_txgs(1, OLD), _txgs(17, OLD, WAITING)], None),
    (
        "a clock that nobody could read makes no time",
        [_txgs(1, OLD), ["", "", TXGS_HEAD + OLD + SYNCING]],
        None,
    ),
    ("a group that will sync is none yet", [_txgs(1, OLD), _txgs(12, OLD, SYNCING)], None),
    (
        "a pool that was imported anew begins again",
        [_txgs(1, OLD, LONG), _txgs(2, line(7, "C", 0, 1, 1, (1, 1, 1, 99)))],
        None,
    ),
]


@pytest.mark.parametrize(("texts", "sync_ms"), [row[1:] for row in GROUPS], ids=[row[0] for row in GROUPS])
def test_how_long_a_group_synced(texts: list[list[str]], sync_ms: float | None) -> None:
    assert _seconds(*texts)["tank_sync_ms"] == (None if sync_ms is None else pytest.approx(sync_ms))


def test_groups_bytes_and_delays_are_those_since_the_last_sample() -> None:
    figures = _seconds(_txgs(1, OLD, delayed=5), _txgs(2, OLD, SHORT, LONG, OPEN, delayed=25))
    assert figures == {
        "tank_sync_ms": 3500,
        "tank_groups_per_s": 2,
        "tank_dirty_bytes": 9000,
        "tank_written_bytes_per_s": 10_000,
        "delayed_per_s": 20,
    }


def test_where_no_history_is_kept_the_other_figures_stay() -> None:
    figures = _seconds(_txgs(1, delayed=5), _txgs(2, delayed=7))
    assert figures.pop("delayed_per_s") == 2
    assert set(figures.values()) == {None}


ZIL_21 = {"zil_commit_count": 100, "zil_itx_metaslab_normal_bytes": 4096, "zil_itx_metaslab_slog_bytes": 0}
ZIL_22 = {**ZIL_21, "zil_itx_metaslab_normal_write": 8192, "zil_itx_metaslab_slog_write": 0}


@pytest.mark.parametrize(
    ("names", "written"),
    [(ZIL_21, None), (ZIL_22, 8192)],
    ids=["OpenZFS 2.1 does not count what is written", "2.2 does"],
)
def test_the_zil_of_older_and_newer_versions(names: dict[str, int], written: float | None) -> None:
    source = FileSource("zil", kernel.ZIL_COLUMNS, kernel.read_kstat, kernel.ZIL_PATHS)
    doubled = {name: 2 * value for name, value in names.items()}
    figures = sampled(source, [kstat(1, **names)], [kstat(2, **doubled)])
    assert figures["commits_per_s"] == 100
    assert figures["pool_bytes_per_s"] == 4096
    assert figures["pool_written_bytes_per_s"] == written
    assert figures["slog_bytes_per_s"] == 0


def _waits(*rounds: dict[tuple[int, int], int], cut_off: int = 0, kinds: int = 11) -> dict[str, float | None]:
    """What the last of these rounds shows of tank, each asked for when it had come; the last one cut off."""
    taker = poolwaits.HistogramReader()
    for counts in rounds:
        lines = [*histograms("tank", counts, kinds), END]
        for each in lines[: len(lines) - cut_off if counts is rounds[-1] else None]:
            taker.add(each)
        pair = taker.take()
    return {column.name: column.formula(pair) for column in poolwaits.columns(["tank"])}


READ, WRITE = 0, 1
FAST = {(20, READ): 1000, (20, WRITE): 500}


@pytest.mark.parametrize("kinds", [10, 11], ids=["OpenZFS 2.1", "since 2.2, with rebuilds"])
def test_percentiles_are_upper_bounds_of_what_is_new(kinds: int) -> None:
    later = {(20, READ): 1098, (24, READ): 1, (30, READ): 1, (20, WRITE): 500}
    figures = _waits(FAST, later, kinds=kinds)
    assert figures["tank_read_p50_ms"] == pytest.approx(2.097151)
    assert figures["tank_read_p99_ms"] == pytest.approx(33.554431)
    assert figures["tank_read_max_ms"] == pytest.approx(2147.483647)
    assert figures["tank_write_max_ms"] is None, "nothing was written, and that takes no 0 ms"
    assert figures["tank_read_disk_max_ms"] is None


NO_WAITS = [
    ("the counts since the import are no second", [FAST], 0),
    ("nothing new", [FAST, FAST], 0),
    ("a round that is cut off is not reported", [FAST, {(30, READ): 2000}], 5),
    ("nor one without its end", [FAST, {(30, READ): 2000}], 1),
    ("a pool that was imported anew has fewer", [FAST, {(30, READ): 20}], 0),
]


@pytest.mark.parametrize(("rounds", "cut"), [row[1:] for row in NO_WAITS], ids=[row[0] for row in NO_WAITS])
def test_what_gives_no_waits(rounds: list[dict[tuple[int, int], int]], cut: int) -> None:
    assert set(_waits(*rounds, cut_off=cut).values()) == {None}


def test_a_round_that_came_late_is_reported_with_the_next() -> None:
    taker = poolwaits.HistogramReader()
    for counts in (FAST, FAST | {(30, READ): 1}, FAST | {(30, READ): 2}):
        for each in [*histograms("tank", counts), END]:
            taker.add(each)
        if counts is FAST:
            taker.take()
    assert taker.take().gauge("tank total_wait read p50") == (1 << 31) - 1
    assert taker.take().now == {}


@given(st.dictionaries(st.integers(1, 1 << 37), st.integers(0, 1 << 40)), st.floats(0.01, 1))
def test_a_percentile_is_a_bucket_with_something_in_it(counts: dict[int, int], share: float) -> None:
    found = poolwaits.bound_ns(counts, share)
    if found is None:
        assert not any(counts.values())
    else:
        assert counts[int(found)] > 0
        below = sum(count for bound, count in counts.items() if bound <= found)
        assert below >= share * sum(counts.values()) * (1 - 1e-9)


MIRROR = """\
  pool: tank
 state: ONLINE
config:

\tNAME                      STATE     READ WRITE CKSUM
\ttank                      ONLINE       0     0     0
\t  mirror-0                ONLINE       0     0     0
\t    /dev/sda1             ONLINE       0     0     0  (trimming)
\t    replacing-1           DEGRADED     0     0     0
\t      /dev/sdb1           ONLINE       0     0     0
\t      /srv/a disk.img     ONLINE       0     0     0
\tlogs
\t  /dev/nvme0n1p1          ONLINE       0     0     0
\tcache
\t  /dev/nvme0n1p2          ONLINE       0     0     0
\tspares
\t  /dev/sdz1               AVAIL

errors: No known data errors
"""
LEAVES = (
    Leaf("/dev/sda1", "mirror-0"),
    Leaf("/dev/sdb1", "mirror-0"),
    Leaf("/srv/a disk.img", "mirror-0"),
    Leaf("/dev/nvme0n1p1", ""),
    Leaf("/dev/nvme0n1p2", ""),
)


def test_the_disks_of_a_pool_and_their_mirrors() -> None:
    (status,) = poolstate.parse_status(MIRROR)
    assert status.leaves == LEAVES
    assert status.trimmed == 1


def _vdevs(*lines: str) -> dict[str, float | None]:
    taker = vdevs.VdevReader({"tank": LEAVES})
    for each in lines:
        taker.add(each)
    pair = taker.take()
    assert taker.take().now == {}, "no line is read twice"
    return {column.name: column.formula(pair) for column in vdevs.columns({"tank": LEAVES})}


def test_one_disk_is_slower_than_its_mirror() -> None:
    figures = _vdevs(
        vdev_line("tank", "9000000"),
        vdev_line("mirror-0", "9000000"),
        vdev_line("/dev/sda1", "2000000", "1000000"),
        vdev_line("replacing-1"),
        vdev_line("/dev/sdb1", "42000000", "-"),
        vdev_line("/srv/a disk.img", "4000000"),
        "",
        vdev_line("/dev/nvme0n1p1", "-", "90000000"),
    )
    assert figures["tank_read_behind_ms"] == pytest.approx(39), "42 ms, the others 3 ms"
    assert figures["tank_write_behind_ms"] is None, "one alone is behind nobody, and a log is no mirror"
    assert figures["tank/sda1_read_latency_ms"] == 2
    assert figures["tank/sdb1_write_disk_latency_ms"] is None
    assert figures["tank/srv-a-disk.img_reads_per_s"] == 10
    assert figures["tank/nvme0n1p1_write_latency_ms"] == 90


def test_names_in_columns_are_plain_and_each_its_own() -> None:
    named = vdevs.safe_names(["/dev/sda1", "/a b/x", "/a-b/x", "/dev/sda,1", "///"])
    assert list(named.values()) == ["sda1", "a-b-x", "a-b-x-2", "sda-1", "vdev"]


def test_of_very_many_disks_the_first_have_columns() -> None:
    leaves = [Leaf(f"/dev/sd{number}", "raidz2-0") for number in range(90)]
    found = vdevs.columns({"tank": leaves})
    assert len(found) == 2 + 8 * vdevs.MOST
    assert found[-1].name.startswith("tank/sd31_")


SCANS = [
    ("openzfs-2.1-done", 0, 0, None),
    ("openzfs-2.1-paused", 0, 0, None),
    ("openzfs-2.1-resilver", 0, 1, 0.0),
    ("openzfs-2.1-scrub", 1, 0, 7.04),
    ("openzfs-2.3-canceled", 0, 0, None),
    ("openzfs-2.3-ran-over", 1, 0, None),
    ("openzfs-2.3-resilver", 0, 1, 86.72),
    ("openzfs-2.3-scrub", 1, 0, 18.53),
    ("zfs-fuse-resilver", 0, 1, 57.56),
    ("zfs-fuse-scrub", 1, 0, 36.56),
]


@pytest.mark.parametrize(("fixture", "scrub", "resilver", "percent"), SCANS)
def test_which_scan_runs_on_a_pool(fixture: str, scrub: int, resilver: int, percent: float | None) -> None:
    (found,) = poolstate.parse_status((STATUS / f"{fixture}.txt").read_text())
    assert (found.scrub, found.resilver, found.done_percent) == (scrub, resilver, percent)


LIST = [
    (
        "exact, as OpenZFS prints it",
        "tank\tONLINE\t81\t37",
        {"capacity": 81, "fragmentation": 37, "health": 0},
    ),
    ("a pool without that figure", "tank\tDEGRADED\t5\t-", {"capacity": 5, "health": 1}),
    ("as zfs-fuse prints it", "tank\tONLINE\t12%", {"capacity": 12, "health": 0}),
]


@pytest.mark.parametrize(("text", "state"), [row[1:] for row in LIST], ids=[row[0] for row in LIST])
def test_how_full_a_pool_is(text: str, state: dict[str, float]) -> None:
    assert poolstate.parse(text) == {f"tank {name}": value for name, value in state.items()}


def test_a_state_is_repeated_until_nobody_knows_any_more() -> None:
    taker = poolstate.StateReader()
    assert taker.take().now == {}
    for each in ["tank\tONLINE\t81\t37", *MIRROR.split("\n"), END, "tank\tONLINE\t99\t37"]:
        taker.add(each)
    for _ in range(15):
        assert taker.take().gauge("tank capacity") == 81, "a round that is not whole does not count"
    assert taker.take().now == {}


@given(st.lists(st.sampled_from([*MIRROR.split("\n"), END, "tank", "a\tb\tc", "\t", "9\t" * 12, "² \t1"])))
def test_no_lines_in_the_wrong_order_crash_one(lines: list[str]) -> None:
    for taker in (poolwaits.HistogramReader(), poolstate.StateReader(), vdevs.VdevReader({"tank": LEAVES})):
        for each in lines:
            taker.add(each)
            taker.take()


@given(
    st.text()
    | st.lists(
        st.sampled_from([*SYNCING.split(), *LONG.split(), "\n", "S", "C", "9" * 400, "-1", "nan", "²"])
    ).map(" ".join)
)
def test_neither_text_nor_words_in_the_wrong_place_crash_the_groups(text: str) -> None:
    _seconds([text, text, text], [text[::-1], text, text])


STREAMS = {
    "poolwaits": ("sh", "-c", "while :; do zpool iostat -w -H -p \"$@\"; printf '\\036\\n'; sleep 1; done"),
    "vdevs": ("stdbuf", "-oL", "zpool", "iostat", "-v", "-H", "-p", "-y", "-l", "-L", "-P", "tank", "1"),
    "poolstate": ("sh", "-c"),
}


@pytest.mark.parametrize(("name", "command"), STREAMS.items(), ids=STREAMS)
def test_one_process_of_a_kind_runs_until_it_is_stopped(name: str, command: tuple[str, ...]) -> None:
    async def run() -> FakeMachine:
        answers = {"zpool list": "tank\n", "zpool iostat": "", "zpool status": MIRROR}
        machine = FakeMachine(answers=answers)
        machine.process = FakeProcess(["tank"])
        found = await find_observer(name).prepare(machine, ObserverSettings(), print)
        assert isinstance(found, CommandStream)
        await found.start(print)
        assert len(found.sample()) == len(found.columns)
        await found.stop()
        return machine

    machine = asyncio.run(run())
    assert machine.process.stopped
    assert machine.ran[-1][: len(command)] == command


ABSENT = ["txg", "poolwaits", "vdevs", "poolstate"]


@pytest.mark.parametrize("name", ABSENT)
@pytest.mark.parametrize(
    "answers", [{}, {"zpool list -H -o name": "tank\n"}], ids=["no pool", "a zpool that knows nothing of it"]
)
def test_what_a_host_has_not_is_reported_once(name: str, answers: dict[str, str]) -> None:
    said: list[str] = []
    machine = FakeMachine(answers=answers)
    if name == "poolstate" and answers:
        machine.refuses = lambda command, _: "health" in command[-2]
    assert asyncio.run(find_observer(name).prepare(machine, ObserverSettings(), said.append)) is None
    assert len(said) == 1
    assert said[0].startswith(f"{name}: ")
