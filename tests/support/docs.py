"""Parts of the pages in docs/ that tests hold against the code."""

import re

from tests.support.programs import DOCS


def section(page: str, title: str) -> str:
    """A section of the second level, with its heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return text[text.index(f"## {title}") :].split("\n## ")[0]


def statistics_table(name: str) -> list[list[str]]:
    """The cells of the table of docs/statistics.md below the comment of this name, row by row."""
    text = (DOCS / "statistics.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- {name} -->\n((?:\|.*\n)+)", text)
    assert found, f"docs/statistics.md has no table {name}"
    heads, _, *rows = found[1].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (heads, *rows)]
