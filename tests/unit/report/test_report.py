"""The command: what it prints, where it writes, how it exits, and its figures as files."""

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll import __version__
from plimsoll.analysis.page.shell import draw_pictures, parse_pictures, picture_command
from plimsoll.analysis.report.making import make_report
from plimsoll.cli import main
from plimsoll.common.errors import OutputError, RunDirectoryError
from tests.support.rundir import records, traffic, write_run


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_it_prints_the_headline_and_where_the_report_is(busy_run: Path) -> None:
    result = run("report", busy_run)
    assert result.exit_code == 0
    headline, sentence, report = result.stdout.splitlines()
    assert headline.startswith("run: complete, ")
    assert "p99.9 " in headline
    assert sentence.startswith("While zfs send ran, the slowest request in a thousand ")
    assert report == f"report: {busy_run / 'report.html'}"
    assert result.stderr == ""


def test_several_directories_make_one_report_in_the_first(tmp_path: Path) -> None:
    one, two = (write_run(tmp_path / name, records(1500), backend=name) for name in ("nvme", "sata"))
    result = run("report", one, two)
    assert result.exit_code == 0
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == ["nvme", "sata", "Faster", "report"]
    assert "Faster: in doubt (not at all: " in result.stdout
    assert (one / "report.html").exists()
    assert not (two / "report.html").exists()


def test_out_says_where(small_run: Path, tmp_path: Path) -> None:
    for out in (tmp_path / "x.html", tmp_path / "new" / "dir" / "x.html"):
        assert run("report", small_run, "--out", out).exit_code == 0
        assert out.is_file()
    assert (tmp_path / "x.html").read_text().startswith("<!DOCTYPE html>")
    assert not (small_run / "report.html").exists()


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("a directory", "is a directory; give the name of a file with --out"),
        (
            "a file/report.html",
            "cannot be written: File exists; choose another place with --out",
        ),
    ],
)
def test_an_out_that_cannot_be_is_one_sentence(small_run: Path, tmp_path: Path, what: str, says: str) -> None:
    (tmp_path / "a directory").mkdir()
    (tmp_path / "a file").touch()
    result = run("report", small_run, "--out", tmp_path / what)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [[], ["report"], ["report", "/nowhere/at/all"], ["report", "--colour"], ["nothing"]]
)
def test_wrong_usage_exits_2_without_a_trace(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_report_that_cannot_be_made_leaves_the_old_one(small_run: Path) -> None:
    (small_run / "report.html").write_text("old")
    shutil.copy(small_run / "run.json", small_run / "routes.json")
    assert run("report", small_run).exit_code == 2
    assert (small_run / "report.html").read_text() == "old"
    assert not list(small_run.glob(".report*"))


def test_progress_goes_to_standard_error_only_when_asked(small_run: Path) -> None:
    result = run("report", small_run, "--json", "--progress")
    assert json.loads(result.stdout)["runs"]
    assert run("report", small_run, "--json").stderr == ""


def test_names_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", records(10), backend="\x1b]0;owned\x07\u202egnp.\nx")
    result = run("report", path)
    assert r"\x1b]0;owned\x07\u202egnp.\x0ax: complete" in result.stdout
    bad = write_run(tmp_path / "bad", records(10), status="\x1b[2J")
    assert "\x1b" not in run("report", bad).output


def test_the_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert run("--version").output == f"plimsoll, version {__version__}\n"
    assert version("plimsoll") == __version__


SVG, PNG = "data:image/svg+xml,%3Csvg%2F%3E", "data:image/png;base64,iVBORw=="


def page_with(value: object) -> str:
    return f'<html><script type="application/json" id="pictures">{json.dumps(value)}</script></html>'


PICTURES = [
    (
        "what was asked for",
        page_with({"scatter-0": {"svg": SVG, "png": PNG}}),
        {"scatter-0.svg", "scatter-0.png"},
    ),
    ("one of them only", page_with({"tail": {"png": PNG}}), {"tail.png"}),
    ("nothing", "<html></html>", set()),
    ("a page that was cut off", page_with({"tail": {"png": PNG}})[:-20], set()),
    ("no JSON", '<script type="application/json" id="pictures">{</script>', set()),
    ("a list", page_with([1]), set()),
    ("a way out of the folder", page_with({"../../etc/passwd": {"svg": SVG}, "a/b": {"svg": SVG}}), set()),
    ("a hidden name, and none", page_with({".bashrc": {"svg": SVG}, "": {"svg": SVG}}), set()),
    ("a name with a line's end", page_with({"tail\n": {"svg": SVG}}), set()),
    ("another kind of file", page_with({"tail": {"svg": "data:text/html,<script>"}}), set()),
    ("a format that was not asked for", page_with({"tail": {"pdf": SVG}}), set()),
    ("a number", page_with({"tail": {"svg": 1}}), set()),
    ("damaged base 64", page_with({"tail": {"png": "data:image/png;base64,***"}}), set()),
    (
        "the page's own comes last",
        page_with({"bad": {"svg": SVG}}) + page_with({"tail": {"svg": SVG}}),
        {"tail.svg"},
    ),
]


@pytest.mark.parametrize(("what", "dom", "names"), PICTURES, ids=[row[0] for row in PICTURES])
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
    result = run("report", small_run, "--figures", "svg")
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
    result = run("report", small_run, "--figures", given)
    assert result.exit_code == 2
    assert says in result.stderr
    assert not (small_run / "report.html").exists()


@pytest.mark.parametrize(
    ("what", "runs", "said"),
    [
        (
            "two folders of runs",
            ["a b/1", "c/runs/1", "c/runs/2"],
            "{0}: holds no run, but 2 folders of runs; name one:\n"
            "  plimsoll report '{0}/a b'\n  plimsoll report {0}/c",
        ),
        ("one", ["a/1"], "{0}: holds no run, but 1 folder of runs; name one:\n  plimsoll report {0}/a"),
        ("a level too deep", ["a/b/1"], "{0}: run.json is missing, so this is not a run directory"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_a_folder_of_folders_of_runs_is_answered_with_the_command(
    tmp_path: Path, what: str, runs: list[str], said: str
) -> None:
    for run in runs:
        write_run(tmp_path / run, traffic(60, 30))
    with pytest.raises(RunDirectoryError) as raised:
        make_report([tmp_path])
    assert str(raised.value).startswith(said.format(tmp_path)), what
