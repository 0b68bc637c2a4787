"""What runs left on a WordPress: found by the run's name, and removed, also after a kill -9."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted
from plimsoll.rundir.events import CREATED, REMOVED, RUN_NAME, read_events
from plimsoll.rundir.names import EVENTS_FILE, SHARDS_FOLDER
from plimsoll.rundir.read import read_facts
from plimsoll.scenarios.running.client import Reply, StepFailedError, StepFailure, find_failure, visible_text
from plimsoll.scenarios.running.session import CLEAN_UP, NAME, PREFIX, is_run_name
from plimsoll.scenarios.running.settings import origin
from plimsoll.scenarios.wordpress.account import KINDS, Rest, is_object, missing_sizes

ALL = "all"
_SHOWN = 3  # titles of a run
_ROUNDS = 3  # an upload that was in flight appears while the others are removed

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


@dataclass
class CleanUpRequest:
    """What to look for: runs by name (none: all of them), and what they say that they created."""

    runs: list[str] = field(default_factory=list)
    created: list[tuple[str, int]] = field(default_factory=list)
    everything: bool = False

    @property
    def is_named(self) -> bool:
        """True if the user said which runs."""
        return bool(self.runs) or self.everything


@dataclass
class CleanUpResult:
    """What is there, what was removed of it, and what stays: each with the reason."""

    leftovers: list[Leftover] = field(default_factory=list)
    removed: list[Leftover] = field(default_factory=list)
    stays: list[tuple[str, int, str]] = field(default_factory=list)  # kind, number, why
    failed: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """True if nothing of the runs is left."""
        return not self.failed and len(self.removed) == len(self.leftovers)


def read_request(runs: Iterable[str], directories: Sequence[Path], target: str) -> CleanUpRequest:
    """Return what to look for; reads the run directories. Raises SettingsError with all problems."""
    wanted, problems = CleanUpRequest(), []
    for name in runs:
        if name == ALL:
            wanted.everything = True
        elif is_run_name(name):
            wanted.runs.append(name)
        else:
            problems.append(
                f"--run: {name} is not the name of a run, such as {PREFIX}20261123t201500z-0badcafe"
            )
    for path in directories:
        try:
            _read_run(path, target, wanted)
        except PlimsollError as error:
            problems.append(str(error))
    if wanted.everything and (wanted.runs or directories):
        problems.append(f"--run: {ALL} cannot be combined with other runs")
    if problems:
        raise SettingsError("\n".join(problems))
    return wanted


def _read_run(path: Path, target: str, wanted: CleanUpRequest) -> None:
    """Add to `wanted` what the run at `path`, and its shards, say that they created."""
    facts = read_facts(path)
    if facts.target and facts.target.url and origin(facts.target.url) != origin(target):
        raise SettingsError(f"{path}: was a run on {facts.target.url}, not on {target} (--target)")
    names: list[str] = []
    created: dict[tuple[str, int], None] = {}
    for folder in (path, *sorted((path / SHARDS_FOLDER).glob("*"))):
        for event in read_events(folder / EVENTS_FILE).events:
            kind, number = event.further.get("kind"), event.further.get("id")
            if event.name == RUN_NAME and is_run_name(name := str(event.further.get("name"))):
                names.append(name)
            elif event.name in (CREATED, REMOVED) and kind in KINDS and type(number) is int and number > 0:
                if event.name == CREATED:
                    created[str(kind), number] = None
                else:
                    created.pop((str(kind), number), None)
    if not names:
        raise SettingsError(
            f"{path}: names nothing on the site: its scenario leaves nothing there, or it was killed before "
            "it began, or an older version wrote it"
        )
    wanted.runs += [name for name in dict.fromkeys(names) if name not in wanted.runs]
    wanted.created += created


def find_leftovers(there: "Leftovers", wanted: CleanUpRequest) -> CleanUpResult:
    """Return what is on the site. Raises StepFailedError."""
    found = CleanUpResult()
    for run in wanted.runs or [PREFIX]:
        found.leftovers += there.find(run)
    known = {(one.kind, one.number) for one in found.leftovers}
    for kind, number in wanted.created:
        if (kind, number) in known:
            continue
        one = there.look(kind, number)
        if isinstance(one, Leftover) and one.run in wanted.runs:
            found.leftovers.append(one)
        elif one != "gone":  # a clone that was put back has others' under these numbers
            why = f"bears the name {one.run}" if isinstance(one, Leftover) else one
            found.stays.append((kind, number, why))
    return found


def remove(there: "Leftovers", wanted: CleanUpRequest, found: CleanUpResult) -> None:
    """Remove what was found, and what of the same runs has appeared meanwhile; tries all of it."""
    runs = {one.run for one in found.leftovers}
    waiting, seen = list(found.leftovers), set(found.leftovers)
    for _ in range(_ROUNDS):
        for one in waiting:
            try:
                there.remove(one)
                found.removed.append(one)
            except StepFailedError as error:
                found.failed.append(f"{one.kind} {one.number}: {error}")
        waiting = [one for run in sorted(runs) for one in there.find(run) if one not in seen]
        if not waiting:
            return
        seen |= set(waiting)
        found.leftovers += waiting


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
            for item in self._list_items(kind, run)
            if (name := find_run_name(kind, item)) and name.startswith(run)
        ]

    def look(self, kind: str, number: int) -> Leftover | str:
        """Return what a run says that it created, or the reason why it is not one of its leftovers."""
        item = self._get_item(kind, number)
        if item is None:
            return "gone"
        name = find_run_name(kind, item)
        if name is None:
            empty = kind == "post" and item.get("status") == "auto-draft"
            return "an empty draft, which WordPress deletes by itself" if empty else "bears no run's name"
        return Leftover(kind, number, name, _title(item))

    def remove(self, one: Leftover) -> bool:
        """Delete it for good, with its files and revisions; return False if it was gone or replaced.

        An image whose sizes are still being made is waited for: WordPress would leave what it makes later.
        """
        while True:
            item = self._get_item(one.kind, one.number)
            if item is None or find_run_name(one.kind, item) != one.run:
                return False
            if one.kind != "media" or not missing_sizes(item) or not self._looks:
                break
            self._looks -= 1
            self._sleep(_LOOK_S)
        self._rest.delete(CLEAN_UP, one.kind, one.number)
        return True

    def _list_items(self, kind: str, run: str) -> Iterator[dict[str, Any]]:
        query = {"search": run, "context": "edit", "status": _STATUSES[kind], "per_page": str(_PAGE)}
        query |= {"orderby": "id", "order": "asc"}
        for page in range(1, _MOST_PAGES + 1):
            reply = self._rest.get("list", f"wp/v2/{KINDS[kind]}", query | {"page": str(page)}, _is_list)
            for item in reply.data:
                if isinstance(item, dict) and type(number := item.get("id")) is int and number > 0:
                    yield item
            pages = reply.headers.get("x-wp-totalpages", "")
            if page >= (int(pages) if pages.isdigit() else 1):
                return

    def _get_item(self, kind: str, number: int) -> dict[str, Any] | None:
        gone = False

        def check(reply: Reply) -> StepFailure | None:
            nonlocal gone
            gone = reply.status == 404 and isinstance(reply.data, dict) and "code" in reply.data
            return None if gone else is_object(reply)

        path = f"wp/v2/{KINDS[kind]}/{number}"
        data: dict[str, Any] = self._rest.get("look", path, {"context": "edit"}, check).data
        return None if gone else data


def find_run_name(kind: str, item: dict[str, Any]) -> str | None:
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


def _title(item: dict[str, Any]) -> str:
    title = item.get("title")
    said = title.get("raw", title.get("rendered", "")) if isinstance(title, dict) else ""
    return str(said).strip()


def _is_list(reply: Reply) -> StepFailure | None:
    if found := find_failure(reply):
        return found
    if reply.status == 200 and isinstance(reply.data, list):
        return None
    return StepFailure("check_failed", f"status {reply.status}, and no list: {visible_text(reply.text)}")


def describe_found(found: CleanUpResult) -> list[str]:
    """Return what was found, run by run, for the terminal. Pure."""
    lines = []
    for run in sorted({one.run for one in found.leftovers}):
        of_run = [one for one in found.leftovers if one.run == run]
        lines.append(f"{run}: {count_kinds(of_run)}")
        lines += [f"    {one.kind} {one.number}: {printable(one.title, 90)}" for one in of_run[:_SHOWN]]
        if len(of_run) > _SHOWN:
            lines.append(f"    and {len(of_run) - _SHOWN:,} more")
    lines += [f"{kind} {number} stays: {printable(why, 120)}" for kind, number, why in found.stays]
    return lines or ["Nothing on the site bears the name of such a run."]


def describe_end(found: CleanUpResult, dry_run: bool) -> list[str]:
    """Return what was removed and what was not, for the terminal. Pure."""
    lines = [printable(line, 300) for line in found.failed]
    if found.removed:
        lines.append(f"Removed {count_kinds(found.removed)}.")
    elif found.leftovers and not found.failed:
        remedy = "" if dry_run else " To remove it, name the runs with --run, and add --yes."
        lines.append(f"Nothing was removed.{remedy}")
    return lines or ["Nothing is left."]


def count_kinds(leftovers: Sequence[Leftover]) -> str:
    """Return how many of them are articles, and how many images. Pure."""
    numbers = Counter(one.kind for one in leftovers)
    said = [(numbers["post"], "article"), (numbers["media"], "image")]
    return " and ".join(counted(number, what) for number, what in said if number)
