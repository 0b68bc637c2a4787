"""Words of commands that users write, and what stands in them for names that the lab gives. Pure."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from plimsoll.lab.names import own_name
from plimsoll.lab.steps.step import no_reference

_PLACE = re.compile(r"(?<![\w@])@(own|clone)(?!\w)")

Word = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$"), AfterValidator(no_reference)]
Words = Annotated[tuple[Word, ...], Field(min_length=1)]


def needs_folder(words: Sequence[str]) -> bool:
    """Return whether `@clone`, the folder of the disk under test, stands in `words`."""
    return any(found[1] == "clone" for word in words for found in _PLACE.finditer(word))


def is_plain(word: str) -> bool:
    """Return whether nothing of the lab stands in `word`."""
    return _PLACE.search(word) is None


def filled(words: Sequence[str], label: str, folder: str = "") -> list[str]:
    """Return `words` with the saturator's own name, `plimsoll-LABEL`, for `@own`, `folder` for `@clone`."""
    named = {"own": own_name(label), "clone": folder}
    return [_PLACE.sub(lambda found: named[found[1]], word) for word in words]
