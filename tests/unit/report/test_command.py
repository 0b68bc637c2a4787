"""The command: what it prints, where it writes, how it exits."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll import __version__
from plimsoll.cli import main
from tests.support.rundir import records, write_run


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
