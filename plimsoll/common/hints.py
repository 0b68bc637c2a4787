"""What a model knows of its keys: which there are, which values they take, which page explains them. Pure.

Read from the model's JSON Schema, so that it knows unions and registries too. A model names its page of the
documentation as `manual` in `json_schema_extra`; what is below it has the same page.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

from plimsoll.common.errors import did_you_mean

_Location = tuple[str | int, ...]
_Node = dict[str, Any]


class Hints:
    """The hints of one model; `manual` is its page where it names none."""

    def __init__(self, model: type[BaseModel], manual: str = "") -> None:
        self._root, self._manual = _schema(model), manual

    def keys(self, at: _Location) -> list[str]:
        """Return the keys that the value at `at` (pydantic's own location) may have."""
        return [key for node in self._at(at)[0] for key in node.get("properties", {})]

    def meant(self, at: _Location) -> str:
        """Return what was meant by the unknown key `at`: one like it, or one that lies further down."""
        key, keys = str(at[-1]), self.keys(at[:-1])
        below = [one for one in keys if key in self.keys((*at[:-1], one))]
        return f": it belongs under {below[0]}" if below else did_you_mean(key, keys)

    def tags(self, at: _Location) -> list[str]:
        """Return the kinds that the value at `at` may be of."""
        nodes = self._at(at, resolve=False)[0]
        return [tag for node in nodes for tag in node.get("discriminator", {}).get("mapping", {})]

    def example(self, at: _Location) -> str | None:
        """Return how a value at `at` may look, None where the model does not say."""
        found = [node["examples"][0] for node in self._at(at)[0] if node.get("examples")]
        return str(found[0]) if found else None

    def manual(self, at: _Location) -> str:
        """Return the page that explains `at`, empty where there is none."""
        return self._at(at)[1]

    def _at(self, at: _Location, resolve: bool = True) -> tuple[list[_Node], str]:
        """Return the schemas that a value at `at` may have, as far down as they are known, and the page."""
        nodes, page = [self._root], self._manual
        for part in at:
            opened = self._opened(nodes)
            page = _page(opened, page)
            below = [found for node in nodes for found in self._tagged(node, part)]
            below = below or [found for node in opened for found in _below(node, part)]
            if not below:
                return [], page
            nodes = below
        opened = self._opened(nodes)
        return (opened if resolve else [*nodes, *self._unwrapped(nodes)]), _page(opened, page)

    def _tagged(self, node: _Node, part: str | int) -> list[_Node]:
        """Return the member of a union that the tag `part` chooses."""
        for one in [node, *self._unwrapped([node])]:
            if ref := one.get("discriminator", {}).get("mapping", {}).get(part):
                return [self._referred(ref)]
        return []

    def _opened(self, nodes: Iterable[_Node]) -> list[_Node]:
        """Return the schemas that `nodes` stand for: references and unions resolved."""
        found: list[_Node] = []
        for node in nodes:
            inner = self._unwrapped([node])
            found += self._opened(inner) if inner else [node]
        return found

    def _unwrapped(self, nodes: Iterable[_Node]) -> list[_Node]:
        found: list[_Node] = []
        for node in nodes:
            if "$ref" in node:
                found.append(self._referred(node["$ref"]))
            for union in ("anyOf", "oneOf", "allOf"):
                found += node.get(union, [])
        return found

    def _referred(self, ref: str) -> _Node:
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
