"""The report over fifty million records: how long, and how much memory?"""

import json
import sys
from typing import Any

from .measure import run
from .paths import HERE, PROJECT_PYTHON
from .plan import Plan, attempt
from .result import Result, at_most
from .say import say

NAME = "report"
NEEDS: tuple[str, ...] = ()
MOST_ROUNDS = 1
_MOST_S = 30
_MOST_RSS_GIB = 4


def run_case(plan: Plan) -> Result:
    records = 1_000_000 if plan.quick else 50_000_000
    result = Result(
        NAME,
        f"The report over {records:,} records",
        "`plimsoll report` over a made-up run directory of that size, from the start of Python to the "
        "finished page; the records were just written and so are in the page cache.",
    )
    failures: dict[str, str] = {}
    scratch = plan.scratch(NAME)
    say(f"report: {records:,} records")
    python = str(PROJECT_PYTHON if PROJECT_PYTHON.exists() else sys.executable)
    command = [python, str(HERE / "report_scale.py"), "--records", str(records), "--under", str(scratch)]
    measured = attempt(
        NAME, failures, lambda: read(run(command, scratch, timeout_s=600, cwd=HERE.parent.parent).out)
    )
    seconds, rss_gib = (measured["seconds"], measured["max_rss_mib"] / 1024) if measured else (None, None)
    why = "; ".join(failures.values())
    result.goals = [
        at_most("time", seconds, _MOST_S, "s", why),
        at_most("max RSS", rss_gib, _MOST_RSS_GIB, "GiB", why),
    ]
    result.columns = ["records", "time", "max RSS", "size of the page"]
    if measured:
        page = f"{measured['html_mib']} MiB"
        result.rows = [[f"{records:,}", f"{seconds} s", f"{measured['max_rss_mib']:,} MiB", page]]
        result.raw = [measured]
    return result


def read(out: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(out)
    return data
