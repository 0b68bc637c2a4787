"""The problems that pydantic finds in a value, in words for whoever wrote the file or the options."""

import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from plimsoll.common.errors import did_you_mean
from plimsoll.common.hints import Hints

Location = tuple[str | int, ...]

_WHOLE, _NUMBER, _FLAG = "a whole number", "a number", "true or false"
_LIST, _KEYS = "a list: [one, another]", "further keys, indented below it"
# What a value must be, by pydantic's word for what it is not.
_KINDS = {
    "string_type": "text: put it in quotes",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "a number, not infinite",
    "bool_type": _FLAG,
    "bool_parsing": _FLAG,
    "path_type": "a path, such as results",
    "list_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "none_required": "null",
}
_TEXTS = {
    "missing": "is missing",
    "too_short": "must not be empty",
    "string_too_short": "is too short",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), f"must hold {_KEYS}"),
    **{kind: f"must be {what}" for kind, what in _KINDS.items()},
}
_SHOULD = re.compile(r"^(?:Input|String|List|Value|Dictionary|Tuple) should ")
_QUOTED = re.compile(r"'([^']*)'")


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


def problems_of(
    error: ValidationError, unknown: str = "is not a known key", model: type[BaseModel] | None = None
) -> list[Problem]:
    """Return all problems in order; `unknown` is the text for a key that does not exist. Pure.

    With `model` they say what was probably meant.
    """
    hints = Hints(model) if model else None
    return [_problem(each, unknown, hints) for each in error.errors(include_url=False)]


def sentence_of(error: ValidationError) -> str:
    """Return all problems in one line: `started_at: is missing; seed: must be a whole number`. Pure."""
    return "; ".join(f"{each.key or 'it'}: {each.text}" for each in problems_of(error))


def texts_of(problems: list[Problem]) -> list[str]:
    """Return the texts of problems at one place: one for a value that is none of several kinds. Pure."""
    kinds = dict.fromkeys(_KINDS[each.kind].partition(":")[0] for each in problems if each.kind in _KINDS)
    if len(kinds) > 1:
        return [f"must be {_or(list(kinds))}"]
    return list(dict.fromkeys(each.text for each in problems))


def _problem(each: Any, unknown: str, hints: Hints | None) -> Problem:
    at, kind, context = tuple(each["loc"]), each["type"], each.get("ctx", {})
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _of_no_kind(at, kind, context, hints)
    text = _text(kind, each["msg"], context, unknown)
    if kind == "extra_forbidden" and hints:
        text += hints.meant(at)
    if kind == "literal_error":
        text += did_you_mean(each["input"], _QUOTED.findall(str(context.get("expected", ""))))
    if kind == "string_pattern_mismatch" and hints and (example := hints.example(at)):
        text = f"must be written like {example}"
    return Problem(at, kind, text)


def _of_no_kind(at: Location, kind: str, context: dict[str, Any], hints: Hints | None) -> Problem:
    """Return the problem of a value whose key that says of which kind it is is wrong or missing."""
    named = (*at, str(context["discriminator"]).strip("'"))
    if kind == "union_tag_invalid":
        tags = _QUOTED.findall(str(context["expected_tags"]))
        return Problem(named, kind, f"must be {_or(tags)}{did_you_mean(context['tag'], tags)}")
    tags = hints.tags(at) if hints else []
    return Problem(named, "missing", f"is missing: it must be {_or(tags)}" if tags else "is missing")


def _text(kind: str, message: str, context: dict[str, Any], unknown: str) -> str:
    if kind == "extra_forbidden":
        return unknown
    if kind in _TEXTS:
        return _TEXTS[kind]
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    if kind == "literal_error":
        words = _QUOTED.findall(str(context.get("expected", "")))
        return f"must be {_or(words)}" if words else f"must be {context.get('expected')}"
    if kind == "string_pattern_mismatch":
        return "is not written as it must be"
    if kind in ("too_long", "string_too_long"):
        unit = "characters" if kind == "string_too_long" else "entries"
        return f"must have at most {context.get('max_length')} {unit}"
    text = _SHOULD.sub("must ", message)
    if "<class" in text:  # pydantic's own words for a type of Python's
        return "is of the wrong kind"
    text = text.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")
    return text[:1].lower() + text[1:]


def _or(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
