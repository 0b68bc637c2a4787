"""The YAML file of an installer's pages: all its problems at once, each with line, key and remedy."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from plimsoll.common.errors import SettingsError
from plimsoll.scenarios.settings import STAND_IN
from plimsoll.scenarios.xenforo.installer import Pages, parse_pages, read_pages
from tests.support.programs import DOCS

WHOLE = STAND_IN.read_text(encoding="utf-8")
LICENSED = STAND_IN.with_name("licensed.yml")
DOCUMENT = DOCS / "xenforo.md"


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


CASES = [
    (
        "an unknown key",
        "path:",
        "paths: x\npath:",
        "paths: is not a known key: did you mean path? (see docs/xenforo.md)",
    ),
    (
        "an unknown key of a part",
        "form: form.login",
        "forms: x\n  form: form.login",
        "login.forms: is not a known key",
    ),
    ("a key that is missing", "  user_field: account\n", "", "login.user_field: is missing"),
    ("a part that is missing", "title: h1\n", "", "title: is missing"),
    (
        "an invalid selector",
        "form: form.start",
        "form: 'form..start'",
        "start.form: is not a CSS selector",
    ),
    ("an empty selector", "form: form.start", "form: ''", "start.form: is too short"),
    (
        "an invalid pattern",
        r"'^\[\d+/\d+\] (.+?) \.\.\.'",
        "'(['",
        "command.phase: is not a regular expression",
    ),
    ("a pattern without a group", r"'^\[\d+/\d+\] (.+?) \.\.\.'", "'x'", "command.phase: needs one group"),
    (
        "a number where text is needed",
        "user_field: account",
        "user_field: 7",
        "login.user_field: must be text",
    ),
    ("text where a number is needed", "same_page: 3", "same_page: some", "limits.same_page: must be"),
    ("a limit of nothing", "same_page: 3", "same_page: 1", "limits.same_page: must be at least 2"),
    ("one selector where a list is needed", "[.error-box]", ".error-box", "errors: must be a list"),
    ("no selector for errors", "[.error-box]", "[]", "errors: must not be empty"),
    ("a bad selector in a list", "[.error-box]", "[.error-box, ':x(']", "errors.1: is not a CSS selector"),
    (
        "an address of another host",
        "/forum/install/",
        "http://x.test/",
        "path: must be a path below the target",
    ),
    (
        "a text that is on every page",
        "up_to_date: already up to date",
        "up_to_date: a",
        "texts.up_to_date: is too short",
    ),
    ("a key that stands twice", "title: h1", "title: h1\ntitle: h2", "title: is set twice, first in line"),
    ("a part that holds nothing", "login:", "login: x\nlogging:", "login: must hold further keys"),
]


@pytest.mark.parametrize(("why", "old", "new", "message"), CASES, ids=[case[0] for case in CASES])
def test_a_problem_is_named_with_its_line(why: str, old: str, new: str, message: str) -> None:
    text = WHOLE.replace(old, new, 1)
    if "login: x" in text:  # what was below it has to go
        text = re.sub(r"logging:\n(  .*\n)+", "", text)
    assert text != WHOLE, "the case does not change the file"
    with pytest.raises(SettingsError) as caught:
        parse_pages(text, "f.yml")
    assert message in str(caught.value), why
    assert re.match(r"f\.yml:\d+: ", str(caught.value))


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ("form: form.start", "form: '['", "form: '['"),
        ("title: h1", "title: h1\ntitle: h2", "title: h2"),
        ("same_page: 3", "same_page: 0", "same_page"),
        ("  user_field: account\n", "", "login:"),
    ],
)
def test_the_line_is_that_of_the_key_or_of_the_part_that_lacks_it(old: str, new: str, at: str) -> None:
    text = WHOLE.replace(old, new, 1)
    with pytest.raises(SettingsError) as caught:
        parse_pages(text, "f.yml")
    assert str(caught.value).startswith(f"f.yml:{line_of(text, at)}: ")


def test_all_problems_are_named_at_once() -> None:
    text = (
        WHOLE.replace("title: h1", "titel: h1")
        .replace("form.start", "'['")
        .replace("same_page: 3", "same_page: 0")
    )
    with pytest.raises(SettingsError) as caught:
        parse_pages(text, "f.yml")
    assert len(str(caught.value).splitlines()) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "f.yml:1: must hold keys", id="an empty file"),
        pytest.param("- a\n- b\n", "f.yml:1: must hold keys", id="a list"),
        pytest.param("path: [\n", "is not valid YAML", id="broken YAML"),
        pytest.param(
            "a: !!python/object:os.system x\n", "is not valid YAML", id="YAML that would run something"
        ),
        pytest.param("a: &a [*a]\n", "is not a known key", id="YAML that holds itself"),
        pytest.param("[" * 5000, "is not valid YAML|too deep", id="YAML nested very deep"),
    ],
)
def test_what_is_not_such_a_file_at_all(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_pages(text, "f.yml")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        read_pages(tmp_path / "none.yml")
    (tmp_path / "binary.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="UTF-8"):
        read_pages(tmp_path / "binary.yml")


@given(st.text(max_size=200))
def test_no_text_whatever_raises_anything_else(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_pages(text, "f.yml")


def test_both_files_of_ours_are_whole() -> None:
    assert read_pages(STAND_IN).path == "/forum/install/"
    assert read_pages(LICENSED).path == "/install/"


def test_all_that_is_a_guess_in_the_template_is_marked() -> None:
    for line in LICENSED.read_text(encoding="utf-8").splitlines():
        if re.match(
            r"\s*#? ?(form|user_field|password_field|title|errors|complete|phase|locked|expired):", line
        ):
            assert "CHECK" in line or "type=password" in line, line


def keys_of(model: type[BaseModel], before: str = "") -> list[str]:
    keys = []
    for name, field in model.model_fields.items():
        key = before + (field.alias or name)
        kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
        below = next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)
        keys += keys_of(below, key + ".") if below else [key]
    return keys


def test_every_key_is_documented_and_no_other() -> None:
    documented = re.findall(r"^\| `([\w.]+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.M)
    assert sorted(documented) == sorted(keys_of(Pages))
