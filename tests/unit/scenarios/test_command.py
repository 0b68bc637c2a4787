"""`plimsoll scenario`: what it lists, what it takes, how it exits. The servers are nobody: see tests/lab."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from plimsoll import scenarios as registry
from plimsoll.cli import main
from plimsoll.scenarios.scenario import scenario


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["scenario", *arguments])


def test_the_list_says_what_each_does_needs_and_changes() -> None:
    result = run("list")
    assert result.exit_code == 0
    for entry in registry.list_scenarios():
        for text in (entry.name, entry.does, entry.needs, entry.changes or "nothing"):
            assert text in result.stdout
    assert [one["name"] for one in json.loads(run("list", "--json").stdout)] == list(registry.MODULES)


@pytest.mark.parametrize("name", registry.MODULES)
def test_every_scenario_has_help_with_an_example_and_an_out_folder(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    for text in (f"plimsoll scenario {name} --target", "--out", "--json", "--progress"):
        assert text in result.stdout


@pytest.mark.parametrize("name", registry.MODULES)
def test_no_option_takes_a_password(name: str) -> None:
    command = scenario.get_command(click.Context(scenario), name)
    assert command
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert not flags & {"--password", "--token", "--secret", "--cookie"}


@pytest.mark.parametrize("name", [one.name for one in registry.list_scenarios() if one.changes])
def test_what_changes_a_site_asks_for_leave(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLIMSOLL_USER", "author")
    monkeypatch.setenv("PLIMSOLL_PASSWORD", "hunter2")
    result = run(name, "--target", "http://127.0.0.1:9")
    assert result.exit_code == 2
    assert "--i-may-change-this-site" in result.stderr
    assert not (tmp_path / "results").exists(), "nothing was begun"


def test_all_problems_are_said_at_once() -> None:
    result = run("save-article", "--target", "10.0.0.5", "--iterations", "0", "--users", "many")
    assert result.exit_code == 2
    for flag in ("--target", "--iterations", "--users"):
        assert f"Error: {flag}: " in result.stderr


def test_an_option_without_effect_is_a_caution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(
        *("upgrade-xenforo", "--target", "http://127.0.0.1:9"), "--probe-ms", "0", "--probe-pages", "/"
    )
    said = "Caution: --probe-pages: has no effect: there are no visits: give --probe-ms above 0, or leave"
    assert said in result.stderr


def test_a_site_that_nobody_serves_fails_the_run(tmp_path: Path) -> None:
    result = run("download", "--target", "http://127.0.0.1:9", "--out", str(tmp_path), "--iterations", "2")
    assert result.exit_code == 1
    assert "connect_refused 2" in result.stdout
    facts = json.loads((tmp_path / "latest" / "run.json").read_text())
    assert facts["status"] == "failed"


def test_an_unknown_scenario_is_named() -> None:
    result = run("save-artcle", "--target", "http://127.0.0.1:9")
    assert result.exit_code == 2
    assert "save-artcle" in result.stderr
