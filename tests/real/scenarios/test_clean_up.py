"""What a killed run left on a real site is found and removed, and nothing else is.

Others may be using the site: a test looks at what its own run made, and at what it made itself over REST.
"""

import json
import os
import pty
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.programs import PLIMSOLL, eventually
from tests.support.scenario import account, plugin, ran, started, wait_for_step
from tests.support.site import Browser, Site

MANY = ("--iterations", "1000", "--saves", "1")


@pytest.fixture(params=["block", "classic"])
def site(request: pytest.FixtureRequest) -> Site:
    """Each editor's site in turn."""
    found: Site = request.getfixturevalue(f"site_{request.param}")
    return found


# Either editor; each merge tests the block editor, which most sites have.
EITHER = pytest.mark.parametrize(
    "site", ["block", pytest.param("classic", marks=pytest.mark.slow)], indirect=True
)


class Rest:
    """WordPress's REST interface, for the author of the runs."""

    def __init__(self, site: Site) -> None:
        self._browser: Browser = site.browser()
        assert self._browser.log_in("author").status == 302
        self._nonce = self._browser.ask("/wp-admin/admin-ajax.php?action=rest-nonce").text

    def ask(
        self, path: str, form: dict[str, str] | None = None, method: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        reply = self._browser.ask(f"/index.php?rest_route=/wp/v2/{path}&_wpnonce={self._nonce}", form, method)
        return reply.status, json.loads(reply.text)

    def write(self, title: str, content: str = "Somebody wrote this.") -> int:
        status, post = self.ask("posts", {"title": title, "content": content, "status": "publish"})
        assert status == 201
        return int(post["id"])

    def there(self, post: int) -> bool:
        return self.ask(f"posts/{post}")[0] == 200


@pytest.fixture
def rest(site: Site) -> Rest:
    return Rest(site)


@pytest.fixture
def others(rest: Rest) -> Iterator[list[int]]:
    """Articles that bear no run's name, though some speak of one."""
    name = "plimsoll-run-20261123t201500z-0badcafe"
    posts = [
        rest.write("An article like others"),
        rest.write("An article about runs", f"It tells of {name}, and ends with it: {name}"),
        rest.write(f"What {name} left behind"),
        rest.write("All of plimsoll-run-"),
    ]
    yield posts
    for post in posts:
        assert rest.ask(f"posts/{post}&force=true", method="DELETE")[0] == 200


def clean_up(site: Site, *args: str | Path, user: str = "author") -> subprocess.CompletedProcess[str]:
    command = [str(PLIMSOLL), "scenario", "clean-up", "--target", site.url, "--i-may-change-this-site"]
    return subprocess.run(
        [*command, *map(str, args)],
        env=account(user),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def name_of(run: Path) -> str:
    """The name that a run's events say."""
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    return next(str(event["name"]) for event in events if event["event"] == "run name")


def bearing(site: Site, name: str) -> int:
    """How many posts and images bear a name, as the database has them."""
    return int(site.sql(f"SELECT COUNT(*) FROM wp_posts WHERE post_title LIKE '%{name}'")[0][0])  # noqa: S608


def files_of(site: Site, name: str) -> list[Path]:
    return sorted((site.folder / "wordpress" / "wp-content" / "uploads").rglob(f"*{name}*"))


def killed(site: Site, out: Path) -> Path:
    """The directory of a run that was killed amid its work."""
    process = started("save-article", site.url, out, *MANY)
    wait_for_step(process, out, "save", 3)
    process.kill()
    process.communicate()
    return (out / "latest").resolve()


@EITHER
def test_what_a_killed_run_wrote_is_removed_and_nothing_else(
    site: Site, rest: Rest, others: list[int], tmp_path: Path
) -> None:
    run = killed(site, tmp_path)
    name = name_of(run)
    before = bearing(site, name)
    assert before >= 1
    told = clean_up(site, run)
    assert told.returncode == 1, told.stderr
    assert name in told.stdout
    assert "Nothing was removed" in told.stdout
    assert bearing(site, name) == before, "nobody agreed"
    done = clean_up(site, run, "--yes", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert len(said["removed"]) == len(said["found"]) >= 1
    assert bearing(site, name) == 0
    again = clean_up(site, run, "--yes")
    assert again.returncode == 0, "a second time does no harm"
    assert all(rest.there(post) for post in others)


@EITHER
def test_it_is_found_by_its_name_where_the_run_directory_is_lost(
    site: Site, rest: Rest, others: list[int], tmp_path: Path
) -> None:
    run = killed(site, tmp_path)
    name = name_of(run)
    shutil.rmtree(tmp_path)
    listed = clean_up(site, "--dry-run", "--json")
    assert listed.returncode == 1, listed.stderr
    found = json.loads(listed.stdout)["found"]
    assert name in {one["run"] for one in found}, "the list says it, though nobody named it"
    assert not {one["number"] for one in found if one["kind"] == "post"} & set(others)
    done = clean_up(site, "--run", name, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert bearing(site, name) == 0
    assert all(rest.there(post) for post in others)


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(False, id="with its directory", marks=pytest.mark.slow),
        pytest.param(True, id="its directory lost"),
    ],
)
def test_an_image_that_was_uploaded_as_its_run_was_killed_is_removed_with_all_its_files(
    site_block: Site, tmp_path: Path, lost: bool
) -> None:
    pictures, out = tmp_path / "pictures", tmp_path / "results"
    pictures.mkdir()
    Image.effect_noise((900, 700), 40).convert("RGB").save(pictures / "one.jpg")
    slow = "add_filter( 'intermediate_image_sizes_advanced', function ( $s ) { sleep( 3 ); return $s; } );"
    with plugin(site_block.folder, slow):
        process = started(
            "upload-images", site_block.url, out, "--images", str(pictures), "--iterations", "9"
        )
        wait_for_step(process, out, "upload")
        run = (out / "latest").resolve()
        name = name_of(run)
        assert eventually(lambda: bearing(site_block, name) >= 2), "the second has no answer yet"
        process.kill()
        process.communicate()
        assert len(files_of(site_block, name)) >= 3
        done = clean_up(site_block, *(("--run", name) if lost else (run,)), "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 images" in done.stdout
    assert bearing(site_block, name) == 0
    assert files_of(site_block, name) == [], "sizes that were made meanwhile are gone too"


@EITHER
def test_what_a_run_created_and_removed_is_in_its_events(site: Site, tmp_path: Path) -> None:
    run = ran("save-article", site.url, tmp_path, "--iterations", "2", "--saves", "0", "--clean-up", "always")
    assert run.code == 0, run.said
    name = name_of(run.directory)
    created, removed = (
        [(e["kind"], e["id"], e["run"]) for e in run.events if e["event"] == what]
        for what in ("created", "removed")
    )
    assert len(created) == 2
    assert created == removed
    assert {one[2] for one in created} == {name}
    assert clean_up(site, run.directory, "--yes").returncode == 0


@EITHER
def test_an_account_that_may_not_is_told_so_and_changes_nothing(site: Site, tmp_path: Path) -> None:
    run = killed(site, tmp_path)
    kept_out = clean_up(site, run, "--yes", user="contributor")
    assert kept_out.returncode == 1
    assert "no permission" in kept_out.stdout + kept_out.stderr
    assert bearing(site, name_of(run)) >= 1
    assert clean_up(site, run, "--yes").returncode == 0


def test_on_a_terminal_it_asks(site_block: Site, tmp_path: Path) -> None:
    run = killed(site_block, tmp_path)
    name = name_of(run)
    command = [str(PLIMSOLL), "scenario", "clean-up", "--target", site_block.url, "--i-may-change-this-site"]
    for answer, left in (("n", True), ("y", False)):
        outer, inner = pty.openpty()
        try:
            os.write(outer, f"{answer}\n".encode())
            done = subprocess.run(
                [*command, "--run", name],
                env=account(),
                stdin=inner,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
        finally:
            os.close(outer)
            os.close(inner)
        assert done.returncode == (1 if left else 0), done.stdout + done.stderr
        assert "permanently?" in done.stderr
        assert (bearing(site_block, name) > 0) == left
    assert clean_up(site_block, "--run", name, "--yes").returncode == 0
