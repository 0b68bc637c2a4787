"""Records are held against their summary; a run whose target died is not complete."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.rundir.check import Silence, check_records
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import BLOCK_RECORDS, RECORD, WARMUP, Request, error_number, packed
from tests.support.programs import FIXTURES
from tests.support.rundir import header, records, write_run

TABLE = records(1000, client=1)
TABLE["flags"][:100] = WARMUP
TABLE["error"][50:130] = 4  # 30 of them after the warm-up
COUNTS = {"sent": 1000, "warmup": 100, "errors": 30, "ok": 870}


def _sum(table: np.ndarray) -> str:
    return hashlib.sha256(table.tobytes()).hexdigest()


def _of(
    path: Path, table: np.ndarray = TABLE, sha256: str | None = _sum(TABLE), **counts: Any
) -> RunDirectory:
    summary = {"records_sha256": sha256, "requests": COUNTS | counts}
    return RunDirectory.open(write_run(path / "run", table, summary=summary))


def _swapped(table: np.ndarray) -> np.ndarray:
    table = table.copy()
    table["total_us"] = 500
    return table


def _one_bit(table: np.ndarray) -> np.ndarray:
    table = table.copy()
    table["total_us"][-1] ^= 1
    return table


def _checked(run: RunDirectory, progress: Callable[[int], None] = lambda _: None) -> str | None:
    return check_records(run.requests, run.summary, progress)


ROWS: list[tuple[str, Callable[[Path], RunDirectory], str | None]] = [
    ("a whole run", _of, None),
    ("of an older version, without a sum", lambda path: _of(path, _swapped(TABLE), None), None),
    (
        "another run's records, as many",
        lambda path: _of(path, _swapped(TABLE)),
        "are not those that summary.json",
    ),
    (
        "one bit of the last record",
        lambda path: _of(path, _one_bit(TABLE)),
        "are not those that summary.json",
    ),
    ("the same in another order", lambda path: _of(path, TABLE[::-1]), "are not those that summary.json"),
    ("fewer than were sent", lambda path: _of(path, TABLE[:999]), None),
    ("another sum", lambda path: _of(path, sha256="0" * 64), "it says 000000000000…"),
    ("another count of errors", lambda path: _of(path, errors=0), "counts 0 requests with an error, and"),
    ("another count of good ones", lambda path: _of(path, ok=900), "counts 900 requests without an error"),
    ("another warm-up", lambda path: _of(path, warmup=0), "counts 0 requests of the warm-up, and"),
    ("no counts", lambda path: _of(path, errors=None, ok=None, warmup=None), None),
]


@pytest.mark.parametrize(("what", "make", "says"), ROWS, ids=[row[0] for row in ROWS])
def test_a_contradiction_is_one_sentence(
    tmp_path: Path, what: str, make: Callable[[Path], RunDirectory], says: str | None
) -> None:
    found = _checked(make(tmp_path))
    assert (found is None) == (says is None), what
    assert (says or "") in (found or "")


def test_nothing_is_said_of_a_run_without_a_summary(tmp_path: Path) -> None:
    assert _checked(RunDirectory.open(write_run(tmp_path / "run", TABLE))) is None


def test_half_a_record_at_the_end_does_not_count(tmp_path: Path) -> None:
    run = _of(tmp_path)
    with run.requests.path.open("ab") as file:
        file.write(bytes(67))
    assert _checked(RunDirectory.open(run.path)) is None


def test_the_header_does_not_count(tmp_path: Path) -> None:
    run = _of(tmp_path)
    run.requests.path.write_bytes(header(shape=7) + TABLE.tobytes())
    assert _checked(RunDirectory.open(run.path)) is None


def test_progress_is_told_of_every_record_block_by_block(tmp_path: Path) -> None:
    table = records(BLOCK_RECORDS + 5, client=1)
    counts = {"sent": len(table), "warmup": 0, "errors": 0, "ok": len(table)}
    seen: list[int] = []
    assert _checked(_of(tmp_path, table, _sum(table), **counts), seen.append) is None
    assert seen == [BLOCK_RECORDS, 5]


SILENCES = json.loads((FIXTURES / "silence.json").read_text())


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


@pytest.mark.parametrize("row", SILENCES, ids=[row["says"] for row in SILENCES])
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
