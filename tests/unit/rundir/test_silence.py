"""A run whose target died is not complete: the same table as in replay/record/silence_test.go."""

import numpy as np
import pytest

from plimsoll.rundir.check import Silence
from plimsoll.rundir.records import RECORD, Request, error_number, packed


def requests(
    from_s: float,
    to_s: float,
    error: str = "none",
    *,
    every_s: float = 0.1,
    took_s: float = 0.001,
    status: int = 0,
) -> list[Request]:
    """Requests at even distances, each answered after a millisecond, or failing after `took_s`."""
    count = round((to_s - from_s) / every_s)
    ok = error == "none"
    return [
        Request(
            due_ns=round((from_s + i * every_s) * 1e9),
            total_us=1000 if ok else round(took_s * 1e6),
            route="page",
            ttfb_us=900 if ok else 0,
            status=200 if ok else status,
            error=error,
        )
        for i in range(count)
    ]


ROWS: list[tuple[str, list[Request], str | None]] = [
    ("all is answered", requests(0, 60), None),
    ("nothing was sent", [], None),
    (
        "refused from the middle on",
        [*requests(0, 30), *requests(30, 60, "connect_refused")],
        "the target gave no answer after 29.9 s: the last 300 requests failed within 30.0 s, "
        "300 of them with connect_refused",
    ),
    ("it restarts", [*requests(0, 30), *requests(30, 50, "connect_refused"), *requests(50, 60)], None),
    ("one answer at the very end and it lives", [*requests(0, 59, "reset"), *requests(59, 59.1)], None),
    ("it hung", [*requests(0, 30), *requests(30, 40, "timeout", took_s=30)], "with timeout"),
    ("never one answer", requests(0, 9, "connect_failed"), "gave no answer at all"),
    (
        "the most usual failure is named",
        [*requests(0, 5), *requests(5, 6, "reset"), *requests(6, 9, "connect_refused")],
        "the last 40 requests failed within 4.0 s, 30 of them with connect_refused",
    ),
    ("nine may be chance", [*requests(0, 5), *requests(5, 14, "reset", every_s=1)], None),
    ("ten are not", [*requests(0, 5), *requests(5, 15, "reset", every_s=1)], "last 10 requests"),
    ("under two seconds may be a restart", [*requests(0, 60), *requests(60, 61.9, "reset")], None),
    ("as may a hundredth of a long run", [*requests(0, 1000), *requests(1000, 1009, "reset")], None),
    ("but not more", [*requests(0, 1000), *requests(1000, 1012, "reset")], "after 999.9 s"),
    (
        "slow requests sent before the last answer say nothing of what came after it",
        [*requests(0, 30), *requests(10, 12, "timeout", took_s=30)],
        None,
    ),
    ("a wrong answer is one", [*requests(0, 5), *requests(5, 60, "http_error", status=502)], None),
    ("what was given up here says nothing", [*requests(0, 5), *requests(5, 60, "aborted")], None),
]


@pytest.mark.parametrize(("why", "run", "said"), ROWS)
@pytest.mark.parametrize("block", [0, 1, 7, 100_000])
def test_a_target_that_answers_no_more_is_dead(
    why: str, run: list[Request], said: str | None, block: int
) -> None:
    silence = Silence()
    if block == 0:
        for request in run:
            silence.take(request)
    else:
        records = np.frombuffer(b"".join(packed(request, 0) for request in run), dtype=RECORD)
        for start in range(0, len(records), block):
            silence.take_all(records[start : start + block])
    verdict = silence.verdict()
    assert (verdict is None) == (said is None), why
    assert said is None or said in (verdict or ""), why


def test_a_number_that_no_name_has_is_other() -> None:
    records = np.frombuffer(b"".join(packed(one, 0) for one in requests(0, 9, "reset")), dtype=RECORD).copy()
    records["error"] = 250
    assert error_number("other") != 250
    silence = Silence()
    silence.take_all(records)
    assert "90 of them with other" in (silence.verdict() or "")
