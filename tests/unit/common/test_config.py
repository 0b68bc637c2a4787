"""Defaults of options from plimsoll.toml and the environment: who wins, what is refused, what is shown."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from plimsoll.cli import main
from plimsoll.common.config import CONSENT, default_map, environment_variable, find_defaults, options
from plimsoll.common.errors import SettingsError
from tests.support.programs import DOCS


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def write(text: str) -> None:
    Path("plimsoll.toml").write_text(text, encoding="utf-8")


@click.group()
def top() -> None:
    """Do nothing."""


@top.command()
@click.option("--pace", "speed", default=1.0)
@click.option("--header", multiple=True)
@click.option("--loud/--quiet", default=False)
@click.option("--yes", is_flag=True)
def go(**_: object) -> None:
    """Go."""


ROWS = [
    ("nothing is said", {}, {}, {}),
    ("the file says something", {"pace": 2}, {}, {"speed": 2}),
    ("the environment wins over it", {"pace": 2}, {"PLIMSOLL_TOP_GO_PACE": "3"}, {"speed": "3"}),
    ("a list", {"header": ["A: b", "C: d"]}, {}, {"header": ["A: b", "C: d"]}),
    ("a list in the environment", {}, {"PLIMSOLL_TOP_GO_HEADER": "a b"}, {"header": ["a", "b"]}),
    ("true", {"loud": True}, {}, {"loud": True}),
    ("a variable of another command", {}, {"PLIMSOLL_TOP_GOES_PACE": "3"}, {}),
]


@pytest.mark.parametrize(("why", "settings", "environment", "wanted"), ROWS, ids=[row[0] for row in ROWS])
def test_who_wins(
    why: str, settings: dict[str, object], environment: dict[str, str], wanted: dict[str, object]
) -> None:
    found = find_defaults(top, "top", {"go": settings}, environment)
    assert default_map(found, "top") == ({"go": wanted} if wanted else {}), why


WRONG = [
    (
        "an unknown key",
        {"go": {"pase": 2}},
        {},
        "plimsoll.toml: top.go.pase: is not an option: did you mean pace?",
    ),
    ("no list", {"go": {"header": "x"}}, {}, "top.go.header: must be a list: [one, another]"),
    ("a list", {"go": {"pace": [1]}}, {}, "top.go.pace: must be one value"),
    ("a word for a flag", {"go": {"loud": "very"}}, {}, "top.go.loud: must be true or false"),
    ("a table for a value", {"go": {"pace": {"a": 1}}}, {}, "must be text, a number, or true or false"),
    ("consent", {"go": {"yes": True}}, {}, "top.go.yes: cannot be a default: give --yes each time"),
    (
        "consent in the environment",
        {},
        {"PLIMSOLL_TOP_GO_YES": "1"},
        "PLIMSOLL_TOP_GO_YES: cannot be a default",
    ),
    ("a value for a table", {"go": 5}, {}, "top.go: must be a table: [top.go]"),
]


@pytest.mark.parametrize(("why", "settings", "environment", "says"), WRONG, ids=[row[0] for row in WRONG])
def test_what_is_refused(
    why: str, settings: dict[str, object], environment: dict[str, str], says: str
) -> None:
    with pytest.raises(SettingsError) as error:
        find_defaults(top, "top", settings, environment)
    assert says in str(error.value), why


def test_a_command_takes_what_the_file_says_and_a_flag_wins() -> None:
    write("[check]\nno-probe = true\n[init]\nname = 'FILE'\n")
    words = ["init", "--log=x", "--site=own", "--disks=a=/a", "--duration=2h", "--limits=10%", "--no-probe"]
    assert "--name: FILE: must be lower-case" in run(*words).output
    done = run(*words, "--name", "flag")
    assert done.exit_code == 0, done.output
    assert run("check", "lab.yml").exit_code == 0


def test_a_section_of_a_command_is_checked_when_that_is_called() -> None:
    write("[schedule.instal]\n[check]\nno_prob = true\n")
    done = run("check", "x.yml")
    assert done.exit_code == 2
    assert "Error: plimsoll.toml: check.no_prob: is not an option: did you mean no-probe?" in done.output


SECRETS = [
    ("a password", "[run]\npassword = 'hunter2'\n"),
    ("a token in a table of its own", "[a.b]\napi-token = 'hunter2'\n"),
    ("a password in a URL", "[run]\nx = 'http://me:hunter2@10.0.0.5'\n"),
    ("a header with one", "[run]\nheader = ['Authorization: Bearer hunter2']\n"),
    ("a parameter", "[run]\nx = 'http://a/?token=hunter2'\n"),
]


@pytest.mark.parametrize(("why", "text"), SECRETS, ids=[row[0] for row in SECRETS])
def test_secrets_are_refused_and_not_shown(why: str, text: str) -> None:
    write(text)
    for words in (["config"], ["run", "lab.yml"]):
        done = run(*words)
        assert done.exit_code == 2, why
        assert "looks like a secret, which must not be in this file" in done.output
        assert "hunter2" not in done.output


def test_the_name_of_a_file_with_a_secret_is_none() -> None:
    write("[run]\nwebhook-file = 'hook.txt'\n[signoff]\nkey = 'id_ed25519'\n")
    assert run("config").exit_code == 0


def test_what_is_set_is_shown_with_where_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    write("[compare]\ngates = 'gates.yml'\njson = true\n")
    monkeypatch.setenv("PLIMSOLL_COMPARE_GATES", "strict.yml")
    done = run("config", "--json")
    assert json.loads(done.output) == {
        "file": "plimsoll.toml",
        "exists": True,
        "defaults": [
            {
                "command": "compare",
                "option": "gates",
                "value": "strict.yml",
                "source": "PLIMSOLL_COMPARE_GATES",
            },
            {"command": "compare", "option": "json", "value": True, "source": "plimsoll.toml"},
        ],
    }
    assert 'compare --gates  "strict.yml"  (PLIMSOLL_COMPARE_GATES)\n' in run("config").output


def test_all_options_are_listed() -> None:
    write("[init]\nname = 'mine'\n")
    lines = run("config", "--all").output.splitlines()
    assert 'init --name  "mine"  (plimsoll.toml)' in lines
    assert 'init --out  "."  (built in)' in lines
    assert not any(line.startswith("scenario ") for line in lines)
    assert len(lines) > 100


def test_nothing_is_set() -> None:
    without_file = run("config").output
    assert without_file.startswith("No default is set, neither in plimsoll.toml nor")
    write("")
    assert run("config").output == without_file


BROKEN = [
    ("no TOML", "[run", "plimsoll.toml: is not TOML: "),
    ("no command", "[rnu]\n", "plimsoll.toml: rnu: is not a command: did you mean run?"),
    ("a scenario", "[scenario.visitors]\nrate = 5\n", "plimsoll.toml: scenario: takes no defaults"),
    ("a value for a command", "run = 5\n", "plimsoll.toml: run: must be a table: [run]"),
]


@pytest.mark.parametrize(("why", "text", "says"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_file_that_is_wrong_is_told(why: str, text: str, says: str) -> None:
    write(text)
    done = run("config")
    assert (done.exit_code, says in done.output) == (2, True), why


def test_another_file_is_named_by_a_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_CONFIG", str(folder / "mine.toml"))
    assert "does not exist: correct or unset PLIMSOLL_CONFIG" in run("config").output
    (folder / "mine.toml").write_text("[compare]\ngates = 'x'\n")
    assert f"({folder / 'mine.toml'})" in run("config").output


def test_help_and_config_work_whatever_the_file_says() -> None:
    write("[run")
    assert run("--help").exit_code == 0
    assert run("doctor", "--help").exit_code == 0
    assert run("compare", "x").exit_code == 2


def test_names_of_variables() -> None:
    assert environment_variable("check", "no-probe") == "PLIMSOLL_CHECK_NO_PROBE"
    assert set(options(go)) == {"pace", "header", "loud", "yes"}


def test_what_cannot_be_a_default_is_documented() -> None:
    page = (DOCS / "config.md").read_text(encoding="utf-8")
    assert [name for name in sorted(CONSENT) if f"`--{name}`" not in page] == []
