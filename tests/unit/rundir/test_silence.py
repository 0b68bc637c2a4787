"""A run whose target died is not complete: replay/record/answers_test.go reads the same table."""

import json
from typing import Any

import numpy as np
import pytest

from plimsoll.rundir.check import Silence
from plimsoll.rundir.records import RECORD, Request, error_number, packed
from tests.support.programs import FIXTURES

ROWS = json.loads((FIXTURES / "silence.json").read_text())


def requests(part: dict[str, Any]) -> list[Request]:
    """Requests at even distances, each answered after a millisecond, or failing."""
    count = round((part["to_s"] - part["from_s"]) / part["every_s"])
    error = part.get("error", "none")
    ok = error == "none"
    return [
        Request(
            due_ns=round((part["from_s"] + i * part["every_s"]) * 1e9),
            total_us=1000 if ok else round(part["took_s"] * 1e6),
            route="page",
            ttfb_us=900 if ok else 0,
            status=200 if ok else part.get("status", 0),
            error=error,
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("row", ROWS, ids=[row["says"] for row in ROWS])
@pytest.mark.parametrize("block", [0, 1, 7, 100_000])
def test_a_target_that_answers_no_more_is_dead(row: dict[str, Any], block: int) -> None:
    run = [request for part in row["run"] for request in requests(part)]
    silence = Silence()
    if block == 0:
        for request in run:
            silence.take(request)
    else:
        records = np.frombuffer(b"".join(packed(request, 0) for request in run), dtype=RECORD)
        for start in range(0, len(records), block):
            silence.take_all(records[start : start + block])
    assert silence.verdict() == row["verdict"]


def test_a_number_that_no_name_has_is_other() -> None:
    run = requests({"from_s": 0, "to_s": 9, "every_s": 0.1, "error": "reset", "took_s": 0.001})
    records = np.frombuffer(b"".join(packed(one, 0) for one in run), dtype=RECORD).copy()
    records["error"] = 250
    assert error_number("other") != 250
    silence = Silence()
    silence.take_all(records)
    assert "90 of them with other" in (silence.verdict() or "")
