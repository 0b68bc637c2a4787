"""CONTRIBUTING.md lists what a merge does not test."""

import re
from pathlib import Path

from tests.support.programs import ROOT


def test_each_file_with_slow_tests_is_listed_and_no_other() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (tests/\S+\.py) \|", text, re.MULTILINE)
    marked = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path != Path(__file__)
        and re.search(r"pytest\.mark\.slow\b|\bslow_but\(", path.read_text(encoding="utf-8"))
    ]
    assert listed == marked
