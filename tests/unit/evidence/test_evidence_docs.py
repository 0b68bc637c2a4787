"""docs/evidence.md lists every kind of finding, and none that there is not."""

import re

from plimsoll.analysis.evidence.finding import FindingKind
from tests.support.programs import ROOT


def test_the_table_of_findings_is_that_of_the_enum() -> None:
    text = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8").split("## All findings")[1]
    rows = re.findall(r"^\| `(.+?)` \| (\w+) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    assert [tuple(row) for row in rows] == [
        (kind.label, kind.level.value, kind.meaning, kind.remedy) for kind in FindingKind
    ]


def test_every_name_is_one_kind() -> None:
    names = [kind.label for kind in FindingKind]
    assert len(set(names)) == len(names)
