"""The members of an entry of `scenarios`: what runs at the same time on one clone, in one run. Pure."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from plimsoll.common.validation import Location
from plimsoll.lab.names import LabName, StrictModel
from plimsoll.lab.steps.step import no_reference

Word = Annotated[str, AfterValidator(no_reference)]
Option = Annotated[str | int | float | bool | list[str], AfterValidator(no_reference)]
ScenarioName = Annotated[str, Field(pattern=r"^[a-z][a-z-]{0,39}$")]

CROWD = frozenset({"replay", "visitors"})  # has no end of its own: it is what others are timed within

ON_K6 = frozenset({"browser"})  # has a clock of its own, and waits for nobody
UPGRADES = {"upgrade-wordpress": "WordPress", "upgrade-xenforo": "the forum"}
_AUTHORS = frozenset({"save-article", "upload-images", "browser"})  # whom an upgrade of WordPress shuts out


class Member(StrictModel):
    """One of several scenarios that run together."""

    scenario: ScenarioName = Field(description="`replay`, or a scenario from `plimsoll scenario list`.")
    name: LabName | None = Field(
        None, description="Name among the members of this entry. Default: the scenario's own name."
    )
    options: dict[str, Option] = Field({}, description="Settings of the scenario, as without `together`.")
    begin_s: float | None = Field(
        None,
        ge=0,
        le=86400,
        description="Seconds after the start of the run, warm-up included, at which it begins. Default: with "
        "the saturator if it ends by itself, such as after `iterations`, else 0.",
    )

    @property
    def called(self) -> str:
        """Its name among the members."""
        return self.name or self.scenario

    @property
    def is_crowd(self) -> bool:
        """True if it goes on as long as the others do."""
        return self.scenario in CROWD


def full_name(entry: str, member: str) -> str:
    """Return what figures, gates and `run.json` call a member of an entry."""
    return f"{entry}/{member}"


def member_problems(members: Sequence[Member], lasts_s: float | None) -> Iterator[tuple[Location, str]]:
    """Yield why `members` cannot run together: where below the entry, and what to do.

    `lasts_s`: by the entry's phases; None where they leave it to the members when the run ends.
    """
    if len(members) == 1:
        yield ("together",), "has one member: give it two or more, or write its scenario without together"
    first: dict[str, int] = {}
    for i, member in enumerate(members):
        if member.called in first:
            text = f"{member.called} is already the name of together.{first[member.called]}"
            yield ("together", i, "name"), f"{text}: give it another name"
        first.setdefault(member.called, i)
    yield from _collisions(members)
    yield from _beginnings(members, lasts_s)
    if lasts_s is None and all(member.is_crowd for member in members):
        text = "during_s: null needs a member that ends by itself, and a crowd does not: give during_s"
        yield ("together",), text


def _beginnings(members: Sequence[Member], lasts_s: float | None) -> Iterator[tuple[Location, str]]:
    for i, member in enumerate(members):
        if not member.begin_s:
            continue
        at: Location = ("together", i, "begin_s")
        if member.is_crowd:
            yield at, f"{member.scenario} is the crowd, which is there before the others: leave begin_s out"
        elif member.scenario in ON_K6:
            yield at, f"{member.scenario} begins with the run, since k6 waits for nobody: leave begin_s out"
        elif lasts_s is not None and member.begin_s >= lasts_s:
            yield at, f"is behind the end of the run, which lasts {lasts_s:g} s with its warm-up: give less"


def _collisions(members: Sequence[Member]) -> Iterator[tuple[Location, str]]:
    upgrades: set[str] = set()
    for i, member in enumerate(members):
        at: Location = ("together", i, "scenario")
        if (upgraded := UPGRADES.get(member.scenario)) and member.scenario in upgrades:
            yield at, f"{upgraded} is upgraded by another member already, and a clone can be upgraded once"
        upgrades.add(member.scenario)
    for i, member in enumerate(members):
        if member.scenario in _AUTHORS and "upgrade-wordpress" in upgrades:
            yield (
                ("together", i, "scenario"),
                f"{member.scenario} cannot run beside upgrade-wordpress, which shuts authors out while it "
                "works: put one of them into another entry of scenarios",
            )
