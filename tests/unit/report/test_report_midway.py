"""A report on an experiment that has not ended says so at its top, and what was set aside or failed."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.report.comparison_findings import undone
from plimsoll.analysis.report.report import make_report
from tests.support.experiment import FAST, SLOW, write_one

BEGUN, ENDED = {"what": "begun"}, {"what": "ended"}
FAILED = {"what": "run failed", "run": "0003-replay--nvme--2", "backend": "nvme", "why": "no room.\nmore"}
ASIDE = {"what": "set aside", "backend": "nvme", "scenario": "replay", "why": "no room"}


@pytest.mark.parametrize(
    ("says", "done", "journal", "expected"),
    [
        ("all is done", 4, [BEGUN, ENDED], []),
        ("it runs on", 3, [BEGUN], ["Not finished: one has finished 3 of 4 runs, and has not ended."]),
        (
            "it was resumed after its end",
            4,
            [BEGUN, ENDED, BEGUN],
            ["Not finished: one has finished 4 of 4 runs, and has not ended."],
        ),
        ("it ended too early", 3, [BEGUN, ENDED], ["one ended with 3 of 4 runs."]),
        (
            "a try failed, and the next one did not",
            3,
            [BEGUN, FAILED | {"run": "0"}, ENDED],
            ["one ended with 3 of 4 runs."],
        ),
        (
            "what was set aside is named",
            3,
            [BEGUN, FAILED, ASIDE, ENDED],
            [
                "one ended with 3 of 4 runs.",
                "Set aside: replay on nvme: no room.",
                "Failed, and not repeated since: 0003-replay--nvme--2: no room.",
            ],
        ),
        (
            "what is tried again is set aside no more",
            3,
            [BEGUN, ASIDE, ENDED, {"what": "tried again"}, BEGUN],
            ["Not finished: one has finished 3 of 4 runs, and has not ended."],
        ),
    ],
)
def test_what_is_not_done_is_said(
    says: str, done: int, journal: list[dict[str, Any]], expected: list[str]
) -> None:
    assert undone("one", {str(number) for number in range(done)}, 4, journal) == expected, says


def test_a_report_made_midway_says_so_at_its_top(tmp_path: Path) -> None:
    folder = tmp_path / "one-machine-20261122T200000Z"
    for number, (backend, kind) in enumerate([("nvme", FAST), ("sata", SLOW)], 1):
        path = folder / "runs" / f"000{number}-replay--{backend}--1"
        write_one(path, backend, 1, number=(number, 8), **kind)
    (folder / "lab.json").write_text("{}")
    hostile = ASIDE | {"why": "<script>alert(1)</script>\x1b[2J"}
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (BEGUN, hostile)))
    report = make_report([folder])
    page = report.path.read_text()
    first = f"Not finished: {folder.name} has finished 2 of 8 runs, and has not ended."
    assert report.unfinished[0] == first
    assert page.index("<h1>") < page.index(first) < page.index('id="warnings"')
    assert "Set aside: replay on nvme: &lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J." in page
    assert "of the 8 runs of experiment" not in page  # said once
    with (folder / "journal.jsonl").open("a") as file:
        file.write('{"what": "ended"}\n')
    assert "Not finished: " not in make_report([folder / "runs"]).path.read_text()
