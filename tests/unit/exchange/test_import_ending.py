"""How an import ends of which lines could not be read."""

import pytest

from plimsoll.analysis.exchange.importing import decide_status


@pytest.mark.parametrize(
    ("broken", "lines", "status", "why"),
    [
        (0, 1000, "complete", "all of it was read"),
        (10, 1000, "complete", "one line in a hundred is tolerable, and told"),
        (11, 1000, "failed", "what is missing may be what was slow"),
        (700, 1000, "failed", "a log of which most cannot be read is no run"),
    ],
)
def test_how_it_ends(broken: int, lines: int, status: str, why: str) -> None:
    found, reason = decide_status(broken, lines)
    assert found == status, why
    assert reason == (f"{broken} lines of 1,000 could not be read" if broken else None)
