"""A late generator makes response times uncertain: what that cannot change is decided all the same."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.comparable import compare_json, finding_names, gated, runs_of, write_both
from tests.support.rundir import change_records, load_records

GATES = gated("phase: whole, at_most_ratio: 1.1")
LATE, LIMITED = "generator-late", "generator-limited"


@pytest.mark.parametrize(
    ("why", "ratio", "late_ms", "verdict", "finding"),
    [
        ("nobody is late", 2.0, (0, 0), "FAIL", None),
        ("4 ms beside 50 and 100 change nothing", 2.0, (4, 4), "FAIL", LATE),
        ("nor beside 50 and 25", 0.5, (4, 4), "PASS", LATE),
        ("10 ms of the candidate's 70 may be what breaks the limit", 1.2, (10, 10), "INCONCLUSIVE", LATE),
        ("10 ms of the baseline's 60 may be what keeps it", 0.95, (10, 10), "INCONCLUSIVE", LATE),
        ("one side alone is late: its load was another", 2.0, (0, 4), "INCONCLUSIVE", LIMITED),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_lateness_is_an_interval(
    tmp_path: Path, why: str, ratio: float, late_ms: tuple[int, int], verdict: str, finding: str | None
) -> None:
    write_both(tmp_path, ratio)
    for backend, late in zip(("sata", "nvme"), late_ms, strict=True):
        for path in runs_of(tmp_path, backend):
            change_records(path, lag_us=late * 1000, late_us=late * 1000)
    found = compare_json(tmp_path, GATES)
    assert found["gates"][0]["verdict"] == verdict, why
    assert {LATE, LIMITED} & set(finding_names(found)) == ({finding} if finding else set()), why
    depends = "depends on it" in found["gates"][0]["says"]
    assert depends == (verdict == "INCONCLUSIVE" and finding == LATE), why


def test_an_interval_has_both_ends_of_what_is_known(tmp_path: Path) -> None:
    write_both(tmp_path, 2.0)
    at_once = compare_json(tmp_path, GATES)["gates"][0]
    for path in [*runs_of(tmp_path, "sata"), *runs_of(tmp_path, "nvme")]:
        change_records(path, lag_us=4000, late_us=4000)
    late = compare_json(tmp_path, GATES)["gates"][0]
    assert late["lower"] < late["estimate"] < late["upper"]
    assert late["upper"] - late["lower"] > at_once["upper"] - at_once["lower"]


def test_bunched_sends_decide_nothing(tmp_path: Path) -> None:
    write_both(tmp_path, 2.0)
    for path in [*runs_of(tmp_path, "sata"), *runs_of(tmp_path, "nvme")]:
        due_us = load_records(path)["due_ns"] // 1000
        late_us = np.where(due_us % 1_000_000 < 300_000, 300_000 - due_us % 1_000_000, 0)
        change_records(path, lag_us=late_us, late_us=late_us)
    found = compare_json(tmp_path, GATES)
    assert found["gates"][0]["verdict"] == "INCONCLUSIVE"
    assert LIMITED in finding_names(found)
