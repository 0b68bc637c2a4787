"""When a load generator is too late to measure by."""

import json
from typing import Any

import pytest

from plimsoll.analysis.evidence.generator import is_late
from tests.support.programs import FIXTURES

ROWS = json.loads((FIXTURES / "lateness.json").read_text())


@pytest.mark.parametrize("row", ROWS, ids=[row["says"] for row in ROWS])
def test_a_generator_is_late_in_itself_and_beside_what_it_measures(row: dict[str, Any]) -> None:
    assert is_late(row["lag_ms"], row["response_ms"]) is row["limited"], row["says"]
