"""docs/peers.md: what the harness measured, and, kept as it is, what people wrote about it."""

import textwrap
from collections.abc import Mapping, Sequence

from benchmarks.result import MOST_STOLEN, Result

BEGIN = "<!-- The lines from here to the end mark are written by `make peers`; changes to them are lost. -->"
END = "<!-- End of what `make peers` writes. What stands below is written by hand and is kept. -->"

_HEAD = """# How Plimsoll compares

`make peers` installs the programs below from their package registries (into `benchmarks/installed/`;
goaccess, wrk, h2load and nginx come from the system's packages; wrk2 is built from its source, where that is
given: `make peers WRK2=DIR`), runs each on the same work on one machine in one go, and writes this page.
Contenders take turns within each round (A B C, A B C, …); a ratio is taken within a round, and the figure is
the median of the rounds, with the lowest and the highest beside it. Everything stays on loopback.

"""

_TAIL = """
## Why some goals are not reached

Nothing has been written here yet.
"""


def document(results: Sequence[Result], old: str | None) -> str:
    """The page anew, with all of the old one that stands outside the marks."""
    generated = f"{BEGIN}\n\n{_generated(results)}\n{END}"
    if old is not None and BEGIN in old and END in old:
        head, _, rest = old.partition(BEGIN)
        return head + generated + rest.partition(END)[2]
    return _HEAD + generated + "\n" + _TAIL


def plain(results: Sequence[Result]) -> str:
    """Return the text to print: the figures of each case, then all goals."""
    parts = []
    for result in results:
        parts += [result.title + "\n", table(result.columns, result.rows) if result.rows else ""]
        parts += [f"{note}\n" for note in result.notes]
    return "\n".join([*parts, summary(results)])


def summary(results: Sequence[Result]) -> str:
    """All goals in one table."""
    rows = [
        [result.case, goal.what, goal.goal, goal.verdict()] for result in results for goal in result.goals
    ]
    return table(["case", "what", "goal", "verdict"], rows)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [[_escaped(cell) for cell in row] for row in [columns, *rows]]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(columns))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(lines) + "\n"


def _generated(results: Sequence[Result]) -> str:
    if not results:
        return "Nothing was measured yet: `make peers` does it.\n"
    parts = ["## Goals\n", summary(results), "## Machine and versions\n", _machine(results)]
    for result in results:
        parts += [f"## {result.title}\n", _facts(result), wrapped(result.setting)]
        if result.rows:
            parts.append(table(result.columns, result.rows))
        parts += [wrapped(note) for note in result.notes]
    return "\n".join(parts)


def wrapped(paragraph: str) -> str:
    """A paragraph in lines of at most 120 columns, with the line end after it."""
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def _facts(result: Result) -> str:
    rounds = f"{result.rounds} rounds" if result.rounds > 1 else "one round"
    load = result.machine.get("load when it began", "?")
    facts = f"*{result.date}, {rounds}, load of the machine when it began {load}{_stolen(result)}.*"
    return wrapped(facts)


def _stolen(result: Result) -> str:
    if result.stolen_share is None:
        return ""
    much = "; measure again on a quieter machine" if result.stolen_share > MOST_STOLEN else ""
    return f", {result.stolen_share:.1%} of the processors' time taken by the hypervisor{much}"


def _machine(results: Sequence[Result]) -> str:
    facts: dict[str, str] = {}
    versions: dict[str, str] = {}
    for result in results:
        facts.update({name: value for name, value in result.machine.items() if not name.startswith("load")})
        versions.update(result.versions)
    return _pairs(facts) + "\n" + _pairs(versions, "program", "version")


def _pairs(facts: Mapping[str, str], name: str = "what", value: str = "here") -> str:
    return table([name, value], [[key, text] for key, text in facts.items()])


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
