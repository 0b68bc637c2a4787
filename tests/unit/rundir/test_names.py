"""The list of a run directory's files is the one that docs/run-format.md has."""

import re

from plimsoll.rundir.names import DERIVED, RECORDS
from tests.support.programs import ROOT


def test_the_document_lists_the_same_files_and_folders() -> None:
    text = (ROOT / "docs" / "run-format.md").read_text(encoding="utf-8")
    table = text.partition("| file | what it holds | written |\n")[2].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines()[1:]]
    documented = [name.rstrip("/") for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert documented == [*RECORDS, *DERIVED]
