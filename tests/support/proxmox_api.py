"""The documented API of Proxmox VE (tests/fixtures/proxmox/api.yml), and whether a request keeps to it."""

import re
from functools import cache
from typing import Any

import yaml

from tests.support.programs import FIXTURES

_FLAGS = ("0", "1")  # of all words that Proxmox reads as true or false, those that the lab sends
_EITHER = "GUEST"


@cache
def documented() -> dict[str, Any]:
    """The file; `calls` with each line for both kinds of guests written out."""
    read = yaml.safe_load((FIXTURES / "proxmox" / "api.yml").read_text(encoding="utf-8"))
    kinds = ("qemu", "lxc")
    calls = {
        line.replace(_EITHER, kind): call
        for line, call in read["calls"].items()
        for kind in (kinds if _EITHER in line else kinds[:1])
    }
    return {**read, "calls": calls}


def call_of(method: str, path: str) -> tuple[str, dict[str, str]] | None:
    """The documented call of a request and the parameters in its path; None where none is documented."""
    for line in documented()["calls"]:
        verb, template = line.split()
        form = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(template))
        if verb == method and (found := re.fullmatch(form, path)):
            return line, found.groupdict()
    return None


def problems(method: str, path: str, params: dict[str, str]) -> dict[str, str]:
    """What is wrong with a request, by parameter; nothing where it keeps to the description."""
    found = call_of(method, path)
    if found is None:
        return {"path": f"{method} {path} is not documented"}
    line, in_path = found
    takes, wrong = documented()["calls"][line]["takes"], dict[str, str]()
    for name, word in takes.items():
        if word.endswith("!") and name not in in_path and name not in params:
            wrong[name] = "property is missing and it is not optional"
    for name, value in (in_path | params).items():
        if (word := takes.get(name) or takes.get(re.sub(r"\d+$", "[n]", name))) is None:
            wrong[name] = "property is not defined in schema"
        elif why := _refused(documented()["types"][word.removesuffix("!")], value):
            wrong[name] = why
    return wrong


def privileges(line: str) -> list[tuple[set[str], str]]:
    """Of a documented call: each time one of the privileges, and what it is needed on."""
    call = documented()["calls"][line]
    further = [({name}, place) for name, place in call.get("also", {}).items()]
    return [*([(set(call["may"]), call["at"])] if "may" in call else []), *further]


def _refused(kind: dict[str, Any], value: str) -> str:
    """Why `value` is not of this kind; empty where it is."""
    if "one_of" in kind:
        return "" if value in kind["one_of"] else f"is not one of {', '.join(kind['one_of'])}"
    if kind["is"] == "boolean":
        return "" if value in _FLAGS else "type check ('boolean') failed"
    if kind["is"] in ("integer", "number"):
        form = r"-?\d+" if kind["is"] == "integer" else r"-?\d+(?:\.\d+)?"
        if not re.fullmatch(form, value):
            return f"type check ('{kind['is']}') failed"
        least, most = kind.get("from", float("-inf")), kind.get("to", float("inf"))
        return "" if least <= float(value) <= most else "is out of range"
    if kind["is"] == "disk":
        return _refused_disk(kind["keys"], value)
    if "longest" in kind and len(value) > kind["longest"]:
        return "is too long"
    return "" if re.fullmatch(kind.get("form", r"(?s).*"), value) else "invalid format"


def _refused_disk(keys: dict[str, Any], line: str) -> str:
    """Why a line such as `hdd:vm-105-disk-0,size=32G` is no disk; empty where it is one."""
    first, *options = line.split(",")
    seen = set[str]()
    if not re.fullmatch(r"(?:file=)?[^=,]+", first):
        return "invalid format - the volume is missing"
    for option in options:
        name, equals, value = option.partition("=")
        if name in seen:
            return f"invalid format - duplicate key in comma-separated list property: {name}"
        seen.add(name)
        if not equals or keys.get(name) is None:
            return f"invalid format - {name}: property is not defined in schema"
        kind = keys[name] if isinstance(keys[name], dict) else documented()["types"][keys[name]]
        if why := _refused(kind, value):
            return f"invalid format - {name}: {why}"
    return ""
