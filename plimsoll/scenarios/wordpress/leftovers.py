"""What runs left on a WordPress: posts and media that bear a run's name, found and removed over REST."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from plimsoll.scenarios.running.client import Reply, Trouble, trouble, words
from plimsoll.scenarios.running.session import CLEAN_UP, NAME, PREFIX
from plimsoll.scenarios.wordpress.account import KINDS, Rest, is_object, missing_sizes

# What a scenario creates, and the collection of the REST interface that has it.
# Of every status but `auto-draft`: an empty draft has no title yet, and WordPress deletes it by itself.
_STATUSES = {"post": "publish,future,draft,pending,private,trash", "media": "inherit,private,trash"}
_PAGE = 100  # the most that WordPress lists at once
_MOST_PAGES = 1_000
_UNFINISHED_S = 20.0  # longer than WordPress takes for the sizes of a photograph; for all images together
_LOOK_S = 0.5
# The name ends a title. Behind it in a file's name WordPress puts what it makes of the file.
_IN_TITLE = re.compile(rf"(?:^|\s|-)({NAME.pattern})$")
_IN_FILE = re.compile(rf"-({NAME.pattern})(?:-\d+|-scaled|-rotated)*(?:\.\w+)?$")


@dataclass(frozen=True)
class Leftover:
    """A post or an image of the run called `run`; its title is hostile."""

    kind: str
    number: int
    run: str
    title: str


def run_of(kind: str, item: dict[str, Any]) -> str | None:
    """Return the run whose name a post or an attachment bears; None if it bears none. Pure.

    A post bears it at the end of its title; what its text says does not count.
    """
    if found := _IN_TITLE.search(_title(item)):
        return found[1]
    if kind != "media":
        return None
    file = unquote(urlsplit(str(item.get("source_url") or "")).path).rpartition("/")[2]
    found = _IN_FILE.search(file)
    return found[1] if found else None


class Leftovers:
    """Finds and removes them, for a user who is logged in. Methods raise StepFailedError."""

    def __init__(self, rest: Rest, sleep: Callable[[float], None] = time.sleep) -> None:
        self._rest, self._sleep = rest, sleep
        self._looks = round(_UNFINISHED_S / _LOOK_S)

    def find(self, run: str = PREFIX) -> list[Leftover]:
        """Return what bears the name `run`, or any run's, media first."""
        return [
            Leftover(kind, item["id"], name, _title(item))
            for kind in ("media", "post")
            for item in self._listed(kind, run)
            if (name := run_of(kind, item)) and name.startswith(run)
        ]

    def look(self, kind: str, number: int) -> Leftover | str:
        """Return what a run says that it created; else the reason why it is none of its leftovers."""
        item = self._item(kind, number)
        if item is None:
            return "gone"
        name = run_of(kind, item)
        if name is None:
            empty = kind == "post" and item.get("status") == "auto-draft"
            return "an empty draft, which WordPress deletes by itself" if empty else "bears no run's name"
        return Leftover(kind, number, name, _title(item))

    def remove(self, one: Leftover) -> bool:
        """Delete it for good, with its files and revisions; return False if it was gone, or is another now.

        An image whose sizes are still being made is waited for: WordPress would leave what it makes later.
        """
        while True:
            item = self._item(one.kind, one.number)
            if item is None or run_of(one.kind, item) != one.run:
                return False
            if one.kind != "media" or not missing_sizes(item) or not self._looks:
                break
            self._looks -= 1
            self._sleep(_LOOK_S)
        self._rest.delete(CLEAN_UP, one.kind, one.number)
        return True

    def _listed(self, kind: str, run: str) -> Iterator[dict[str, Any]]:
        query = {"search": run, "context": "edit", "status": _STATUSES[kind], "per_page": str(_PAGE)}
        query |= {"orderby": "id", "order": "asc"}
        for page in range(1, _MOST_PAGES + 1):
            reply = self._rest.get("list", f"wp/v2/{KINDS[kind]}", query | {"page": str(page)}, _is_list)
            yield from (item for item in reply.data if isinstance(item, dict) and _is_number(item.get("id")))
            pages = reply.headers.get("x-wp-totalpages", "")
            if page >= (int(pages) if pages.isdigit() else 1):
                return

    def _item(self, kind: str, number: int) -> dict[str, Any] | None:
        gone = False

        def check(reply: Reply) -> Trouble | None:
            nonlocal gone
            gone = reply.status == 404 and isinstance(reply.data, dict) and "code" in reply.data
            return None if gone else is_object(reply)

        path = f"wp/v2/{KINDS[kind]}/{number}"
        data: dict[str, Any] = self._rest.get("look", path, {"context": "edit"}, check).data
        return None if gone else data


def _title(item: dict[str, Any]) -> str:
    title = item.get("title")
    said = title.get("raw", title.get("rendered", "")) if isinstance(title, dict) else ""
    return str(said).strip()


def _is_list(reply: Reply) -> Trouble | None:
    if found := trouble(reply):
        return found
    if reply.status == 200 and isinstance(reply.data, list):
        return None
    return Trouble("check_failed", f"status {reply.status}, and no list: {words(reply.text)}")


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
