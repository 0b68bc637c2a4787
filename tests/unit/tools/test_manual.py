"""The man pages: what the programs say, in a form that man(1) shows as it is."""

import re
import subprocess
import sys

import pytest

from tests.support.programs import DOCS, ROOT
from tools.manual import Page, escaped, roff, sentences


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the pages by the name of their command. Scenarios patch what imports them: so not in here."""
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, "tools/manual.py", folder], cwd=ROOT, check=True, capture_output=True)
    return {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.1")}


def test_each_command_has_a_page(pages: dict[str, str]) -> None:
    reference = (DOCS / "commands.md").read_text(encoding="utf-8")
    named = re.findall(r"^## `(.+)`$", reference, re.MULTILINE)
    assert sorted(pages) == sorted(name.replace(" ", "-") for name in named)


def test_flags_and_examples_are_on_the_page(pages: dict[str, str]) -> None:
    check, lag = pages["plimsoll-check"], pages["plimsoll-lag"]
    assert ".TP\n\\fB\\-\\-no\\-probe\\fR\nCheck only the file; contact no machine.\n" in check
    assert ".nf\nplimsoll check examples/two\\-servers.yml\n" in check
    assert check.endswith(".SH SEE ALSO\nplimsoll(1)\n")
    assert "\\fB\\-\\-duration=D\\fR" in lag
    assert ".nf\nplimsoll lag\n" in lag
    for name, text in pages.items():
        assert ".SH EXAMPLES" in text, name


def test_a_page_is_made_of_what_a_command_says() -> None:
    page = Page(
        "plimsoll try", "[OPTIONS]", "Try it. More.", [("--loud", "Be loud.")], [], "  plimsoll try\n"
    )
    assert roff(page, "1.0", "2026-01-01").splitlines() == [
        '.TH "PLIMSOLL-TRY" 1 "2026-01-01" "plimsoll 1.0" "Plimsoll"',
        ".SH NAME",
        r"plimsoll\-try \- Try it",
        ".SH SYNOPSIS",
        r"\fBplimsoll try\fR [OPTIONS]",
        ".SH DESCRIPTION",
        "More.",
        ".SH OPTIONS",
        ".TP",
        r"\fB\-\-loud\fR",
        "Be loud.",
        ".SH EXAMPLES",
        ".nf",
        "plimsoll try",
        ".fi",
        ".SH SEE ALSO",
        "plimsoll(1)",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a-b", r"a\-b"),
        (r"C:\new", r"C:\enew"),
        (".TH begins a page", r"\&.TH begins a page"),
        ("'quoted'", r"\&'quoted'"),
        ("plain", "plain"),
    ],
)
def test_nothing_in_a_text_is_a_request_to_roff(text: str, shown: str) -> None:
    assert escaped(text) == shown


@pytest.mark.parametrize(
    ("text", "first", "rest"),
    [
        ("Check lab.yml, and more. Changes\nnothing.", "Check lab.yml, and more.", "Changes\nnothing."),
        ("Alone.", "Alone.", ""),
        ("Two\nlines.\n\nBelow.", "Two lines.", "Below."),
    ],
)
def test_the_first_sentence(text: str, first: str, rest: str) -> None:
    assert sentences(text) == (first, rest)
