"""The result of `plimsoll same` as evidence: do both sides serve the same pages? See docs/same.md."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.sides import Side
from plimsoll.analysis.page.section import Row, Table
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.units import count, counted
from plimsoll.rundir.facts import RunTarget
from plimsoll.rundir.read import read_json

RESULT = "same.json"
_FRESH = timedelta(days=7)
_MOST_NAMED = 3
_MOST_ROWS = 20
_LONGEST = 200


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class PageCounts(_Model):
    """Pages by what became of them; `same_2xx` are those of `same` that have such a status."""

    total: NonNegativeInt
    same: NonNegativeInt
    same_2xx: NonNegativeInt
    different: NonNegativeInt
    not_compared: NonNegativeInt
    unseen: NonNegativeInt


class Chosen(_Model):
    """Of the log's requests and pages: how many were left out, by reason."""

    left_out: dict[str, NonNegativeInt]


class PageFinding(_Model):
    """One page that differs, or could not be compared. All texts are hostile."""

    path: str
    outcome: str
    kind: str = ""
    header: str = ""
    where: str = ""
    baseline: str = ""
    candidate: str = ""
    why: str = ""

    @property
    def what(self) -> str:
        """In what the page differs (hostile): `header, Location`."""
        return ", ".join(part for part in (self.kind or self.outcome, self.header, self.where) if part)


class PageComparison(_Model):
    """What same.json says. Names and texts are hostile."""

    format: Literal[1]
    status: Literal["running", "complete", "interrupted", "failed"]
    verdict: Literal["same", "different", "inconclusive"]
    says: str
    started_at: AwareDatetime
    ended_at: AwareDatetime | None
    baseline: RunTarget
    candidate: RunTarget
    contents: list[dict[str, Any]]
    settings: dict[str, Any]
    chosen: Chosen
    pages: PageCounts
    shown: list[PageFinding] = Field(max_length=1000)

    @property
    def different(self) -> list[PageFinding]:
        """The first pages that differ."""
        return [page for page in self.shown if page.outcome == "different"]

    @property
    def is_same(self) -> bool:
        """True where the comparison ended, and found both sides to be the same."""
        return self.status == "complete" and self.verdict == "same" and not self.pages.different

    @property
    def sentence(self) -> str:
        """What it comes to."""
        if self.is_same:
            return f"{self.pages.same:,} of {counted(self.pages.total, 'page')} are the same on both sides"
        return f"of {counted(self.pages.total, 'page')}, {self.pages.different:,} differ between the sides"

    def as_json(self) -> dict[str, object]:
        """Return what signoff.json keeps of it."""
        return self.model_dump(
            mode="json",
            include={"status", "verdict", "says", "started_at", "ended_at", "baseline", "candidate"},
        ) | {"pages": self.pages.model_dump()}


def read_page_comparison(folder: Path) -> PageComparison:
    """Read the result in `folder`. Raises PlimsollError where there is none."""
    path = folder / RESULT
    found = read_json(path)
    if found is None:
        raise SettingsError(f"{path}: is not there: give the folder that plimsoll same wrote")
    try:
        return PageComparison.model_validate(found)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"])) or "the file"
        raise SettingsError(
            f"{path}: {printable(key)}: {problem['msg']}: it was changed, or is of another "
            "version: compare again"
        ) from None


def find_page_findings(result: PageComparison, sides: tuple[Side, Side]) -> list[Finding]:
    """Return what the result means for a verdict on these sides. Pure.

    Pages that differ break the gates; a result that is not whole, or not of these runs, forbids a PASS.
    """
    return [
        *_find_different(result, sides),
        *_find_unknown(result),
        *_find_elsewhere(result, sides),
        *_find_left_out(result),
    ]


def _find_different(result: PageComparison, sides: tuple[Side, Side]) -> Iterator[Finding]:
    if result.pages.different:
        named = "; ".join(
            f"{printable(page.path, _LONGEST)} ({page.what})" for page in result.different[:_MOST_NAMED]
        )
        seen = result.pages.total - result.pages.unseen
        text = (
            f"{result.pages.different:,} of {counted(seen, 'page')} are not the same on {sides[1].name} as "
            f"on {sides[0].name}: {named}."
        )
        yield Finding(FindingKind.OTHER_PAGES, text, worse=True)


def _find_unknown(result: PageComparison) -> Iterator[Finding]:
    if result.pages.different or result.is_same:
        return
    ways = {
        "running": "did not end, or was killed",
        "interrupted": f"was interrupted: {result.says}",
        "failed": f"failed: {result.says}",
        "complete": f"failed: {result.says}",
    }
    yield Finding(FindingKind.PAGES_UNKNOWN, f"The comparison of pages {ways[result.status]}.")


def _find_elsewhere(result: PageComparison, sides: tuple[Side, Side]) -> Iterator[Finding]:
    for side, asked in zip(sides, (result.baseline, result.candidate), strict=True):
        loaded = [target for run in side.runs if (target := run.directory.facts.target)]
        other = next((target for target in loaded if not _is_same_server(target, asked)), None)
        if other is not None:
            text = (
                f"The pages were compared with {_target_text(asked)}, and runs of {side.name} loaded "
                f"{_target_text(other)}."
            )
            yield Finding(FindingKind.PAGES_ELSEWHERE, text)
    yield from _find_other_logs(result, sides)
    yield from _find_another_time(result, sides)


def _is_same_server(one: RunTarget, other: RunTarget) -> bool:
    """Return whether two targets are one server, asked by one name."""
    if one.url.rstrip("/").lower() != other.url.rstrip("/").lower():
        return False
    return one.connect_to == other.connect_to or bool({*one.addresses} & {*other.addresses})


def _target_text(target: RunTarget) -> str:
    return f"{target.url} at {target.connect_to}" if target.connect_to else target.url


def _find_other_logs(result: PageComparison, sides: tuple[Side, Side]) -> Iterator[Finding]:
    """Yield a finding where no log of the runs is one whose pages were compared."""
    loads = [run.directory.facts.load for side in sides for run in side.runs]
    logs = [load.settings.get("logs") for load in loads if load is not None]
    replayed = _digests(log for each in logs if isinstance(each, list) for log in each)
    if replayed and not replayed & _digests(result.contents):
        text = "The pages that were compared are of another log than the one that was replayed."
        yield Finding(FindingKind.PAGES_ELSEWHERE, text)


def _digests(logs: Any) -> set[str]:
    return {digest for log in logs if isinstance(log, dict) and isinstance(digest := log.get("sha256"), str)}


def _find_another_time(result: PageComparison, sides: tuple[Side, Side]) -> Iterator[Finding]:
    """Yield a finding where the pages were compared long before the runs, or long after them."""
    began = [run.started_at for side in sides for run in side.runs if run.started_at]
    if not began:
        return
    away = max(min(began) - (result.ended_at or result.started_at), result.started_at - max(began))
    if away > _FRESH:
        text = (
            f"The pages were compared on {_day_text(result.started_at)}, {away.days} days away from the runs "
            f"({_day_text(min(began))} to {_day_text(max(began))}): a site may have changed since."
        )
        yield Finding(FindingKind.PAGES_ELSEWHERE, text)


def _day_text(instant: datetime) -> str:
    return f"{instant.day} {instant:%B %Y}"


# Settings of `replay same` by which less is compared, and the value with which all is.
_WHOLE: dict[str, object] = {"include": [], "exclude": [], "vhost": [], "ignore": [], "limit": 0, "sample": 1}


def _find_left_out(result: PageComparison) -> Iterator[Finding]:
    less = [
        f"--{name} {_value_text(result.settings[name])}"
        for name, whole in _WHOLE.items()
        if result.settings.get(name) not in (whole, None)
    ]
    if less:
        yield Finding(FindingKind.PAGES_PARTLY, f"Not all was compared of the pages: {', '.join(less)}.")
    if result.chosen.left_out.get("max_targets"):
        yield Finding(FindingKind.PAGES_PARTLY, "Not all pages were compared: there were over --max-targets.")
    if result.is_same and result.pages.not_compared:
        text = (
            f"{counted(result.pages.not_compared, 'page')} of {result.pages.total:,} could not be compared."
        )
        yield Finding(FindingKind.PAGES_PARTLY, text)


def _value_text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def same_table(result: PageComparison) -> Table:
    """Return what was compared, and the first pages that are not the same."""
    pages = result.pages
    facts = [
        ("compared", f"{_target_text(result.baseline)} and {_target_text(result.candidate)}"),
        ("when (UTC)", f"{result.started_at:%Y-%m-%d %H:%M}"),
        ("the same", f"{count(pages.same)}, {count(pages.same_2xx)} of them with status 2xx"),
        ("different", count(pages.different)),
        ("not compared", count(pages.not_compared)),
        ("not seen", count(pages.unseen)),
    ]
    rows = [
        Row(name, ["", text, ""], "amiss" if name == "different" and pages.different else "")
        for name, text in facts
    ]
    shown = sorted(result.shown, key=lambda page: page.outcome != "different")[:_MOST_ROWS]
    rows += [
        Row(
            printable(page.path, _LONGEST),
            [printable(text, _LONGEST) for text in (page.what, page.baseline or page.why, page.candidate)],
            "amiss",
        )
        for page in shown
    ]
    caption = (
        "Every page of the log was asked for twice on either side by plimsoll same; what varies by itself "
        "is left out. pages.jsonl has all pages that are not the same."
    )
    return Table("The same site?", caption, ["", "differs in", "baseline", "candidate"], rows, has_words=True)
