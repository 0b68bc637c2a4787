"""The problems that pydantic finds in a value, in words for whoever wrote the file or the options."""

import re
from dataclasses import dataclass

from pydantic import ValidationError

Location = tuple[str | int, ...]

_TEXTS = {
    "missing": "is missing",
    "string_type": "must be text: put it in quotes",
    "list_type": "must be a list: [one, another]",
    "too_short": "must not be empty",
    "string_too_short": "is too short",
    "model_type": "must hold further keys, indented below it",
    "model_attributes_type": "must hold further keys, indented below it",
    "dict_type": "must hold further keys, indented below it",
}
_SHOULD = re.compile(r"^(?:Input|String|List|Value|Dictionary) should ")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, of which kind (pydantic's word), and what (hostile)."""

    at: Location
    kind: str
    text: str

    @property
    def key(self) -> str:
        """The key's path such as `gates.0.limit`; empty where the whole value is wrong."""
        return ".".join(map(str, self.at))


def problems_of(error: ValidationError, unknown: str = "is not a known key") -> list[Problem]:
    """Return all problems in order; `unknown` is the text for a key that does not exist. Pure."""
    return [
        Problem(each["loc"], each["type"], _text(each["type"], each["msg"], unknown))
        for each in error.errors(include_url=False, include_input=False, include_context=False)
    ]


def sentence_of(error: ValidationError) -> str:
    """Return all problems in one line: `started_at: is missing; seed: must be a valid integer`. Pure."""
    return "; ".join(f"{each.key or 'it'}: {each.text}" for each in problems_of(error))


def _text(kind: str, message: str, unknown: str) -> str:
    if kind == "extra_forbidden":
        return unknown
    if kind in _TEXTS:
        return _TEXTS[kind]
    if message.startswith("Value error, "):
        return message.removeprefix("Value error, ")
    text = _SHOULD.sub("must ", message)
    return text[:1].lower() + text[1:]
