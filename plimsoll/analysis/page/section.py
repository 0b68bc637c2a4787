"""What the sections of pages are made of, as values: tables, and figures in large."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A row: its name (hostile), its cells, and whether it is the total or names something amiss."""

    name: str
    cells: list[str]
    look: str = ""


@dataclass(frozen=True)
class Table:
    """A table: what it is, its columns and rows. `has_words`: its cells are words, which wrap."""

    title: str
    caption: str
    columns: list[str]
    rows: list[Row]
    has_words: bool = False


@dataclass(frozen=True)
class HeadlineFigure:
    """A large figure, its name, and a small line below it.

    `colour` is the number of a backend's, from 1; a `faint` figure is none to build on.
    """

    name: str
    value: str
    below: str
    first: bool = False
    colour: int | None = None
    faint: bool = False
