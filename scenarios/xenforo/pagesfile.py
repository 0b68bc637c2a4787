"""Reads the YAML file of an installer's pages. All problems are told at once, each with its line."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from scenarios.errors import SettingsError
from scenarios.xenforo.pages import Pages

STAND_IN = Path(__file__).with_name("stand-in.yml")
_REMEDY = {
    "missing": "is missing: docs/xenforo.md says what it is",
    "extra_forbidden": "is no key here: docs/xenforo.md lists them all",
    "string_type": "must be text: put it in quotes",
    "list_type": "must be a list: [one, another]",
    "too_short": "must not be empty",
    "string_too_short": "is too short to tell one page from another",
    "model_type": "must hold further keys, indented below it",
    "dict_type": "must hold further keys, indented below it",
}
_LARGEST_BYTES = 1 << 20

Location = tuple[str | int, ...]


def read_pages(path: Path) -> Pages:
    """Read and check `path`. Raises SettingsError with all problems, each with its line and remedy."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_BYTES).decode("utf-8")
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is no UTF-8 text") from None
    return parse_pages(text, str(path))


def parse_pages(text: str, name: str) -> Pages:
    """Return the pages that `text` describes; `name` is the file's, for messages. Raises SettingsError."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(_unreadable(name, error)) from None
    except RecursionError:
        raise SettingsError(f"{name}: is nested too deep: docs/xenforo.md has an example") from None
    if not isinstance(value, dict) or root is None:
        raise SettingsError(f"{name}:1: must hold keys such as path: /install/ (see docs/xenforo.md)")
    lines: dict[Location, int] = {}
    problems = _walk(root, (), lines, set())
    pages = None
    try:
        pages = Pages.model_validate(value)
    except ValidationError as error:
        problems += [_problem(e, lines) for e in error.errors(include_url=False, include_input=False)]
    if problems or pages is None:
        raise SettingsError("\n".join(f"{name}:{line}: {what}" for line, what in sorted(problems)))
    return pages


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
            if below in lines:
                problems.append((line, f"{_dotted(below)}: stands twice, first in line {lines[below]}"))
            lines[below] = line
            problems += _walk(value, below, lines, seen)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            problems += _walk(value, (*at, i), lines, seen)
    return problems


def _problem(error: Any, lines: dict[Location, int]) -> tuple[int, str]:
    location: Location = error["loc"]
    nearest = location
    while nearest and nearest not in lines:
        nearest = nearest[:-1]
    what = _REMEDY.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")
    return lines.get(nearest, 1), f"{_dotted(location)}: {what[0].lower()}{what[1:]}"


def _dotted(location: Location) -> str:
    return ".".join(map(str, location)) or "the file"


def _unreadable(name: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or str(error)
    return f"{name}:{mark.line + 1 if mark else 1}: is no YAML: {' '.join(str(what).split())}"
