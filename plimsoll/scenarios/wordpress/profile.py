"""The profile of the block editor: what it asks a site for besides the article (docs/block-editor.md)."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from plimsoll.common.yamlfile import read_model

PROFILES = Path(__file__).with_name("profiles")
_MANUAL = "docs/block-editor.md"
_ASK = re.compile(r"(GET|OPTIONS) +(/?[\w{}./-]*(?:\?\S*)?)")
_NAMES = ("post", "media")  # what a path may leave to the article
_FOR_ARTICLE = re.compile(r"\{([^{}]*)\}")
_BRANCH = re.compile(r"\bbranch-(\d+)-(\d+)\b")
_FILE = re.compile(r"wordpress-(\d+)\.(\d+)\.yml")
_LIST = re.compile(r"wp/v2/categories(?:\?|$)")


@dataclass(frozen=True)
class Ask:
    """One request that changes nothing: its method, and its path below the REST interface."""

    method: str
    path: str

    def of(self, post: int | None, media: int | None = None) -> str:
        """Return the path for this article, and for this image in it."""
        return self.path.replace("{post}", str(post)).replace("{media}", str(media))


def _ask(value: object) -> Ask:
    if isinstance(value, Ask):
        return value
    found = _ASK.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError("must be GET or OPTIONS and a path below the REST interface: GET wp/v2/blocks")
    if unknown := sorted(set(_FOR_ARTICLE.findall(found[2])) - set(_NAMES)):
        raise ValueError(f"knows no {{{unknown[0]}}}: only {{post}} and {{media}} stand for something")
    return Ask(found[1], found[2].strip("/"))


def _of_post(asks: tuple[Ask, ...]) -> tuple[Ask, ...]:
    if any("{media}" in ask.path for ask in asks):
        raise ValueError("{media} stands for an image: only under image")
    return asks


AskText = Annotated[Ask, BeforeValidator(_ask, json_schema_input_type=str)]
Asks = Annotated[tuple[AskText, ...], AfterValidator(_of_post)]
Seconds = Annotated[float, Field(ge=1, le=3600)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Categories(_Part):
    """The author chooses categories."""

    share: Share = Field(0.0, description="Share of the articles that get categories, drawn by the seed.")
    most: int = Field(1, ge=1, le=20, description="How many an article gets at most.")
    asks: Asks = Field((), validate_default=True, description="What is asked for to choose.")

    @field_validator("asks")
    @classmethod
    def _has_list(cls, asks: tuple[Ask, ...]) -> tuple[Ask, ...]:
        if asks and not any(ask.method == "GET" and _LIST.match(ask.path) for ask in asks):
            raise ValueError("must have GET wp/v2/categories: from its answer the categories are chosen")
        return asks


class Image(_Part):
    """The author puts an image into the article."""

    share: Share = Field(0.0, description="Share of the articles that get an image, drawn by the seed.")
    asks: tuple[AskText, ...] = Field((), description="What is asked for once it is uploaded.")


class Profile(_Part):
    """What the editor asks for, by when. Without a key nothing of the kind is done."""

    files: Literal["never", "first", "always"] = Field(
        "never",
        description="Styles, scripts and images of its page: `first`: once a user, as a browser keeps them; "
        "`always`: for each article.",
    )
    opening: Asks = Field((), description="Once the page is there, up to six at a time.")
    heartbeat_s: Seconds | None = Field(
        None, description="Seconds from the answer to a heartbeat, which renews the lock, to the next."
    )
    autosave_s: Seconds | None = Field(
        None, description="Seconds from autosave to autosave while the author writes (`--think-s`)."
    )
    categories: Categories = Categories()
    image: Image = Image()
    panel: Asks = Field((), description="As the panel opens that asks whether to publish.")
    published: Asks = Field((), description="Once the article is published.")
    saved: Asks = Field((), description="Once it is saved again, each time.")
    leaving: bool = Field(False, description="Whether the lock is released as the editor is left.")


def read_profile(path: Path) -> Profile:
    """Read and check `path`. Raises SettingsError with all problems, each with its line and remedy."""
    return read_model(path, Profile, _MANUAL)


@cache
def recorded() -> dict[tuple[int, int], Profile]:
    """Return the profiles that come with Plimsoll, by the version of WordPress that each was recorded on."""
    found = {}
    for path in PROFILES.iterdir():
        if named := _FILE.fullmatch(path.name):
            found[int(named[1]), int(named[2])] = read_profile(path)
    return dict(sorted(found.items()))


def version_of(page: str) -> tuple[int, int] | None:
    """Return the branch of WordPress that a page of the admin side names, such as (6, 8). Pure."""
    found = _BRANCH.search(page)
    return (int(found[1]), int(found[2])) if found else None


def nearest(version: tuple[int, int] | None, recorded: dict[tuple[int, int], Profile]) -> Profile:
    """Return the newest profile that is not newer than `version`, else the oldest. Pure.

    Of an unknown version the newest.
    """
    fitting = [one for one in recorded if version is None or one <= version]
    return recorded[max(fitting, default=min(recorded))]
