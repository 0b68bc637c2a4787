"""The description of an installer's pages: the model of `stand-in.yml` and of a licensed copy's file."""

import re
from typing import Annotated

from cssselect import SelectorError
from lxml.cssselect import CSSSelector
from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _selector(value: str) -> str:
    try:
        CSSSelector(value)
    except SelectorError as error:
        raise ValueError(
            f"is not a CSS selector ({error}): write one such as form.continue, or form[action*=upgrade]"
        ) from None
    return value


def _pattern(value: str) -> str:
    try:
        groups = re.compile(value).groups
    except re.error as error:
        raise ValueError(
            f"is not a regular expression ({error}): put it in single quotes, \\ before . [ ( +"
        ) from None
    if groups != 1:
        raise ValueError("needs one group (…), around the name of the phase")
    return value


def _path(value: str) -> str:
    if "://" in value or value.startswith("//") or "#" in value:
        raise ValueError("must be a path below the target, such as /install/")
    return value


def _name(value: str) -> str:
    return " ".join(value.split())


Selector = Annotated[str, Field(min_length=1), AfterValidator(_selector)]
Pattern = Annotated[str, Field(min_length=1), AfterValidator(_pattern)]
Path = Annotated[str, Field(min_length=1), AfterValidator(_path)]
Text = Annotated[str, Field(min_length=3), AfterValidator(_name)]


class _PageModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Login(_PageModel):
    """The form of name and password."""

    form: Selector
    user_field: Annotated[str, Field(min_length=1)]
    password_field: Annotated[str, Field(min_length=1)]
    fields: dict[str, str] = {}


class Start(_PageModel):
    """The form that begins the upgrade; `path` is opened first where the login does not lead to it."""

    form: Selector
    path: Path | None = None
    fields: dict[str, str] = {}


class Continue(_PageModel):
    """The form that leads from page to page."""

    form: Selector


class Texts(_PageModel):
    """Texts of pages; case and white space do not matter."""

    complete: Text
    up_to_date: Text | None = None
    locked: Text | None = None
    expired: Text | None = None


class PageLimits(_PageModel):
    """Limits of the walk through the pages."""

    same_page: int = Field(10, ge=2, le=100_000)
    pages: int = Field(100_000, ge=1, le=10_000_000)
    lock_wait_s: float = Field(60.0, ge=0, le=86_400, strict=False)


class CommandOutput(_PageModel):
    """Texts that the upgrade's command prints."""

    complete: Text
    phase: Pattern | None = None


class Pages(_PageModel):
    """One software's installer."""

    path: Path
    login: Login
    start: Start
    continue_: Continue = Field(alias="continue")
    title: Selector
    errors: list[Selector] = Field(min_length=1)
    texts: Texts
    limits: PageLimits = PageLimits()
    command: CommandOutput | None = None
