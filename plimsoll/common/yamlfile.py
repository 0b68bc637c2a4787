"""YAML files read into models: all problems at once, each with its line, key and remedy."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel

from plimsoll.common.errors import SettingsError
from plimsoll.common.hints import Hints
from plimsoll.common.problems import Location, Problem
from plimsoll.common.salvage import Inspection

_LARGEST_BYTES = 1 << 20

Model = TypeVar("Model", bound=BaseModel)


def read_model(
    path: Path,
    model: type[Model],
    manual: str,
    further: Callable[[Model], Iterable[tuple[Location, str]]] = lambda _: (),
    stand_ins: Mapping[str, Any] = MappingProxyType({}),
) -> Model:
    """Read `path`. `manual` is the document that has all keys; `further` finds what a model cannot.

    `stand_ins`: values by place, instead of those that are wrong and are needed to look any further.

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


def parse_model(
    text: str,
    name: str,
    model: type[Model],
    manual: str,
    further: Callable[[Model], Iterable[tuple[Location, str]]] = lambda _: (),
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
        raise SettingsError(_unreadable(name, error)) from None
    except (RecursionError, ValueError) as error:  # ValueError: a date such as 2026-02-31
        what = "is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise SettingsError(f"{name}:1: {what}: see {manual}") from None
    if not isinstance(value, dict):
        raise SettingsError(f"{name}:1: must hold keys: see {manual}")
    looked = Inspection(value, model, further, stand_ins)
    hints = Hints(model, manual)
    problems += [
        (_line(one.at, lines), _sentence(one, hints.manual(looked.said.get(one.at, one.at))))
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
                problems.append((line, f"{_dotted(below)}: is set twice, first in line {lines[below]}"))
            lines[below] = line
            problems += _walk(value, below, lines, seen)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            problems += _walk(value, (*at, i), lines, seen)
    return problems


def _sentence(problem: Problem, manual: str) -> str:
    see = f" (see {manual})" if manual and "docs/" not in problem.text else ""
    return f"{_dotted(problem.at)}: {problem.text}{see}"


def _line(location: Location, lines: dict[Location, int]) -> int:
    while location and location not in lines:
        location = location[:-1]
    return lines.get(location, 1)


def _dotted(location: Location) -> str:
    return ".".join(map(str, location)) or "the file"


def _unreadable(name: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = str(getattr(error, "problem", None) or error)
    if "character '\\t'" in what:
        what += ": indent with spaces, not with a tab"
    elif found := re.search(r"character '([@`%])'", what):
        what += f": put the word that begins with {found[1]} in quotes"
    return f"{name}:{mark.line + 1 if mark else 1}: is not valid YAML: {' '.join(str(what).split())}"
