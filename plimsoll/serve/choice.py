"""Which of the runs are listed: searched, filtered, sorted, a page at a time. Pure; all text is hostile."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from plimsoll.serve.items import RunItem

ON_A_PAGE = 100
FILTERS: dict[str, Callable[[RunItem], str | None]] = {
    "scenario": lambda run: run.scenario,
    "backend": lambda run: run.backend,
    "status": lambda run: run.status,
    "experiment": lambda run: run.experiment,
}
_LAST = float("inf")
SORTS: dict[str, tuple[str, Callable[[RunItem], tuple[float | str, ...]]]] = {
    "newest": ("newest first", lambda run: (-run.started_at.timestamp() if run.started_at else _LAST,)),
    "oldest": ("oldest first", lambda run: (run.started_at.timestamp() if run.started_at else _LAST,)),
    "slowest": ("highest p99.9 first", lambda run: (-run.p999_ms if run.p999_ms is not None else _LAST,)),
    "fastest": ("lowest p99.9 first", lambda run: (_LAST if run.p999_ms is None else run.p999_ms,)),
    "name": ("by name", lambda run: (run.name.casefold(), str(run.place))),
}


@dataclass(frozen=True)
class Choice:
    """What was asked for: words that all occur, values of filters, an order, a page from 1."""

    words: str = ""
    wanted: Mapping[str, str] = field(default_factory=dict)
    order: str = "newest"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Choice":
        """Return what a query asks for; what it says otherwise is passed over."""
        page = query.get("page", "1")
        return cls(
            words=query.get("q", "")[:200],
            wanted={name: query[name] for name in FILTERS if query.get(name)},
            order=query.get("order", "") if query.get("order") in SORTS else "newest",
            page=int(page) if page.isascii() and page.isdigit() and 0 < len(page) < 6 else 1,
        )

    def query(self, page: int) -> str:
        """Return the query of another page of the same choice."""
        return urlencode({"q": self.words, **self.wanted, "order": self.order, "page": page})


@dataclass(frozen=True)
class Listed:
    """A page of the runs that were chosen: which page of how many, and how many runs in all."""

    runs: Sequence[RunItem]
    page: int
    pages: int
    total: int


def chosen(runs: Sequence[RunItem], choice: Choice) -> Listed:
    """Return the runs that are asked for."""
    words = choice.words.casefold().split()
    found = [
        run
        for run in runs
        if all((FILTERS[name](run) or "") == value for name, value in choice.wanted.items())
        and all(word in _text(run) for word in words)
    ]
    found.sort(key=SORTS[choice.order][1])
    pages = max(-(-len(found) // ON_A_PAGE), 1)
    page = min(max(choice.page, 1), pages)
    return Listed(found[(page - 1) * ON_A_PAGE : page * ON_A_PAGE], page, pages, len(found))


def values_of(runs: Sequence[RunItem]) -> dict[str, list[str]]:
    """Return the values that each filter can have among `runs`."""
    return {name: sorted({value for run in runs if (value := of(run))}) for name, of in FILTERS.items()}


def _text(run: RunItem) -> str:
    parts = (str(run.place), run.scenario, run.name, run.status, run.experiment or "")
    return "\n".join(parts).casefold()
