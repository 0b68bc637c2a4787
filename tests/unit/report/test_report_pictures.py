"""The figures of a report as files: `--figures svg,png`."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.analysis.page.shell import draw_pictures, parse_pictures, picture_command
from plimsoll.cli import main
from plimsoll.common.errors import OutputError

SVG, PNG = "data:image/svg+xml,%3Csvg%2F%3E", "data:image/png;base64,iVBORw=="


def left(value: object) -> str:
    return f'<html><script type="application/json" id="pictures">{json.dumps(value)}</script></html>'


LEFT = [
    ("what was asked for", left({"scatter-0": {"svg": SVG, "png": PNG}}), {"scatter-0.svg", "scatter-0.png"}),
    ("one of them only", left({"tail": {"png": PNG}}), {"tail.png"}),
    ("nothing", "<html></html>", set()),
    ("a page that was cut off", left({"tail": {"png": PNG}})[:-20], set()),
    ("no JSON", '<script type="application/json" id="pictures">{</script>', set()),
    ("a list", left([1]), set()),
    ("a way out of the folder", left({"../../etc/passwd": {"svg": SVG}, "a/b": {"svg": SVG}}), set()),
    ("a hidden name, and none", left({".bashrc": {"svg": SVG}, "": {"svg": SVG}}), set()),
    ("a name with a line's end", left({"tail\n": {"svg": SVG}}), set()),
    ("another kind of file", left({"tail": {"svg": "data:text/html,<script>"}}), set()),
    ("a format that was not asked for", left({"tail": {"pdf": SVG}}), set()),
    ("a number", left({"tail": {"svg": 1}}), set()),
    ("damaged base 64", left({"tail": {"png": "data:image/png;base64,***"}}), set()),
    ("the page's own comes last", left({"bad": {"svg": SVG}}) + left({"tail": {"svg": SVG}}), {"tail.svg"}),
]


@pytest.mark.parametrize(("what", "dom", "names"), LEFT, ids=[row[0] for row in LEFT])
def test_only_pictures_of_our_own_figures_become_files(what: str, dom: str, names: set[str]) -> None:
    found = parse_pictures(dom, ["svg", "png"])
    assert found.keys() == names, what
    assert found.get("tail.svg", b"<svg/>") == b"<svg/>"


def test_the_browser_reaches_no_network_and_opens_odd_names() -> None:
    command = picture_command("chromium", Path("/a #?%é/r.html"), ["svg"], Path("/p"), as_root=False)
    assert "--host-resolver-rules=MAP * ~NOTFOUND" in command
    assert "--no-sandbox" not in command
    assert command[-1] == "file:///a%20%23%3F%25%C3%A9/r.html#pictures=svg"


def test_without_chromium_the_page_is_written_and_the_remedy_named(
    small_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.analysis.page.shell.find_chromium", lambda: None)
    result = CliRunner().invoke(main, ["report", str(small_run), "--figures", "svg"])
    assert result.exit_code == 2
    assert (small_run / "report.html").exists()
    assert "report.html is written, but its charts are not" in result.stderr
    assert "apt-get install chromium" in result.stderr
    assert "report: " in result.stdout, "the page is told of before"


BROKEN = [
    ("fails", "#!/bin/sh\necho '\033[31mno display' >&2; exit 7\n", "exit code 7: \\x1b[31mno display"),
    ("leaves nothing", "#!/bin/sh\nexit 0\n", "exit code 0: it says nothing"),
    ("cannot be run", "", "cannot be run"),
]


@pytest.mark.parametrize(("what", "program", "says"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_browser_that_fails_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, program: str, says: str
) -> None:
    (tmp_path / "chromium").write_text(program)
    (tmp_path / "chromium").chmod(0o755)
    fake = os.fspath(tmp_path / "chromium")
    monkeypatch.setattr("plimsoll.analysis.page.shell.find_chromium", lambda: fake)
    with pytest.raises(OutputError) as raised:
        draw_pictures(tmp_path / "report.html", ["svg"])
    assert says in str(raised.value), what
    assert not (tmp_path / "report-figures").exists()


@pytest.mark.parametrize(
    ("given", "says"), [("pdf", "'pdf' is not a format"), ("svg,", "'' is not a format")]
)
def test_other_formats_are_refused(small_run: Path, given: str, says: str) -> None:
    result = CliRunner().invoke(main, ["report", str(small_run), "--figures", given])
    assert result.exit_code == 2
    assert says in result.stderr
    assert not (small_run / "report.html").exists()
