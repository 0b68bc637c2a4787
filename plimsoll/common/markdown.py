"""Tables in Markdown. What stands in their cells was made harmless before (`markdown_text`)."""

from collections.abc import Iterator, Sequence


def row(*cells: str) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def heading(left: Sequence[str], figures: Sequence[str], last: Sequence[str] = ()) -> Iterator[str]:
    """Yield the two lines above the rows: columns of words, of figures (to the right), and of words again."""
    yield row(*left, *figures, *last)
    yield row(*("---" for _ in left), *("---:" for _ in figures), *("---" for _ in last))
