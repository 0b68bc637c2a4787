"""`--accounts` against real WordPress and the forum: members get their own pages, past the cache."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Self

import pytest

from tests.support.site import Site

MEMBERS = 40
_EVERY_S = 0.02
PASSWORD = "a word for members"  # noqa: S105 (of accounts that this test makes)
Replayed = Callable[..., subprocess.CompletedProcess[str]]


class ProcessList:
    """The processes that this one has started, and theirs, again and again until the end of the block."""

    def __init__(self) -> None:
        self.shown: set[bytes] = set()  # each command line and each environment that was there to be read
        self._ended = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            for process in _below(os.getpid()):
                for name in ("cmdline", "environ"):
                    with suppress(OSError):  # it has ended meanwhile
                        self.shown.add(Path(f"/proc/{process}/{name}").read_bytes())


def _below(process: int) -> Iterator[int]:
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from _below(child)


def log_of(path: Path, pages: list[str]) -> Path:
    """A log in which each member asks for each page, and as many guests for the first."""
    line = '192.0.2.{} - - [20/Nov/2026:10:00:{:02} +0000] "GET {} HTTP/1.1" 200 5000 "-" "{} {}"\n'
    rows = []
    for n in range(MEMBERS):
        rows += [line.format(n % 250, n % 60, page, "member", n) for page in pages]
        rows.append(line.format(n % 250, n % 60, pages[0], "guest", n))
    path.write_text("".join(rows))
    return path


def accounts(path: Path, name: str, first: int) -> Path:
    path.write_text("".join(f"{name}{first + n}:{PASSWORD}\n" for n in range(MEMBERS)))
    path.chmod(0o600)
    return path


def hits(site: Site) -> int:
    """How many requests Varnish has answered itself."""
    (line,) = site.on("varnish", "varnishstat", "-1", "-f", "MAIN.cache_hit").splitlines()
    return int(line.split()[1])


def facts(results: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((results / "latest" / "summary.json").read_text())["members"]
    return found


def holds_no_secret(
    folder: Path, done: subprocess.CompletedProcess[str], listed: ProcessList, words: list[str]
) -> None:
    """No cookie and no password is in what was printed or written, or in the list of processes meanwhile."""
    for path in folder.rglob("*"):
        if path.is_file():
            assert not [word for word in words if word.encode() in path.read_bytes()], path
    assert not [word for word in words if word in done.stdout + done.stderr]
    assert any(b"--accounts" in shown for shown in listed.shown), "the replay was in the list"
    assert not [word for word in words if any(word.encode() in shown for shown in listed.shown)]


def test_wordpress_serves_members_their_own_pages(site_block: Site, replay: Replayed, tmp_path: Path) -> None:
    site_block.php("members.php")
    log = log_of(tmp_path / "access.log", ["/", "/wp-admin/profile.php"])
    listed = accounts(tmp_path / "accounts", "plimsoll-member-", 1)
    before = hits(site_block)
    with ProcessList() as processes:
        done = replay(str(log), "--target", site_block.url, "--rate", "20", "--accounts", str(listed))
    assert done.returncode == 0, done.stderr
    found = facts(tmp_path / "results")
    assert found == {"clients": MEMBERS, "accounts": MEMBERS, "requests": 2 * MEMBERS, "sent_to_login": 0}
    # Guests' front page comes from the cache, members' from PHP.
    assert 0 < hits(site_block) - before <= MEMBERS
    sessions = site_block.sql(
        "SELECT COUNT(*) FROM wp_usermeta m JOIN wp_users u ON u.ID = m.user_id "
        "WHERE m.meta_key = 'session_tokens' AND u.user_login LIKE 'plimsoll-member-%'"
    )
    assert sessions == [[str(MEMBERS)]]
    words = [PASSWORD, "wordpress_logged_in", "wordpress_sec"]
    holds_no_secret(tmp_path / "results", done, processes, words)
    site_block.php("members_gone.php")


def test_the_forum_serves_members(site_block: Site, replay: Replayed, tmp_path: Path) -> None:
    hashed = site_block.on(
        "php", "php8.2", "-r", f"echo password_hash('{PASSWORD}', PASSWORD_BCRYPT, ['cost' => 4]);"
    )
    ids = f"member_id BETWEEN 2 AND {MEMBERS + 1}"
    (kept,) = site_block.sql("SELECT password FROM member WHERE member_id = 2", "forum")
    site_block.sql(f"UPDATE member SET password = '{hashed}' WHERE {ids}", "forum")  # noqa: S608
    log = log_of(tmp_path / "access.log", ["/forum/index.php?threads/1"])
    listed = accounts(tmp_path / "accounts", "member", 2)
    rules = ["--members-share", "1", "--login-page", "/forum/index.php?login"]
    before = hits(site_block)
    load = ["--rate", "40", "--accounts", str(listed), *rules]
    with ProcessList() as processes:
        done = replay(str(log), "--target", site_block.url, *load)
    assert done.returncode == 0, done.stderr
    found = facts(tmp_path / "results")
    # With a share of 1 the guests of this log are members, too, by the same accounts.
    assert found == {"clients": 2 * MEMBERS, "accounts": MEMBERS, "requests": 2 * MEMBERS, "sent_to_login": 0}
    assert hits(site_block) == before
    sessions = site_block.sql(f"SELECT COUNT(DISTINCT member_id) FROM session WHERE {ids}", "forum")  # noqa: S608
    assert sessions == [[str(MEMBERS)]]
    holds_no_secret(tmp_path / "results", done, processes, [PASSWORD, "forum_session"])
    site_block.sql(f"UPDATE member SET password = '{kept[0]}' WHERE {ids}", "forum")  # noqa: S608
    site_block.sql(f"DELETE FROM session WHERE {ids}", "forum")  # noqa: S608


@pytest.mark.parametrize(("what", "word"), [("a wrong password", "wrong"), ("none of such a name", "")])
def test_a_wrong_account_is_refused_before_any_load(
    site_block: Site, replay: Replayed, tmp_path: Path, what: str, word: str
) -> None:
    listed = tmp_path / "accounts"
    listed.write_text("admin:wrong\n" if word else f"nobody-of-this-name:{PASSWORD}\n")
    listed.chmod(0o600)
    log = log_of(tmp_path / "access.log", ["/wp-admin/"])
    done = replay(str(log), "--target", site_block.url, "--accounts", str(listed))
    assert done.returncode == 2, what
    assert "the site does not let in" in done.stderr
    assert not (tmp_path / "results").exists()
