"""What pages are made of, as values: sections with their sentences, figures in large, tables and findings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.page.chart import Chart


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

    `colour` is the number of a backend's, from 1; a `faint` figure is not reliable.
    """

    name: str
    value: str
    below: str
    first: bool = False
    colour: int | None = None
    faint: bool = False


@dataclass(frozen=True)
class Sentence:
    """A sentence, the backend it is about (hostile), and the number of that backend's colour, from 1."""

    text: str
    backend: str = ""
    colour: int | None = None


@dataclass(frozen=True)
class Section:
    """One section of a page. All text may be hostile; what is empty is left out.

    Its findings stand at the top of the page, wherever the section stands. `sections` are those within it.
    `layout` is the template's macro that lays it out; `key` and `look` are the id and the class of its
    element; a `folded` one shows its title only.
    """

    title: str = ""
    sentences: Sequence[Sentence] = ()
    figures: Sequence[HeadlineFigure] = ()
    caption: str = ""
    charts: Sequence[Chart] = ()
    tables: Sequence[Table] = ()
    sections: Sequence["Section"] = ()
    findings: Sequence[Finding] = ()
    layout: str = "plain"
    folded: bool = False
    key: str = ""
    look: str = ""

    def all_charts(self) -> Iterator[Chart]:
        """Yield the charts of the section and of those within it, in their order on the page."""
        yield from self.charts
        for each in self.sections:
            yield from each.all_charts()
