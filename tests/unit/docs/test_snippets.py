"""What the documents give to be pasted does what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.analysis.statistics.percentiles import P999, Sample
from tests.support.programs import DOCS
from tests.support.rundir import records, write_run

COUNTS = [
    ("one thousand", 1000),
    ("a multiple of a thousand, where 99.9 / 100 would be a rank too high", 7000),
    ("a count between", 7001),
]


@pytest.mark.parametrize(("what", "requests"), COUNTS, ids=[row[0] for row in COUNTS])
def test_the_five_lines_print_the_p999_that_plimsoll_has(tmp_path: Path, what: str, requests: int) -> None:
    text = (DOCS / "run-format.md").read_text(encoding="utf-8")
    snippet = re.search(r"Read it in five lines:\n\n```python\n(.+?)```", text, re.DOTALL)
    assert snippet
    table = records(requests)
    table["lag_us"], table["total_us"] = 7, range(1, requests + 1)
    write_run(tmp_path / "results" / "latest", table)
    ran = subprocess.run(
        [sys.executable, "-c", snippet[1]], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    wanted = Sample.of(table["lag_us"] + table["total_us"]).percentile_ms(P999)
    assert ran.stdout == f"p99.9 of {requests} requests: {wanted} ms\n", what
