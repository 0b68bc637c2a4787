"""Clean-up: what bears a run's name, what a run directory says, and what is refused at once."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from plimsoll.cli import main
from plimsoll.common.errors import SettingsError
from plimsoll.scenarios.upload_images import upload_name
from plimsoll.scenarios.wordpress.content import make_article
from plimsoll.scenarios.wordpress.leftovers import find_run_name, read_request
from tests.support.rundir import records, write_run

NAME = "plimsoll-run-20261123t201500z-0badcafe"
OTHER = "plimsoll-run-20261123t201501z-00000001"
TARGET = "http://127.0.0.1:9"


def item(title: str = "", file: str = "", text: str = "") -> dict[str, Any]:
    return {"id": 7, "title": {"raw": title}, "content": {"raw": text}, "source_url": f"http://x/up/{file}"}


BORNE = [
    ("post", item(make_article(1, 2, 500).with_run_name(NAME).title), True, "an article of a run"),
    ("post", item(NAME), True, "the name alone"),
    ("post", item(f"About {NAME} and others"), False, "a title that goes on behind the name"),
    ("post", item(f"About not{NAME}"), False, "a longer word"),
    ("post", item(f"About {NAME[:-1]}"), False, "a name that is cut off"),
    ("post", item("An article", text=f"It is of {NAME}"), False, "a text that speaks of it"),
    ("post", item("An article", f"x-{NAME}.jpg"), False, "a post has no file"),
    ("post", {"id": 7}, False, "no title at all"),
    ("post", {"id": 7, "title": {"rendered": f"An article {NAME}"}}, True, "a title as visitors see it"),
    ("media", item(f"photograph-1-2-{NAME}"), True, "an image of a run"),
    (
        "media",
        item("Sunset", upload_name(Path("sun set.jpg"), NAME)),
        True,
        "a title out of the picture itself",
    ),
    ("media", item("Sunset", f"x-{NAME}-scaled.jpg"), True, "scaled by WordPress"),
    ("media", item("Sunset", f"x-{NAME}-2-rotated.jpg"), True, "the second of its name, and turned"),
    ("media", item("Sunset", f"x-{NAME}/sunset.jpg"), False, "a folder of that name"),
    ("media", item("Sunset", f"x-{NAME}-seen-from-here.jpg"), False, "a file of somebody's own"),
]


@pytest.mark.parametrize(("kind", "found", "bears", "why"), BORNE, ids=[row[3] for row in BORNE])
def test_only_the_end_of_a_title_or_of_a_file_s_name_counts(
    kind: str, found: dict[str, Any], bears: bool, why: str
) -> None:
    assert find_run_name(kind, found) == (NAME if bears else None), why


def run_with(path: Path, *events: dict[str, Any], url: str = TARGET) -> Path:
    told = [{"t_ns": 1} | event for event in events]
    return write_run(path, records(1), events=told, scenario="save-article", target={"url": url})


NAMED = {"event": "run name", "name": NAME}


def made(what: str, kind: object, number: object) -> dict[str, Any]:
    return {"event": what, "kind": kind, "id": number, "run": NAME}


def test_a_run_says_what_it_created_and_did_not_remove(tmp_path: Path) -> None:
    events = [NAMED, made("created", "post", 1), made("created", "media", 2), made("created", "post", 3)]
    hostile = [
        made("created", "users", 1),
        made("created", "post", "1/../../users"),
        made("created", "post", True),
    ]
    run = run_with(tmp_path / "run", *events, made("removed", "post", 1), *hostile)
    wanted = read_request([], [run], TARGET)
    assert wanted.runs == [NAME]
    assert wanted.created == [("media", 2), ("post", 3)]


def test_the_workers_of_a_run_each_have_a_name(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run")
    for number, name in enumerate((NAME, OTHER)):
        run_with(run / "shards" / str(number), {"event": "run name", "name": name})
    assert read_request([], [run], TARGET).runs == [NAME, OTHER]


REFUSED = [
    (["--run", "holiday"], "holiday is not the name of a run", "somebody's own word"),
    (["--run", f"{NAME}*"], "is not the name of a run", "a pattern"),
    (["--run", "all", "--run", NAME], "all cannot be combined", "all and one of them"),
    (["--yes"], "--yes: name the runs", "nobody said which"),
    (["--yes", "--dry-run", "--run", NAME], "cannot be combined with --dry-run", "both"),
    (["none"], "none", "does not exist"),
]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["scenario", "clean-up", "--target", TARGET, *arguments])


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLIMSOLL_USER", "author")
    monkeypatch.setenv("PLIMSOLL_PASSWORD", "hunter2")


@pytest.mark.parametrize(("arguments", "says", "why"), REFUSED, ids=[row[2] for row in REFUSED])
def test_what_makes_no_sense_is_refused(arguments: list[str], says: str, why: str) -> None:
    refused = run("--i-may-change-this-site", *arguments)
    assert refused.exit_code == 2, why
    assert says in refused.stderr


def test_leave_is_needed_as_for_any_change() -> None:
    refused = run()
    assert refused.exit_code == 2
    assert "clean-up changes the site" in refused.stderr
    assert "--i-may-change-this-site" in refused.stderr


def test_a_run_on_another_site_is_refused(tmp_path: Path) -> None:
    other = run_with(tmp_path / "run", NAMED, url="https://www.example.org")
    with pytest.raises(SettingsError, match=r"was a run on https://www\.example\.org, not on"):
        read_request([], [other], TARGET)


def test_a_run_that_names_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="names nothing on the site"):
        read_request([], [run_with(tmp_path / "run")], TARGET)


def test_a_site_that_nobody_serves_is_exit_code_1() -> None:
    done = run("--i-may-change-this-site")
    assert done.exit_code == 1
    assert "connect refused" in done.stderr


def test_its_help_has_an_example_and_it_takes_no_password() -> None:
    said = run("--help").stdout
    assert "plimsoll scenario clean-up --target" in said
    assert "--password " not in said
    assert "--iterations" not in said
