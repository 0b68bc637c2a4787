"""Articles are written on real sites with either editor; what goes wrong is named, and no secret is told."""

import json
import subprocess
import zlib
from pathlib import Path

import pytest

from tests.support import scenario
from tests.support.programs import LONGEST_S, PLIMSOLL, eventually
from tests.support.scenario import (
    Ran,
    ended,
    plugin,
    ran,
    run_with_workers,
    start_headless,
    started,
    wait_for_step,
)
from tests.support.site import PASSWORD, Site

FEW = ("--iterations", "3", "--saves", "2", "--clean-up", "always")
WRONG = "not-the-password-73"
ONE = ("--iterations", "1", "--saves", "1", "--clean-up", "always")


@pytest.fixture(params=["block", "classic"])
def site(request: pytest.FixtureRequest) -> Site:
    """Each editor's site in turn."""
    found: Site = request.getfixturevalue(f"site_{request.param}")
    return found


# Either editor; each merge tests the block editor, which most sites have.
EITHER = pytest.mark.parametrize(
    "site", ["block", pytest.param("classic", marks=pytest.mark.slow)], indirect=True
)


def seed_of(path: Path) -> str:
    """A seed of the test's own: others may be writing on a site that was running already."""
    return str(zlib.crc32(str(path).encode()))


def written(site: Site, seed: str) -> int:
    """How many articles of a seed the site has, drafts included."""
    of_seed = f"post_type = 'post' AND post_content LIKE '%in series {seed} as number %'"
    return int(site.sql(f"SELECT COUNT(*) FROM wp_posts WHERE {of_seed}")[0][0])  # noqa: S608


def test_articles_are_published_saved_again_and_read_back(site: Site, tmp_path: Path) -> None:
    process = started("save-article", site.url, tmp_path, *FEW, "--seed", seed_of(tmp_path))
    wait_for_step(process, tmp_path, "log in")
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _is_there(path)]
    run = ended(process, tmp_path)
    assert run.code == 0, run.said
    assert run.facts["status"] == "complete"
    assert run.facts["scenario_settings"]["saves"] == 2
    expected = {
        "open editor": 3,
        "autosave": 3,
        "publish": 3,
        "view": 3,
        "save": 6,
        "read back": 9,
        "clean up": 3 + run.steps["upload image"],
    }
    assert {step: run.steps[step] for step in expected} == expected
    assert len(run.steps) <= 18
    assert run.iterations == {1, 2, 3}
    assert run.summary["measures"]["article saved"]["count"] == 9
    assert run.summary["measures"]["server cpu: publish"]["count"] == 3
    assert run.errors == []
    assert written(site, seed_of(tmp_path)) == 0, "cleaned up"

    # The password is nowhere.
    assert not any(PASSWORD.encode() in line for line in lines), "not in the list of processes"
    assert scenario.files_with(tmp_path, PASSWORD) == [], "not in the run directory"
    assert PASSWORD not in run.said
    assert "wordpress_logged_in" not in json.dumps(run.events)

    page = reported(run)
    assert "publish" in page
    assert "article saved" in page


def reported(run: Ran) -> str:
    """The page that `plimsoll report` makes of a run."""
    done = subprocess.run(
        [str(PLIMSOLL), "report", str(run.directory)],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return (run.directory / "report.html").read_text()


@EITHER
def test_what_was_written_is_in_the_database(site: Site, tmp_path: Path) -> None:
    seed = seed_of(tmp_path)
    run = ran("save-article", site.url, tmp_path, "--iterations", "1", "--saves", "2", "--seed", seed)
    assert run.code == 0, run.said
    last = f"post_content LIKE '%series {seed} as number 1, version 2.%'"
    found = "post_type = 'post' AND post_content LIKE"
    rows = site.sql(
        f"SELECT ID, post_status, LENGTH(post_content), {last} FROM wp_posts"  # noqa: S608
        f" WHERE {found} '%in series {seed} as number 1, %' ORDER BY ID DESC"
    )
    assert rows, "the article is there"
    number, status, length, last_version = rows[0]
    assert (status, last_version) == ("publish", "1")
    assert int(length) > 100, "the shortest article is one sentence"
    revisions = site.sql(
        "SELECT COUNT(*) FROM wp_posts WHERE post_type = 'revision'"  # noqa: S608
        f" AND post_parent = {number}"
        " AND post_name NOT LIKE '%autosave%'"
    )
    assert int(revisions[0][0]) >= 2, "each save left a revision"


def test_an_image_and_categories_are_in_the_database_and_are_cleaned_up(
    site_block: Site, tmp_path: Path
) -> None:
    site, profile = site_block, tmp_path / "profile.yml"
    asks = "['GET wp/v2/categories?per_page=100&_fields=id']"
    profile.write_text(f"categories: {{share: 1, asks: {asks}}}\nimage: {{share: 1}}\nleaving: true\n")
    options = ("--iterations", "1", "--saves", "1", "--editor-profile", str(profile))
    run = ran("save-article", site.url, tmp_path / "results", *options)
    assert run.code == 0, run.said
    assert (run.steps["upload image"], run.steps["choose categories"], run.steps["leave editor"]) == (1, 1, 1)
    made = {event["kind"]: event["id"] for event in run.events if event["event"] == "created"}
    assert made.keys() == {"post", "media"}
    shown = f"ID = {int(made['post'])} AND post_content LIKE '%wp-image-{int(made['media'])}%'"
    assert site.sql(f"SELECT COUNT(*) FROM wp_posts WHERE {shown}") == [["1"]]  # noqa: S608
    chosen = site.sql(
        "SELECT COUNT(*) FROM wp_term_relationships JOIN wp_term_taxonomy USING (term_taxonomy_id)"  # noqa: S608
        f" WHERE taxonomy = 'category' AND object_id = {int(made['post'])}"
    )
    assert int(chosen[0][0]) >= 1
    locks = site.sql(
        "SELECT COUNT(*) FROM wp_postmeta WHERE meta_key = '_edit_lock'"  # noqa: S608
        f" AND post_id = {int(made['post'])} AND meta_value > UNIX_TIMESTAMP() - 140"
    )
    assert locks == [["0"]], "the lock is released: it counts as old"

    line = [str(PLIMSOLL), "scenario", "clean-up", str(run.directory), "--target", site.url, "--yes"]
    done = subprocess.run(
        [*line, "--i-may-change-this-site"],
        env=scenario.account(),
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    of = f"ID IN ({int(made['post'])}, {int(made['media'])})"
    assert site.sql(f"SELECT COUNT(*) FROM wp_posts WHERE {of}") == [["0"]]  # noqa: S608


def test_several_authors_write_each_article_once(site_classic: Site, tmp_path: Path) -> None:
    run = ran("save-article", site_classic.url, tmp_path, *FEW, "--users", "3", "--iterations", "6")
    assert run.code == 0, run.said
    assert run.iterations == {1, 2, 3, 4, 5, 6}
    assert run.steps["publish"] == 6


def test_a_wrong_password_ends_the_run_with_the_sites_words(site_block: Site, tmp_path: Path) -> None:
    run = ran("save-article", site_block.url, tmp_path, *ONE, password=WRONG)
    assert run.code == 1
    assert run.facts["status"] == "failed"
    assert run.errors == [("log in", "login_failed")]
    assert "password you entered for the username author is incorrect" in run.details
    assert scenario.files_with(run.directory, WRONG) == []


@EITHER
@pytest.mark.parametrize(
    ("user", "step", "says"),
    [
        ("subscriber", "open editor", "a subscriber may not write"),
        ("contributor", "publish", "a contributor may write, but not publish"),
    ],
)
def test_an_account_that_may_not_is_named(
    site: Site, tmp_path: Path, user: str, step: str, says: str
) -> None:
    run = ran("save-article", site.url, tmp_path, *FEW, user=user)
    assert run.code == 1, says
    assert run.facts["status"] == "failed"
    assert (step, "no_permission") in run.errors
    assert run.steps[step] == 1, "what the account may not do is not tried again"


@EITHER
def test_a_nonce_that_expires_in_mid_run_is_counted_and_renewed(site: Site, tmp_path: Path) -> None:
    slow = ("--saves", "12", "--think-s", "1")
    process = started("save-article", site.url, tmp_path, *ONE, *slow)
    # Each change counts, there and back. Between a save and the page after it, which has new nonces, one goes
    # unnoticed; not all four fall there.
    for saves in (1, 6):
        wait_for_step(process, tmp_path, "save", saves)
        with scenario.other_nonces(site.folder):
            wait_for_step(process, tmp_path, "save", saves + 3)
    run = ended(process, tmp_path)
    expired = [step for step, error in run.errors if error == "nonce_expired"]
    assert expired, "whichever step came upon it first: a save, or what follows it"
    assert run.facts["status"] == "complete", "the run went on"
    assert run.summary["measures"]["article saved"]["count"] == 13, "and every save was made good"


@EITHER
def test_a_login_that_is_lost_in_mid_run_is_made_again(site: Site, tmp_path: Path) -> None:
    process = started("save-article", site.url, tmp_path, *FEW, "--iterations", "4", "--think-s", "0.5")
    wait_for_step(process, tmp_path, "save")
    site.sql(
        "DELETE FROM wp_usermeta WHERE meta_key = 'session_tokens' AND user_id ="
        " (SELECT ID FROM wp_users WHERE user_login = 'author')"
    )
    run = ended(process, tmp_path)
    assert run.facts["status"] == "complete"
    assert run.steps["log in"] == 2
    assert run.summary["measures"]["article saved"]["count"] == 12


def test_a_fatal_error_in_the_body_is_named(site_classic: Site, tmp_path: Path) -> None:
    broken = "add_action( 'admin_init', function () { plimsoll_no_such_function(); } );"
    with plugin(site_classic.folder, broken):
        run = ran("save-article", site_classic.url, tmp_path, *ONE)
    assert run.code == 1
    assert ("open editor", "php_fatal") in run.errors


def test_a_notice_before_the_reply_of_rest_is_no_success(site_block: Site, tmp_path: Path) -> None:
    noisy = "if ( strpos( $_SERVER['REQUEST_URI'], 'wp-json' ) ) { echo '<b>Notice</b>: noise'; }"
    with plugin(site_block.folder, noisy):
        run = ran("save-article", site_block.url, tmp_path, *ONE)
    assert run.code == 1
    assert ("autosave", "check_failed") in run.errors


@EITHER
def test_what_the_site_throws_away_is_noticed(site: Site, tmp_path: Path) -> None:
    lossy = (
        "add_filter( 'wp_insert_post_data', function ( $d ) { $d['post_content'] = 'gone'; return $d; } );"
    )
    with plugin(site.folder, lossy):
        run = ran("save-article", site.url, tmp_path, "--iterations", "2", "--saves", "1")
    assert run.code == 1
    assert ("read back", "check_failed") in run.errors
    assert run.steps["clean up"] == 2 + run.steps["upload image"], (
        "what a failed iteration made is taken away"
    )
    assert not [e for e in run.events if e["event"] == "clean-up failed"]


def test_a_dead_backend_is_named(site_block: Site, tmp_path: Path) -> None:
    site_block.stop("web")
    try:
        run = ran("save-article", site_block.url, tmp_path, *ONE)
    finally:
        site_block.start("web")
        assert eventually(site_block.answers)
    assert run.code == 1
    assert run.errors[0][1] == "backend_dead"


def test_ctrl_c_ends_the_run_after_what_is_in_flight(site_block: Site, tmp_path: Path) -> None:
    process = started("save-article", site_block.url, tmp_path, "--iterations", "1000", "--saves", "2")
    wait_for_step(process, tmp_path, "view")
    scenario.interrupt(process)
    run = ended(process, tmp_path)
    assert run.code == 1
    assert run.facts["status"] == "interrupted"
    assert "iterations were done" in run.facts["reason"]
    assert run.summary["requests"]["sent"] == run.steps.total()


def test_a_killed_run_can_be_read(site_classic: Site, tmp_path: Path) -> None:
    process = started("save-article", site_classic.url, tmp_path, "--iterations", "1000")
    wait_for_step(process, tmp_path, "save")
    process.kill()
    run = ended(process, tmp_path)
    assert run.steps["save"] >= 1
    assert run.facts["status"] == "running"
    reported(run)


# Locust's master with two workers does what one process does. They think, so that the second user comes
# before all is done.
WORK = (
    *("--spawn-rate", "1", "--iterations", "5", "--saves", "1", "--think-s", "0.5"),
    *("--clean-up", "always", "--i-may-change-this-site"),
)


@pytest.mark.slow
def test_two_workers_send_the_same_requests_as_one_process(site_block: Site, tmp_path: Path) -> None:
    load = (*WORK, "--users", "2")
    one = ended(start_headless("save_article", site_block.url, tmp_path / "one", *load), tmp_path / "one")
    two = run_with_workers("save_article", site_block.url, tmp_path / "two", *load)
    for run in (one, two):
        assert run.code == 0, run.said
        assert run.facts["status"] == "complete"
        assert run.errors == []
        assert run.iterations == {1, 2, 3, 4, 5}
    assert two.steps == one.steps
    assert one.steps["publish"] == 5
    measured = {name: figures["count"] for name, figures in one.summary["measures"].items()}
    assert {name: figures["count"] for name, figures in two.summary["measures"].items()} == measured


def test_a_worker_without_work_does_not_hold_the_others(site_block: Site, tmp_path: Path) -> None:
    run = run_with_workers(
        "save_article", site_block.url, tmp_path, *WORK, "--users", "2", "--iterations", "1", "--think-s", "0"
    )
    assert run.code == 0, run.said
    assert run.iterations == {1}
    assert run.steps["publish"] == 1


def test_fewer_users_than_workers_are_refused(site_block: Site, tmp_path: Path) -> None:
    run = run_with_workers("save_article", site_block.url, tmp_path, *WORK, "--users", "1")
    assert run.code == 2
    assert "use at least one user for each worker" in run.said
    assert not list(tmp_path.glob("*-save-article")), "no empty run directory is left"


def _is_there(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True
