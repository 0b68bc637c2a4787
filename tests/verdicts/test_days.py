"""How often days of access logs raise a false alarm, and how soon a planted change is reported."""

from collections.abc import Sequence

import numpy as np
import pytest

from plimsoll.analysis.regress import levels
from plimsoll.analysis.regress.days import REFERENCE_DAYS
from plimsoll.analysis.regress.nights import PERCENTILES
from plimsoll.analysis.statistics.standardised import Reference, Served, ServedDay, alike, weekday
from tests.verdicts.regress import alarms

QUIET, PLANTED, SITES, RATIO = 30, 15, 60, 1.3
DAYS, MOVE, FIRST = 84, 56, 20_731  # a Monday
PER_DAY = 4000


def served(random: np.random.Generator, number: int, images: float, ratio: float) -> ServedDay:
    """A day: slower or faster than others by a factor, and at weekends a third faster."""
    count = random.poisson(PER_DAY)
    is_image = random.random(count) < images
    log_us = np.where(is_image, random.normal(8.5, 0.8, count), random.normal(11.5, 0.9, count))
    factor = random.normal(0, 0.1) + np.log(ratio * (0.67 if weekday(number) >= 5 else 1))
    hour = number * 24 + np.sort(random.integers(0, 24, count))
    requests = Served(
        hour,
        is_image.astype("i8"),
        np.exp(log_us + factor).astype("u4"),
        np.zeros(count, dtype=bool),
        np.ones(count, dtype="i8"),
    )
    return ServedDay(number, alike(requests))


def series(seed: int, ratio: float) -> dict[str, list[float]]:
    """Twelve weeks. After eight, half of the requests are images no more, but a fifth, and all are slower."""
    random = np.random.default_rng(seed)
    days = [served(random, FIRST + at, *((0.2, ratio) if at >= MOVE else (0.5, 1.0))) for at in range(DAYS)]
    reference = Reference(days[:REFERENCE_DAYS])
    figures = [reference.figures(day).quantiles_ms for day in days]
    return {name: [value for each in figures if (value := each[name]) is not None] for name in PERCENTILES}


def first_alarm(found: dict[str, list[float]], first: int) -> int | None:
    """Return after how many days the first of the series tells of a change; None: never."""
    alarmed = [alarms(np.log(values) - np.log(50), first) for values in found.values()]
    return min((each for each in alarmed if each is not None), default=None)


def spread(values: Sequence[float]) -> float:
    return float(np.log(values).std())


@pytest.mark.slow
def test_quiet_days_are_quiet_and_a_slower_site_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = [series(seed, 1.0) for seed in range(QUIET)]
    false = sum(first_alarm(each, 1) is not None for each in quiet)
    alarmed = [first_alarm(series(1000 + seed, RATIO), MOVE + 1) for seed in range(PLANTED)]
    days = [each - MOVE for each in alarmed if each is not None]
    soon = [each for each in days if each <= levels.RECENT]
    spreads = {name: round(float(np.mean([spread(each[name]) for each in quiet])), 3) for name in PERCENTILES}
    moved = np.mean([np.log(each["p99"][MOVE:]).mean() - np.log(each["p99"][:MOVE]).mean() for each in quiet])
    with capsys.disabled():
        print(
            f"\nof {QUIET} quiet sites of {DAYS} days {false} had an alarm; of {PLANTED} that became {RATIO} "
            f"times as slow {len(soon)} were found, in the median on day {np.median(soon)}; days differ by "
            f"{spreads} (logarithms); the new mix moved p99 by {moved:.3f}"
        )
    assert false <= 2
    assert len(soon) >= PLANTED - 2
    assert abs(moved) < 0.03


def against_weekday(logs: np.ndarray, reference: int) -> np.ndarray:
    """Return what `logs`, a value a day, are against the others of their weekday among the first days."""
    at = np.arange(len(logs))
    known = at < reference
    others = [known & (at % 7 == each % 7) & (at != each) for each in at]
    return np.array([logs[each] - logs[same].mean() for each, same in zip(at, others, strict=True)])


@pytest.mark.slow
def test_a_step_is_found_in_spite_of_quick_weekends(capsys: pytest.CaptureFixture[str]) -> None:
    alarmed = dict.fromkeys(("as they are", "against 14 days", "against 28 days"), 0)
    for seed in range(SITES):
        logs = np.random.default_rng(seed).normal(0, np.log1p(0.1), 60 + levels.RECENT)
        logs[np.arange(len(logs)) % 7 >= 5] -= 0.3
        logs[60:] += np.log(RATIO)
        for name, values in zip(
            alarmed, (logs, against_weekday(logs, 14), against_weekday(logs, REFERENCE_DAYS)), strict=True
        ):
            alarmed[name] += alarms(values, 61) is not None
    with capsys.disabled():
        print(f"\nof {SITES} sites with quicker weekends, a step of {RATIO} was reported on {alarmed}")
    assert alarmed["against 28 days"] >= 0.95 * SITES
    assert alarmed["as they are"] < 0.6 * SITES
