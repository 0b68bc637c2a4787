"""The report over very many records, in one run and in 200: how long, and how much memory?"""

import json
import sys
from typing import Any

from benchmarks.measure import run
from benchmarks.paths import HERE, PROJECT_PYTHON
from benchmarks.plan import BenchmarkPlan, attempt
from benchmarks.result import Result, at_most
from benchmarks.say import say

NAME = "report"
NEEDS: tuple[str, ...] = ()
MOST_ROUNDS = 1
_SIZES = ((50_000_000, 1, 30), (100_000_000, 200, 60))  # records, runs, seconds at most
_MOST_RSS_GIB = 4


def run_case(plan: BenchmarkPlan) -> Result:
    result = Result(
        NAME,
        "The report over 100,000,000 records",
        "`plimsoll report` over made-up run directories, from the start of Python to the finished page; the "
        "records were just written and so are in the page cache.",
    )
    result.columns = ["records", "runs", "time", "max RSS", "size of the page"]
    for records, runs, most_s in _SIZES:
        _measure(plan, result, records // 50 if plan.quick else records, runs, most_s)
    return result


def _measure(plan: BenchmarkPlan, result: Result, records: int, runs: int, most_s: int) -> None:
    failures: dict[str, str] = {}
    scratch = plan.scratch(NAME)
    what = f"{records:,} records in {runs} run{'s' if runs > 1 else ''}"
    say(f"report: {what}")
    python = str(PROJECT_PYTHON if PROJECT_PYTHON.exists() else sys.executable)
    size = ["--records", str(records), "--runs", str(runs), "--under", str(scratch)]
    command = [python, str(HERE / "report_scale.py"), *size]
    measured = attempt(
        NAME, failures, lambda: read(run(command, scratch, timeout_s=900, cwd=HERE.parent.parent).out)
    )
    seconds, rss_gib = (measured["seconds"], measured["max_rss_mib"] / 1024) if measured else (None, None)
    why = "; ".join(failures.values())
    result.goals += [
        at_most(f"{what}: time", seconds, most_s, "s", why),
        at_most(f"{what}: max RSS", rss_gib, _MOST_RSS_GIB, "GiB", why),
    ]
    if measured:
        page, rss = f"{measured['html_mib']} MiB", f"{measured['max_rss_mib']:,} MiB"
        result.rows.append([f"{records:,}", str(runs), f"{seconds} s", rss, page])
        result.raw.append(measured)


def read(out: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(out)
    return data
