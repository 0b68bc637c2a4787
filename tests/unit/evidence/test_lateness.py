"""When a load generator is too late to measure by."""

import pytest

from plimsoll.analysis.evidence.generator import is_late

RULE: list[tuple[str, float | None, float | None, bool]] = [
    ("a millisecond, beside what is faster than it", 1.0, 0.5, False),
    ("more than a millisecond, beside what is fast", 1.01, 20.0, True),
    ("a twentieth of what is slow", 5.0, 100.0, False),
    ("more than a twentieth of it", 5.01, 100.0, True),
    ("more than a twentieth of what is fast, but hardly late", 0.9, 2.0, False),
    ("more than a millisecond, but little beside what is slow", 4.0, 100.0, False),
    ("no lag is known", None, 100.0, False),
    ("no response time is known", 5.0, None, False),
]


@pytest.mark.parametrize(("what", "lag_ms", "response_ms", "late"), RULE, ids=[row[0] for row in RULE])
def test_a_generator_is_late_in_itself_and_beside_what_it_measures(
    what: str, lag_ms: float | None, response_ms: float | None, late: bool
) -> None:
    assert is_late(lag_ms, response_ms) is late, what
