"""Imported access logs in the history: their days are nights, matched by hour of the week and route."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from plimsoll.analysis.regress.days import (
    Day,
    HourRow,
    LogRow,
    LogStore,
    choose_reference,
    find_refusals,
    group_days,
)
from plimsoll.analysis.regress.intake import add_runs, digest_run, select_readable
from plimsoll.analysis.regress.nights import NightFacts, NightKey
from plimsoll.analysis.regress.store import open_history
from plimsoll.analysis.regress.tonight import judge_last_night
from plimsoll.analysis.statistics.standardised import alike
from plimsoll.rundir.facts import RunFacts
from tests.support.comparable import OLD_IS_FINE, regress
from tests.support.rundir import DAY_NS, day, even_requests, write_imported

UTC = ZoneInfo("UTC")
MONDAY = 20_731  # days since 1970: 2026-10-05
SETTINGS = {"log_format": "F", "timeout_s": 60.0}


def log(number: int, first_hour: int, last_hour: int, **settings: Any) -> LogRow:
    """A log of whole hours since Monday's first."""
    facts = RunFacts.model_validate(
        {"format": 1, "scenario": "shop", "load": {"digest": "", "settings": SETTINGS | settings}}
    )
    first, last = ((MONDAY * 24 + hour) * 3600 * 10**6 for hour in (first_hour, last_hour))
    return LogRow(
        number, f"log {number}", f"disk {number}", first + 1, last - 1, (), facts, f"/logs/{number}"
    )


def hours(of: LogRow, requests: int = 1000, refused: int = 0) -> list[HourRow]:
    """Every hour of it, with so many requests."""
    first, last = (each // (3600 * 10**6) for each in (of.first_us, of.last_us))
    return [HourRow(of.id, hour, requests, 0, refused) for hour in range(first, last + 1)]


def ordered(*rows: HourRow) -> list[HourRow]:
    return sorted(rows, key=lambda row: (row.hour, row.log))


def test_a_day_is_one_that_is_over() -> None:
    one = log(1, 0, 60)
    assert [each.name for each in group_days([one], hours(one), UTC)] == ["2026-10-05", "2026-10-06"]


def test_the_first_day_is_one_from_its_first_hour_on() -> None:
    """A request that began a moment before midnight makes no day."""
    one = log(1, -1, 60)
    assert [each.name for each in group_days([one], hours(one), UTC)] == ["2026-10-05", "2026-10-06"]
    quiet = log(1, 3, 48)  # nobody comes before three
    rows = [row for row in hours(quiet) if row.hour % 24 >= 3]
    assert [each.name for each in group_days([quiet], rows, UTC)] == ["2026-10-06"]


def test_a_day_begins_when_clocks_of_the_zone_say_so_also_where_these_change() -> None:
    """On 25 October 2026 Berlin's clocks go back: that day has 25 hours."""
    one = log(1, -24, 24 * 28)
    found = {each.name: each for each in group_days([one], hours(one), ZoneInfo("Europe/Berlin"))}
    lengths = {name: len(each.hours) for name, each in found.items() if each.is_whole}
    assert lengths.pop("2026-10-25") == 25
    assert set(lengths.values()) == {24}
    assert f"{found['2026-10-24'].began:%d %H}" == "23 22"
    assert f"{found['2026-10-26'].began:%d %H}" == "25 23"


OVERLAPS = [
    ("a rotated log that was imported twice", (0, 48), (24, 72), 1000, 1000, [24_000, 24_000, 24_000], ""),
    ("a log that grew", (0, 30), (0, 48), 1000, 1000, [24_000, 24_000], ""),
    ("one that begins where the other ends", (0, 24), (24, 48), 1000, 1000, [24_000, 24_000], ""),
    (
        "logs of two servers",
        (0, 48),
        (0, 48),
        1000,
        600,
        [24_000, 24_000],
        "other requests of the same hours",
    ),
]


@pytest.mark.parametrize(("what", "one", "two", "n", "m", "counts", "why"), OVERLAPS)
def test_logs_that_overlap(
    what: str, one: tuple[int, int], two: tuple[int, int], n: int, m: int, counts: list[int], why: str
) -> None:
    first, second = log(1, *one), log(2, *two)
    found = group_days([first, second], ordered(*hours(first, n), *hours(second, m)), UTC)
    assert [each.requests for each in found] == counts, what
    assert any(why in each for each in found[0].why) if why else not found[0].why


def test_an_hour_in_which_a_log_was_rotated_is_whole() -> None:
    first, second = log(1, 0, 7), log(2, 7, 24)
    first = replace(first, last_us=first.last_us - 35 * 60 * 10**6)
    second = replace(second, first_us=first.last_us - 1)
    rows = ordered(*hours(first), HourRow(2, MONDAY * 24 + 6, 500, 0, 0), *hours(log(2, 7, 24)))
    (found,) = group_days([first, second], rows, UTC)
    assert found.requests == 24_500


def test_a_whole_import_is_taken_before_one_that_was_interrupted() -> None:
    broken, whole = replace(log(1, 0, 48), unfit=("was interrupted.",)), log(2, 0, 24)
    found = group_days([broken, whole], ordered(*hours(broken, 1000), *hours(whole, 900)), UTC)
    assert [(each.logs[0].id, bool(each.why)) for each in found] == [(2, False), (1, True)]


def weeks(count: int = 6) -> list[Day]:
    one = log(1, 0, 24 * 7 * count)
    return group_days([one], hours(one), UTC)


def test_the_reference_is_the_first_four_weeks_or_those_of_the_baseline() -> None:
    days = weeks()
    assert [each.number for each in choose_reference(days, None)] == [MONDAY + at for at in range(28)]
    assert choose_reference(days, days[7].name)[0].number == MONDAY + 7
    assert choose_reference(days, days[-1].name) == days[-28:]
    assert len(choose_reference(days[:9], None)) == 9


def test_a_day_of_failures_is_in_no_reference() -> None:
    days = weeks(4)
    days[5] = replace(days[5], hours=tuple(row._replace(failed=100) for row in days[5].hours))
    assert [each.number - MONDAY for each in choose_reference(days, None)] == [*range(5), *range(6, 28)]


REFUSED = [
    ("the same", log(2, 24 * 28, 24 * 29), 0, None),
    ("read in another way", log(2, 24 * 28, 24 * 29, log_format="G"), 0, "was not read as those"),
    ("a day of 404s is not a fast day", log(2, 24 * 28, 24 * 29), 300, "30 % of its requests were answered"),
]


@pytest.mark.parametrize(("what", "other", "refused", "says"), REFUSED, ids=[row[0] for row in REFUSED])
def test_days_that_are_no_evidence(what: str, other: LogRow, refused: int, says: str | None) -> None:
    (found,) = group_days([other], hours(other, refused=refused), UTC)
    told = list(find_refusals(found, weeks(4)))
    assert says is None or says in told[0], what
    assert bool(told) == (says is not None)


def values(kept: Any, name: str = "days of accesslog") -> dict[tuple[str, str], float]:
    rows = kept.connection.execute(
        "SELECT night.name, metric, value FROM figure JOIN run ON run.id = figure.run "
        "JOIN night ON night.id = run.night WHERE experiment = ?",
        (name,),
    )
    return {(row[0], row[1]): row[2] for row in rows}


def test_figures_are_the_same_however_the_log_was_cut_and_imported(tmp_path: Path) -> None:
    """In one piece; rotated at 06:25; and with a part twice."""
    whole = even_requests(15, 0.4, 1.0, 1, per_day=1200)
    cut = int(np.searchsorted(whole["due_ns"], 8 * DAY_NS + 385 * 60 * 10**9))
    later = whole[cut:].copy()
    began = day(0) + timedelta(microseconds=int(later["due_ns"][0]) / 1000)
    later["due_ns"] -= later["due_ns"][0]
    write_imported(tmp_path / "whole" / "x", day(0), whole)
    write_imported(tmp_path / "cut" / "first", day(0), whole[:cut])
    write_imported(tmp_path / "cut" / "second", began, later)
    found: list[dict[tuple[str, str], float]] = []
    for folders in (["whole/x"], ["cut/first", "cut/second"], ["whole/x", "cut/second"]):
        with open_history(tmp_path / f"{len(found)}.sqlite") as kept:
            for folder in folders:
                add_runs(kept, select_readable([tmp_path / folder]))
            judge_last_night(kept, "days of accesslog")
            found.append(values(kept))
    assert len({key[0] for key in found[0]}) == 15
    assert found[1] == pytest.approx(found[0], rel=1e-9)
    assert found[2] == pytest.approx(found[0], rel=1e-9)


def test_the_weeks_after_a_move_are_told_by_those_before(tmp_path: Path) -> None:
    """Fewer images after the move, which is no regression; slower from the third day on, which is one."""
    file = tmp_path / "history.sqlite"
    write_imported(tmp_path / "before", day(0), even_requests(28, 0.5, 1.0, 1, per_day=2400))
    write_imported(tmp_path / "quiet", day(28), even_requests(2, 0.2, 1.0, 2, per_day=2400), backend="nvme")
    write_imported(tmp_path / "after", day(30), even_requests(6, 0.2, 1.6, 3, per_day=2400), backend="zfs")
    first = regress(file, tmp_path / "before", tmp_path / "quiet", *OLD_IS_FINE)
    assert first.exit_code == 0, first.output
    told = regress(file, tmp_path / "after", *OLD_IS_FINE)
    assert told.exit_code == 1, told.output
    said = " ".join(told.output.split())
    assert "WORSE: days of accesslog, 2026-11-09, day 36." in said
    assert "slower since 2026-11-04, reported before" in said
    assert "note: 2026-11-06: accesslog, whole: p50" in said, "it is judged day by day"
    again = regress(file, "--json", *OLD_IS_FINE)
    assert again.exit_code == 1
    (found,) = json.loads(again.stdout)["experiments"]
    assert {each["metric"]: each["state"] for each in found["series"]} == {
        "p99.9": "known",
        "p99": "known",
        "p50": "known",
        "error share": "steady",
    }
    accepted = regress(file, "--accept", "--note", "the new disks cost that", *OLD_IS_FINE)
    assert accepted.exit_code == 0, accepted.output


def test_a_failing_day_is_not_fast(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite"
    write_imported(tmp_path / "before", day(0), even_requests(14, 0.5, 1.0, 1, per_day=1200))
    write_imported(tmp_path / "after", day(14), even_requests(1, 0.5, 0.1, 2, failures=0.3, per_day=1200))
    told = regress(file, tmp_path / "before", tmp_path / "after", *OLD_IS_FINE)
    assert told.exit_code == 3
    assert "failed so often that the p99 is a failure's" in " ".join(told.output.split())


WRONG = [
    ("another zone than before", ["--time-zone", "Europe/Berlin"], "counts days of accesslog in UTC"),
    ("no zone", ["--time-zone", "../../etc/passwd"], "leave the option out"),
]


@pytest.mark.parametrize(("what", "words", "says"), WRONG, ids=[row[0] for row in WRONG])
def test_zones_that_do_not_fit(tmp_path: Path, what: str, words: list[str], says: str) -> None:
    file = tmp_path / "history.sqlite"
    folder = write_imported(tmp_path / "log", day(0), even_requests(1, 0.5, 1.0, 1, per_day=240))
    assert regress(file, folder, *OLD_IS_FINE).exit_code == 0
    told = regress(file, folder, *words, *OLD_IS_FINE)
    assert (told.exit_code, says in told.output + told.stderr) == (2, True), what


def test_a_log_of_less_than_a_day_says_so(tmp_path: Path) -> None:
    folder = write_imported(tmp_path / "log", day(0), even_requests(1, 0.5, 1.0, 1, per_day=240)[:100])
    told = regress(tmp_path / "history.sqlite", folder)
    assert told.exit_code == 3
    assert "no day of its log is over yet" in told.stderr


def test_the_raw_log_may_go_once_its_hours_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite"
    folder = write_imported(tmp_path / "log", day(-400), even_requests(3, 0.5, 1.0, 1, per_day=240))
    told = regress(file, folder, "--keep-raw-days", "30", *OLD_IS_FINE)
    assert "raw data of 1 run deleted" in told.stderr
    assert not (folder / "run").exists()
    with open_history(file) as kept:
        rows = list(LogStore(kept).hours("days of accesslog"))
        assert sum(row.requests for row in rows) == LogStore(kept).served(rows).requests == 720


def test_a_log_that_an_older_version_kept_as_a_run_becomes_days(tmp_path: Path) -> None:
    folder = write_imported(tmp_path / "log", day(0), even_requests(2, 0.5, 1.0, 1, per_day=240))
    selected = select_readable([folder])
    with open_history(tmp_path / "history.sqlite") as kept:
        night = NightFacts(NightKey("", "2026-10-05"), "2026-10-05T00:00:00.000000Z", None, "")
        kept.keep(replace(digest_run(selected.runs[0]), night=night))
        assert kept.experiments() == [""]
        add_runs(kept, selected)
        judge_last_night(kept, "days of accesslog")
        assert kept.experiments() == ["days of accesslog"]
        assert [each.name for each in kept.nights("days of accesslog")] == ["2026-10-05", "2026-10-06"]


def test_what_is_packed_is_what_was_served(tmp_path: Path) -> None:
    requests = even_requests(2, 0.5, 1.0, 1, failures=0.1, per_day=2400)
    folder = write_imported(tmp_path / "log", day(0), requests)
    with open_history(tmp_path / "history.sqlite") as kept:
        add_runs(kept, select_readable([folder]))
        served = LogStore(kept).served(LogStore(kept).hours("days of accesslog"))
    failures = requests["status"] == 503
    took = np.where(failures, np.maximum(requests["total_us"], 60_000_000), requests["total_us"])
    assert np.array_equal(np.sort(np.repeat(served.took_us, served.number)), np.sort(took))
    assert served.failures == failures.sum()
    again = alike(served)
    assert np.array_equal(again.took_us, served.took_us)
