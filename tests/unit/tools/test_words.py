"""`make lint` on words: planted sentences make it red, each named by its file, line and reason."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.programs import ROOT
from tools import words

PLANTED = {
    "plimsoll/serve/help.py": '''"""Serve a folder."""

TEXT = f"""Where to listen.

Other than on loopback, {"it"} wants a token.
"""
''',
    "replay/run.go": """package replay

// Run sends what is due. It is no
// loop for several goroutines.
func Run() {}
""",
    "README.md": """# Serve

- `is no option` is code.
- The page tells whom to ask:
  80 clients with 1 accounts.
""",
}
WHAT_IS_FINE = {
    "plimsoll/page.html": '<p title="{{ run }}">There is no run here; it is no longer kept.</p>\n',
    "replay/run_test.go": "package replay\n\n// It wants a token.\n",
    "tools/check": '#!/bin/sh\n# One request, or 21 requests.\necho "not needed any more"\n',
}


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


@pytest.mark.skipif(
    os.environ.get("CI") != "true" and not (words.NODE / "node_modules/.bin/textlint").exists(),
    reason="textlint is installed by `make lint`",
)
def test_planted_sentences_make_it_red(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(tmp_path, WHAT_IS_FINE)
    assert words.main([str(tmp_path)]) == 0
    plant(tmp_path, PLANTED)
    assert words.main([str(tmp_path)]) == 1
    found = capsys.readouterr().out.splitlines()
    assert [line.partition(" => ")[0] for line in found] == [
        "README.md:4: whom",
        "README.md:5: 1 accounts",
        "plimsoll/serve/help.py:5: Other than on",
        "plimsoll/serve/help.py:5: … wants a",
        "replay/run.go:3: is no",
    ]
    assert all(line.endswith(")") for line in found), "each says why"


@pytest.mark.parametrize(
    ("reader", "source", "taken"),
    [
        pytest.param(
            words.python_prose,
            "f'{a} is {b(\"c d\")}'",
            [(1, "… is …"), (1, "c d")],
            id="values are left out",
        ),
        pytest.param(words.python_prose, '"a "\\\n"b"', [(1, "a b")], id="joined texts are one"),
        pytest.param(words.c_like_prose, 'x("a %d " +\n\t"b")', [(1, "a … b")], id="so are those of Go"),
        pytest.param(words.c_like_prose, "x\n// a\n// b\ny", [(2, "a b")], id="lines of a comment are one"),
        pytest.param(words.shell_prose, "a:\n\t@x\nb: ## help of b\n", [(3, "help of b")], id="help of make"),
        pytest.param(words.page_prose, '{% if a %}\n<b title="c">d</b>', [(2, "c"), (2, "d")], id="pages"),
        pytest.param(words.markdown_prose, "```sh\na\n```\n[b](c.md)\n", [(4, "b")], id="code is no prose"),
        pytest.param(words.markdown_prose, "- a\n  b\n- c\n", [(1, "- a b"), (3, "- c")], id="items"),
    ],
)
def test_what_is_prose(
    reader: Callable[[str], Iterator[words.Prose]], source: str, taken: list[tuple[int, str]]
) -> None:
    assert [(each.lines[0], each.text) for each in reader(source)] == taken


def test_the_rules_say_why() -> None:
    text = (ROOT / "tools" / "words.yml").read_text(encoding="utf-8")
    assert text.count("  - expected: ") == text.count("    prh: ")
