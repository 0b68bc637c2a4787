"""Numbers as people read them."""

import pytest

from plimsoll.common.units import milliseconds, seconds, share

DURATIONS = [
    (0.0, "0 s"),
    (9.94, "9.94 s"),
    (9.95, "10 s"),
    (119.4, "119 s"),
    (119.5, "2 min"),
    (125.0, "2 min 5 s"),
    (7199.4, "119 min 59 s"),
    (7199.5, "2 h"),
    (7229.0, "2 h"),
    (12_000.0, "3 h 20 min"),
    (12_030.1, "3 h 21 min"),
]
TIMES = [
    (None, "–"),
    (0.85, "0.85 ms"),
    (999.4, "999 ms"),
    (999.5, "1 s"),
    (119_499.0, "119 s"),
    (119_500.0, "2 min"),
]
SHARES = [(0, 0, "0 %"), (0, 5, "0 %"), (1, 20_000, "under 0.01 %"), (1, 10_000, "0.01 %"), (5, 5, "100 %")]
SHARES += [
    (9_999, 10_000, "99.99 %"),
    (9_996, 10_000, "99.96 %"),
    (19_999, 20_000, "over 99.99 %"),
    (1, 768, "0.13 %"),
]


@pytest.mark.parametrize(("value_s", "says"), DURATIONS)
def test_a_duration_has_the_units_that_suit_it(value_s: float, says: str) -> None:
    assert seconds(value_s) == says


@pytest.mark.parametrize(("value_ms", "says"), TIMES)
def test_a_time_has_the_unit_that_suits_it(value_ms: float | None, says: str) -> None:
    assert milliseconds(value_ms) == says


@pytest.mark.parametrize(("part", "whole", "says"), SHARES)
def test_a_share_is_never_none_or_all_unless_it_is(part: int, whole: int, says: str) -> None:
    assert share(part, whole) == says
