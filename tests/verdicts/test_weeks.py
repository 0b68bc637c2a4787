"""How often the interval of weeks before and after holds the truth, where days have effects of their own."""

from datetime import date

import numpy as np
import pytest

from plimsoll.analysis.compare.gates import RATIO
from plimsoll.analysis.statistics import standardised
from plimsoll.analysis.statistics.standardised import ServedRequests, standardise

PAIRS, DAYS, FIRST = 100, 14, date(2026, 10, 5).toordinal() - date(1970, 1, 1).toordinal()
QUANTILES = ("p50", "p99", "p99.9")


def weeks(random: np.random.Generator, first: int, images: float) -> ServedRequests:
    """Two weeks of some 6,000 requests a day, each day slower or faster than the others by a factor."""
    days = []
    for day in range(first, first + DAYS):
        count = random.poisson(6000)
        is_image = random.random(count) < images
        log_us = np.where(is_image, random.normal(8.5, 0.8, count), random.normal(11.5, 0.9, count))
        hour = (day + 3) % 7 * 24 + random.integers(0, 24, count)
        took = np.exp(log_us + random.normal(0, 0.1)).astype("u4")
        days.append((took, hour * 4 + is_image, np.full(count, day)))
    took, cell, at = (np.concatenate(column) for column in zip(*days, strict=True))
    return ServedRequests(took, np.zeros(len(took), dtype=bool), cell.astype("i8"), at.astype("i8"))


@pytest.mark.slow
def test_the_interval_holds_the_truth_about_as_often_as_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(standardised, "REPLICATES", 300)
    inside, failed = dict.fromkeys(QUANTILES, 0), 0
    for seed in range(PAIRS):
        random = np.random.default_rng(seed)
        before, after = weeks(random, FIRST, 0.5), weeks(random, FIRST + DAYS, 0.2)
        ratios = standardise(before, after, QUANTILES, 0.025).ratios
        limits = {name: (one.lower or np.inf, one.upper or 0.0) for name, one in ratios.items()}
        for name, (lower, upper) in limits.items():
            inside[name] += lower <= 1 <= upper
        failed += any(limits[name][0] > RATIO for name in ("p99", "p99.9"))
    with capsys.disabled():
        print(f"\nof {PAIRS} pairs of {DAYS} days, the interval holds 1 in {inside}; FAIL in {failed}")
    assert min(inside.values()) >= 85
    assert failed <= 5
