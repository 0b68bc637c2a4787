"""Check what people write against a model: all problems at once, each with line, key and remedy.

YAML files are read, pydantic's problems are put into words, and what is wrong is cut out until the rest can
be checked, too. Hints come from the model's JSON Schema, so that they know unions and registries. A model
names its page of the documentation as `manual` in `json_schema_extra`; everything below it has the same page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Generic, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema

from plimsoll.common.errors import SettingsError, did_you_mean
from plimsoll.common.units import LARGEST_BYTES, parse_size

_LARGEST_BYTES = 1 << 20

Location = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)
_Further = Callable[[Model], Iterable[tuple[Location, str]]]


def read_model(
    path: Path,
    model: type[Model],
    manual: str,
    further: _Further[Model] = lambda _: (),
    stand_ins: Mapping[str, Any] = MappingProxyType({}),
) -> Model:
    """Read `path`. `manual` is the document that has all keys; `further` finds what a model cannot.

    `stand_ins`: values by place, instead of wrong ones that are needed to check further.

    Raises SettingsError with all problems.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not UTF-8 text") from None
    if len(data) > _LARGEST_BYTES:
        raise SettingsError(f"{path}: is larger than {_LARGEST_BYTES >> 20} MiB: is it the right file?")
    return parse_model(text, str(path), model, manual, further, stand_ins)


def find_repeated(key: str, names: Iterable[str]) -> Iterable[tuple[Location, str]]:
    """Yield where a name in the list `key` is that of an earlier entry, and which. Pure."""
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if name in first:
            yield (key, i, "name"), f"{name} is already the name of {key}.{first[name]}"
        first.setdefault(name, i)


def parse_model(
    text: str,
    name: str,
    model: type[Model],
    manual: str,
    further: _Further[Model] = lambda _: (),
    stand_ins: Mapping[str, Any] = MappingProxyType({}),
) -> Model:
    """Return the content of `text`; `name` is the file's, for messages. Raises SettingsError. Pure."""
    lines: dict[Location, int] = {}
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        problems = [] if root is None else _walk(root, (), lines, set())
        value = None if root is None else loader.construct_document(root)  # puts what `<<` merges into `root`
    except yaml.YAMLError as error:
        raise SettingsError(_explain_unreadable(name, error)) from None
    except (RecursionError, ValueError) as error:  # ValueError: a date such as 2026-02-31
        what = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SettingsError(f"{name}:1: {what}: see {manual}") from None
    if not isinstance(value, dict):
        raise SettingsError(f"{name}:1: must hold keys: see {manual}")
    looked = Inspection(value, model, further, stand_ins)
    hints = Hints(model, manual)
    problems += [
        (_find_line(one.at, lines), _sentence(one, hints.manual(looked.said.get(one.at, one.at))))
        for one in looked.problems
    ]
    if problems or looked.found is None:
        raise SettingsError("\n".join(f"{name}:{line}: {what}" for line, what in sorted(set(problems))))
    return looked.found


def _walk(node: yaml.Node, at: Location, lines: dict[Location, int], seen: set[int]) -> list[tuple[int, str]]:
    """Note each key's line, and return the keys that stand twice: YAML takes the last in silence."""
    lines.setdefault(at, node.start_mark.line + 1)
    if id(node) in seen:
        return []
    seen.add(id(node))
    problems: list[tuple[int, str]] = []
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = (*at, str(key.value))
            line = key.start_mark.line + 1
            if below in lines and key.value != "<<":
                problems.append((line, f"{_dot_path(below)}: is set twice, first in line {lines[below]}"))
            lines[below] = line
            problems += _walk(value, below, lines, seen)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            problems += _walk(value, (*at, i), lines, seen)
    return problems


def _sentence(problem: Problem, manual: str) -> str:
    see = f" (see {manual})" if manual and "docs/" not in problem.text else ""
    return f"{_dot_path(problem.at)}: {problem.text}{see}"


def _find_line(location: Location, lines: dict[Location, int]) -> int:
    while location and location not in lines:
        location = location[:-1]
    return lines.get(location, 1)


def _dot_path(location: Location) -> str:
    return ".".join(map(str, location)) or "the file"


def _explain_unreadable(name: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = str(getattr(error, "problem", None) or error)
    if "character '\\t'" in what:
        what += ": indent with spaces, not with a tab"
    elif found := re.search(r"character '([@`%])'", what):
        what += f": put the word that begins with {found[1]} in quotes"
    return f"{name}:{mark.line + 1 if mark else 1}: is not valid YAML: {' '.join(str(what).split())}"


_MOST_ROUNDS = 12


class Inspection(Generic[Model]):
    """Finds the problems of `value` as a `model`: `problems`, and `found` where there are none.

    A model that has a wrong key is not checked any further: neither by its own checks between keys, nor by
    those that need the whole. So each wrong key is cut out, and the rest is looked at again.

    Problems are at the keys of `value`, without pydantic's tags of unions; `said` has pydantic's own
    location for each of its problems.
    """

    def __init__(
        self, value: Any, model: type[Model], further: _Further[Model], stand_ins: Mapping[str, Any]
    ) -> None:
        """`stand_ins`: values by place (`backends.*.clone`) for what is needed to look any further."""
        self._value, self._model, self._stand_ins = value, model, stand_ins
        self._cut: set[Location] = set()
        self._names: set[str] = set()
        self.problems: list[Problem] = []
        self.said: dict[Location, Location] = {}
        self.found: Model | None = None
        for _ in range(_MOST_ROUNDS):
            try:
                found = model.model_validate(self._rest(value, ()))
            except ValidationError as error:
                if not self._take(problems_of(error, model=model)):
                    return
                continue
            self._note_between_keys(further(found))
            self.found = None if self.problems else found
            return

    def _take(self, problems: list[Problem]) -> bool:
        """Note `problems`, and cut out what is wrong. Return whether there is a rest to look at."""
        by_place: dict[Location, list[Problem]] = {}
        for each in problems:
            at = self._locate_value(each.at)
            self.said.setdefault(at, each.at)
            by_place.setdefault(at, []).append(each)
        for at, some in by_place.items():
            if not any(_may_follow(some[0], at, cut) for cut in self._cut):
                self.problems += [Problem(at, some[0].kind, text) for text in texts_of(some)]
        for at in by_place:
            self._remove(at)
        return () not in self._cut

    def _remove(self, at: Location) -> None:
        """Cut out `at`, or what contains it if it is missing, or gone and required."""
        while at and (at in self._cut or not self._is_there(at)):
            if _pattern(at) in self._stand_ins:
                break
            at = at[:-1]
        gone = self._of(at)
        if isinstance(gone, dict) and isinstance(gone.get("name"), str):
            self._names.add(gone["name"])
        self._cut.add(at)

    def _note_between_keys(self, found: Iterable[tuple[Location, str]]) -> None:
        """Note problems between keys, except those caused by a cut."""
        for place, text in found:
            at = self._locate_value(place)
            follows = any(_covers(cut, at) or _covers(at, cut) for cut in self._cut)
            if not follows and not any(name in text for name in self._names):
                self.problems.append(Problem(at, "further", text))

    def _rest(self, value: Any, at: Location) -> Any:
        if not any(_covers(at, cut) for cut in self._cut):
            return value
        if isinstance(value, dict):
            rest = {
                key: self._rest(one, (*at, key)) for key, one in value.items() if (*at, key) not in self._cut
            }
            cut = {one[-1]: _pattern(one) for one in self._cut if one and one[:-1] == at}
            return rest | {key: self._stand_ins[name] for key, name in cut.items() if name in self._stand_ins}
        if isinstance(value, list):
            return [self._rest(value[i], (*at, i)) for i in self._kept_places(value, at)]
        return value

    def _kept_places(self, value: list[Any], at: Location) -> list[int]:
        return [i for i in range(len(value)) if (*at, i) not in self._cut]

    def _locate_value(self, said: Location) -> Location:
        """Return pydantic's location as that of the value: without tags, with the value's places in lists."""
        at: Location = ()
        here = self._value
        for i, part in enumerate(said):
            if isinstance(here, list) and isinstance(part, int):
                left = self._kept_places(here, at)
                part = left[part] if part < len(left) else part
            elif not (isinstance(here, dict) and (part in here or self._is_key(said[: i + 1]))):
                continue
            at, here = (*at, part), self._step(here, part)
        return at

    def _is_key(self, said: Location) -> bool:
        """Return whether the last part of `said` is a missing key, not a tag."""
        return isinstance(said[-1], str) and said[-1] in Hints(self._model).keys(said[:-1])

    def _is_there(self, at: Location) -> bool:
        above = self._of(at[:-1])
        if isinstance(above, list):
            return isinstance(at[-1], int) and at[-1] < len(above)
        return isinstance(above, dict) and at[-1] in above

    def _of(self, at: Location) -> Any:
        here = self._value
        for part in at:
            here = self._step(here, part)
        return here

    @staticmethod
    def _step(here: Any, part: str | int) -> Any:
        try:
            return here[part]
        except (KeyError, IndexError, TypeError):
            return None


def _may_follow(problem: Problem, at: Location, cut: Location) -> bool:
    """Return whether `problem` may exist only because `cut` was cut out."""
    if problem.kind == "value_error" and _covers(at, cut) and at != cut:
        return str(cut[-1]) in problem.text
    return _covers(cut, at) or _covers(at, cut)


def _pattern(at: Location) -> str:
    return ".".join("*" if isinstance(part, int) else part for part in at)


def _covers(outer: Location, inner: Location) -> bool:
    return inner[: len(outer)] == outer


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

    With `model` they suggest what was probably meant.
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
        return [f"must be {_join_or(list(kinds))}"]
    return list(dict.fromkeys(each.text for each in problems))


def _problem(each: Any, unknown: str, hints: Hints | None) -> Problem:
    at, kind, context = tuple(each["loc"]), each["type"], each.get("ctx", {})
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _unknown_kind(at, kind, context, hints)
    text = _text(kind, each["msg"], context, unknown)
    if kind == "extra_forbidden" and hints:
        text += hints.suggest(at)
    if kind == "literal_error":
        text += did_you_mean(each["input"], _QUOTED.findall(str(context.get("expected", ""))))
    if kind == "string_pattern_mismatch" and hints and (example := hints.example(at)):
        text = f"must be written like {example}"
    return Problem(at, kind, text)


def _unknown_kind(at: Location, kind: str, context: dict[str, Any], hints: Hints | None) -> Problem:
    """Return the problem of a value whose kind is wrong or missing."""
    named = (*at, str(context["discriminator"]).strip("'"))
    if kind == "union_tag_invalid":
        tags = _QUOTED.findall(str(context["expected_tags"]))
        return Problem(named, kind, f"must be {_join_or(tags)}{did_you_mean(context['tag'], tags)}")
    tags = hints.tags(at) if hints else []
    return Problem(named, "missing", f"is missing: it must be {_join_or(tags)}" if tags else "is missing")


def _text(kind: str, message: str, context: dict[str, Any], unknown: str) -> str:
    if kind == "extra_forbidden":
        return unknown
    if kind in _TEXTS:
        return _TEXTS[kind]
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    if kind == "literal_error":
        words = _QUOTED.findall(str(context.get("expected", "")))
        return f"must be {_join_or(words)}" if words else f"must be {context.get('expected')}"
    if kind == "string_pattern_mismatch":
        return "has the wrong format"
    if kind in ("too_long", "string_too_long"):
        unit = "characters" if kind == "string_too_long" else "entries"
        return f"must have at most {context.get('max_length')} {unit}"
    text = _SHOULD.sub("must ", message)
    if "<class" in text:  # pydantic's own words for a type of Python's
        return "is of the wrong kind"
    text = text.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")
    return text[:1].lower() + text[1:]


def _join_or(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


_Node = dict[str, Any]


class Hints:
    """The hints of one model; `manual` is its page where it names none."""

    def __init__(self, model: type[BaseModel], manual: str = "") -> None:
        self._root, self._manual = _schema(model), manual

    def keys(self, at: Location) -> list[str]:
        """Return the keys that the value at `at` (pydantic's own location) may have."""
        return [key for node in self._at(at)[0] for key in node.get("properties", {})]

    def suggest(self, at: Location) -> str:
        """Return what the unknown key `at` probably means: one like it, or one that lies further down."""
        key, keys = str(at[-1]), self.keys(at[:-1])
        below = [one for one in keys if key in self.keys((*at[:-1], one))]
        return f": it belongs under {below[0]}" if below else did_you_mean(key, keys)

    def tags(self, at: Location) -> list[str]:
        """Return the kinds that the value at `at` may have."""
        nodes = self._at(at, resolve=False)[0]
        return [tag for node in nodes for tag in node.get("discriminator", {}).get("mapping", {})]

    def example(self, at: Location) -> str | None:
        """Return an example of a value at `at`, or None if the model has none."""
        found = [node["examples"][0] for node in self._at(at)[0] if node.get("examples")]
        return str(found[0]) if found else None

    def manual(self, at: Location) -> str:
        """Return the page that explains `at`, empty where there is none."""
        return self._at(at)[1]

    def _at(self, at: Location, resolve: bool = True) -> tuple[list[_Node], str]:
        """Return the schemas that a value at `at` may have, as far down as they are known, and the page."""
        nodes, page = [self._root], self._manual
        for part in at:
            opened = self._resolve(nodes)
            page = _page(opened, page)
            below = [found for node in nodes for found in self._choose_tagged(node, part)]
            below = below or [found for node in opened for found in _below(node, part)]
            if not below:
                return [], page
            nodes = below
        opened = self._resolve(nodes)
        return (opened if resolve else [*nodes, *self._unwrap(nodes)]), _page(opened, page)

    def _choose_tagged(self, node: _Node, part: str | int) -> list[_Node]:
        """Return the member of a union that the tag `part` chooses."""
        for one in [node, *self._unwrap([node])]:
            if ref := one.get("discriminator", {}).get("mapping", {}).get(part):
                return [self._resolve_ref(ref)]
        return []

    def _resolve(self, nodes: Iterable[_Node]) -> list[_Node]:
        """Return the schemas that `nodes` stand for: references and unions resolved."""
        found: list[_Node] = []
        for node in nodes:
            inner = self._unwrap([node])
            found += self._resolve(inner) if inner else [node]
        return found

    def _unwrap(self, nodes: Iterable[_Node]) -> list[_Node]:
        found: list[_Node] = []
        for node in nodes:
            if "$ref" in node:
                found.append(self._resolve_ref(node["$ref"]))
            for union in ("anyOf", "oneOf", "allOf"):
                found += node.get(union, [])
        return found

    def _resolve_ref(self, ref: str) -> _Node:
        node: _Node = self._root.get("$defs", {}).get(ref.rpartition("/")[2], {})
        return node


def _below(node: _Node, part: str | int) -> list[_Node]:
    if isinstance(part, int):
        items = node.get("items")
        return [*node.get("prefixItems", [])[part : part + 1], *([items] if isinstance(items, dict) else [])]
    further = node.get("additionalProperties")
    below = node.get("properties", {}).get(part, further)
    return [below] if isinstance(below, dict) else []


def _page(nodes: Iterable[_Node], page: str) -> str:
    """Return the page of `nodes`, where they agree on one."""
    pages = {node.get("manual") for node in nodes if node.get("type") != "null"}
    return next(iter(pages)) or page if len(pages) == 1 else page


@cache
def _schema(model: type[BaseModel]) -> _Node:
    try:
        return model.model_json_schema()
    except PydanticInvalidForJsonSchema:
        return {}


def _read_size(value: object) -> object:
    """Return text as bytes and anything else unchanged: for pydantic, before it checks."""
    return parse_size(value) if isinstance(value, str) else value


# In an annotation: text is read as a size; the JSON Schema says so.
_Written = Annotated[str, Field(pattern=r"^\s*[0-9]{1,15}\s?([KMGTkmgt]?([Ii]?[Bb])?)\s*$")]
AS_SIZE = BeforeValidator(_read_size, json_schema_input_type=int | _Written)
Size = Annotated[int, AS_SIZE, Field(ge=0, le=LARGEST_BYTES)]
