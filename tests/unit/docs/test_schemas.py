"""`plimsoll schema`: the schemas say what each key is, and take and refuse what Plimsoll itself does."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from plimsoll.cli import FILES, main, schema_of
from tests.support.programs import DOCS, ROOT

LABS = sorted(
    path for path in (ROOT / "examples").glob("*.yml") if "backends:" in path.read_text(encoding="utf-8")
)


def keys(node: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every key that a schema has, with what it says of it."""
    if isinstance(node, dict):
        for name, value in node.get("properties", {}).items():
            yield f"{at}.{name}", value
        for name, value in node.items():
            yield from keys(value, name if at in ("", ".$defs") else at)
    elif isinstance(node, list):
        for value in node:
            yield from keys(value, at)


@pytest.mark.parametrize("file", FILES)
def test_every_key_says_what_it_is(file: str) -> None:
    found = list(keys(schema_of(file)))
    assert found
    assert [name for name, value in found if not value.get("description") and "$ref" not in value] == []


def test_every_key_of_gates_is_on_their_page() -> None:
    """`make docs` writes those of the other files."""
    rows = "\n".join(re.findall(r"^\| (`.*?) \|", (DOCS / "compare.md").read_text("utf-8"), re.MULTILINE))
    named = {name.rpartition(".")[2] for name, _ in keys(schema_of("gates.yml"))}
    assert [name for name in sorted(named) if not re.search(rf"`(?:\w+\.)?{name}`", rows)] == []


def test_a_key_without_a_description_is_found() -> None:
    told = {"$defs": {"Gate": {"properties": {"phase": {"type": "string"}}}}, "properties": {"gates": {}}}
    assert [name.rpartition(".")[2] for name, value in keys(told) if not value.get("description")] == [
        "gates",
        "phase",
    ]


@pytest.mark.parametrize("path", LABS, ids=lambda path: path.stem)
def test_the_examples_fit_the_schema(path: Any) -> None:
    assert problems("lab.yml", path.read_text(encoding="utf-8")) == []


TAKEN = [
    (
        "the limits of the examples",
        "gates.yml",
        (ROOT / "examples" / "gates.yml").read_text(encoding="utf-8"),
    ),
    ("a host by its name alone", "hosts.yml", "hosts: [{name: web-1}]"),
    (
        "what two hosts have in common, once",
        "hosts.yml",
        "hosts:\n  - &a {name: a, user: lab}\n  - {<<: *a, name: b}",
    ),
    ("a clone by its base URL alone", "plimsoll.yml", "clones: [http://127.0.0.1:8080]"),
    (
        "a clone with the way that leads to it",
        "plimsoll.yml",
        "clones: [{target: http://a, connect_to: '10.0.0.5:80'}]",
    ),
]
REFUSED = [
    ("an unknown key", "gates.yml", "gates: [{scenario: replay, at_most: 1}]", "at_most"),
    ("no limit at all", "gates.yml", "gates: []", "[]"),
    ("a confidence of everything", "gates.yml", "gates: [{scenario: a}]\nconfidence: 1", "1"),
    ("a port out of range", "hosts.yml", "hosts: [{name: a, port: 99999}]", "99999"),
    ("a host without a name", "hosts.yml", "hosts: [{address: a}]", "name"),
    ("a clone without a target", "plimsoll.yml", "clones: [{name: a}]", "{'name': 'a'}"),
    ("a password", "plimsoll.yml", "clones: [{target: http://a, password: x}]", "password"),
    ("a backend without a clone", "lab.yml", "name: a\nbackends: [{name: a}]\nscenarios: [{}]", "clone"),
    ("a word that is no order", "lab.yml", "order: baab", "baab"),
]


def problems(file: str, text: str) -> list[str]:
    """Return what an editor would mark in the text of a file."""
    checker = jsonschema.Draft202012Validator(schema_of(file))
    return [error.message for error in checker.iter_errors(yaml.safe_load(text))]


@pytest.mark.parametrize(("why", "file", "text"), TAKEN, ids=[row[0] for row in TAKEN])
def test_what_is_right_is_taken(why: str, file: str, text: str) -> None:
    assert problems(file, text) == [], why


@pytest.mark.parametrize(("why", "file", "text", "says"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_wrong_is_marked(why: str, file: str, text: str, says: str) -> None:
    assert any(says in message for message in problems(file, text)), why


@pytest.mark.parametrize("file", FILES)
def test_the_command_prints_a_schema(file: str) -> None:
    done = CliRunner().invoke(main, ["schema", file])
    assert done.exit_code == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(done.output))


def test_a_file_that_has_no_schema_is_refused() -> None:
    done = CliRunner().invoke(main, ["schema", "run.json"])
    assert done.exit_code == 2
    assert "gates.yml" in done.output
