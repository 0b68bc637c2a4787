"""A real WordPress 6.1 becomes 6.8, on a disk of its own, after all that can keep it from that.

PLIMSOLL_SITE_UPGRADE=URL:BACKEND_DIR names a site that runs already, on a small disk, to write tests.
"""

import csv
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from plimsoll.scenarios.wordpress.upgrade import PHASES
from tests.support.programs import eventually, need
from tests.support.scenario import Poll, Ran, changed, ended, interrupt, plugin, ran, started
from tests.support.site import Site, end_site, need_docker, run, running_site, start_site

pytestmark = pytest.mark.slow

IMAGE_BYTES = 5 << 30  # sparse: a third of it is ever written
MIB = 1 << 20
OLD, NEW = "6.1.", "6.8."


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An ext4 of its own, in a file."""
    if os.getuid() != 0:
        pytest.skip("mounting takes root")
    folder = tmp_path_factory.mktemp("disk")
    image, mounted = folder / "image", folder / "mounted"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    for command in ((need("mkfs.ext4"), "-q", "-F", image), (need("mount"), "-o", "loop", image, mounted)):
        done = run(*command)
        assert done.returncode == 0, done.stderr
    yield mounted
    run(need("umount"), mounted)


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    need_docker()
    running = os.environ.get("PLIMSOLL_SITE_UPGRADE")
    if running:
        yield running_site(running)
        return
    folder = request.getfixturevalue("disk") / "data"
    request.getfixturevalue("filled").copy_to(folder)
    found = start_site(folder, "plimsoll-upgrade", "block")
    yield found
    end_site(found)


def upgrade(site: Site, out: Path, *args: str, user: str = "admin") -> Ran:
    return ran("upgrade-wordpress", site.url, out, *args, user=user)


def version(site: Site) -> str:
    """The version of the code on the disk."""
    text = (site.folder / "wordpress" / "wp-includes" / "version.php").read_text()
    found = re.search(r"^\$wp_version = '([^']+)'", text, re.M)
    assert found
    return found[1]


def wanted_database(site: Site) -> int:
    """The number that the code on the disk wants the database to have."""
    text = (site.folder / "wordpress" / "wp-includes" / "version.php").read_text()
    found = re.search(r"^\$wp_db_version = (\d+)", text, re.M)
    assert found
    return int(found[1])


def database(site: Site) -> int:
    return int(site.sql("SELECT option_value FROM wp_options WHERE option_name = 'db_version'")[0][0])


def assert_untouched(site: Site) -> None:
    assert version(site).startswith(OLD)
    assert database(site) == wanted_database(site)
    assert not (site.folder / "wordpress" / ".maintenance").exists()
    assert site.browser().ask("/").status == 200


@contextmanager
def free_space(site: Site, left_mib: int) -> Iterator[None]:
    """Fills the site's disk but for so much."""
    space = os.statvfs(site.folder)
    size = max(space.f_bavail * space.f_frsize - left_mib * MIB, 0)
    filler = site.folder / "filler"
    try:
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
        yield
    finally:
        filler.unlink(missing_ok=True)


@contextmanager
def put_back(site: Site, aside: Path) -> Iterator[None]:
    """Puts code and database back to what they were."""
    parts = [path for path in (site.folder / "wordpress").iterdir() if path.name != "wp-content"] + [
        site.folder / "mysql"
    ]
    with stopped(site, "php", "db"):
        for path in parts:
            assert run("cp", "-a", path, aside).returncode == 0
    try:
        yield
    finally:
        with stopped(site, "php", "db"):
            for path in parts:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                assert run("cp", "-a", aside / path.name, path.parent).returncode == 0
            (site.folder / "wordpress" / ".maintenance").unlink(missing_ok=True)


@contextmanager
def stopped(site: Site, *roles: str) -> Iterator[None]:
    for role in roles:
        site.stop(role)
    try:
        yield
    finally:
        for role in reversed(roles):
            site.start(role)
        # Docker may have given two roles each other's addresses: nginx looks them up anew.
        assert run("docker", "kill", "--signal", "HUP", f"{site.name}-web").returncode == 0
        assert eventually(lambda: site.browser().ask("/wp-login.php").status == 200), site.logs()


def slow(phase: str, seconds: int) -> str:
    """A plugin that lets the updater wait when it has told `phase`; `show_message` passes nothing on."""
    return f"""
        add_filter( 'update_feedback', function ( $m ) {{ $GLOBALS['told'] = $m; return $m; }}, 5 );
        add_filter( 'update_feedback', function ( $m ) {{
            if ( 0 === strpos( $GLOBALS['told'], '{phase}' ) ) {{ sleep( {seconds} ); }}
            return $m;
        }}, 20 );"""


def wait_for_phase(out: Path, name: str) -> None:
    def there() -> bool:
        path = out / "latest" / "events.jsonl"
        return path.exists() and f'"phase: {name}", "phase": "start"' in path.read_text()

    assert eventually(there, 120), f"phase {name} never came"


REFUSED = [
    (("--iterations", "2"), "a clone is upgraded once", "an upgrade is done once"),
    (("--users", "2"), "by one user", "by one"),
    (("--from-version", "new"), "--from-version: must be a version", "a version is numbers"),
]


@pytest.mark.parametrize(("args", "text", "why"), REFUSED, ids=[row[2] for row in REFUSED])
def test_settings_that_make_no_sense_are_refused(
    site: Site, tmp_path: Path, args: tuple[str, ...], text: str, why: str
) -> None:
    refused = upgrade(site, tmp_path, *args)
    assert refused.code == 2, why
    assert text in refused.said
    assert not (tmp_path / "latest").exists()


KEPT_OUT = [
    ("subscriber", (), "no_permission", "not allowed", "a reader may not upgrade"),
    (
        "admin",
        ("--from-version", "6.0"),
        "wrong_version",
        "this is WordPress 6.1",
        "the clone is another one",
    ),
    (
        "admin",
        ("--to-version", "6.7"),
        "wrong_version",
        "it is offered 6.8",
        "the mirror has another package",
    ),
]


@pytest.mark.parametrize(("user", "args", "kind", "text", "why"), KEPT_OUT, ids=[row[4] for row in KEPT_OUT])
def test_nothing_is_begun_that_should_not_be(
    site: Site, tmp_path: Path, user: str, args: tuple[str, ...], kind: str, text: str, why: str
) -> None:
    kept_out = upgrade(site, tmp_path, *args, user=user)
    assert kept_out.code == 1, why
    assert kept_out.facts["status"] == "failed"
    assert kept_out.errors == [("update page", kind)]
    assert text in kept_out.facts["reason"]
    assert kept_out.steps["upgrade"] == 0
    assert_untouched(site)


def test_a_lock_that_was_left_over_is_named(site: Site, tmp_path: Path) -> None:
    site.sql(
        "INSERT INTO wp_options (option_name, option_value) VALUES ('core_updater.lock', UNIX_TIMESTAMP())"
    )
    try:
        locked = upgrade(site, tmp_path)
    finally:
        site.sql("DELETE FROM wp_options WHERE option_name = 'core_updater.lock'")
    assert locked.code == 1
    assert locked.errors == [("upgrade", "upgrade_locked")]
    assert "delete the option core_updater.lock" in locked.details
    assert "now the site answers as WordPress 6.1" in locked.facts["reason"]
    assert_untouched(site)


def test_maintenance_mode_that_was_left_over_is_named(site: Site, tmp_path: Path) -> None:
    with changed(site.folder / "wordpress" / ".maintenance", f"<?php $upgrading = {int(time.time())};"):
        closed = upgrade(site, tmp_path)
    assert closed.code == 1
    assert closed.errors == [("log in: form", "upgrade_locked")]
    assert "delete the file .maintenance" in closed.facts["reason"]
    assert_untouched(site)


def test_a_disk_that_fills_up_is_named_and_the_site_still_answers(site: Site, tmp_path: Path) -> None:
    with free_space(site, 60):
        full = upgrade(site, tmp_path)
        assert site.browser().ask("/?full").status == 200
    assert full.code == 1
    assert full.facts["status"] == "failed"
    assert full.errors == [("upgrade", "out_of_disk")]
    assert "in phase unpack: Could not copy file" in full.facts["reason"]
    assert "now the site answers as WordPress 6.1" in full.facts["reason"]
    assert "upgrade" not in full.summary["measures"]
    assert_untouched(site)


def test_a_disk_that_is_full_before_is_named(site: Site, tmp_path: Path) -> None:
    with free_space(site, 0):
        full = upgrade(site, tmp_path)
    assert full.code == 1
    assert "disk" in full.details
    assert full.steps["upgrade"] == 0
    assert eventually(lambda: site.browser().log_in().status == 302)
    assert_untouched(site)


def test_an_upgrade_that_is_killed_says_in_which_state_the_site_is(site: Site, tmp_path: Path) -> None:
    with put_back(site, _folder(tmp_path, "aside")), plugin(site.folder, slow("Copying", 20)):
        process = started("upgrade-wordpress", site.url, tmp_path / "out", user="admin")
        wait_for_phase(tmp_path / "out", "copy")
        assert run("docker", "kill", f"{site.name}-php").returncode == 0
        killed = ended(process, tmp_path / "out")
        site.start("php")
        assert killed.code == 1
        assert killed.facts["status"] == "failed"
        assert killed.errors[0] in [("upgrade", "closed_early"), ("upgrade", "reset")]
        assert "; now the site" in killed.facts["reason"]
        felt = [event["phase"] for event in killed.events if event["event"] == "outage: members"]
        assert felt[:2] == ["start", "stop"], "what was felt so far is told"
        assert "outage: members" not in killed.summary["measures"], "and is no figure of an upgrade"
        assert eventually(lambda: site.browser().ask("/wp-login.php").status == 503)
        again = upgrade(site, tmp_path / "again")
        assert "delete the file .maintenance" in again.facts["reason"]
    assert_untouched(site)


def test_ctrl_c_waits_for_the_end_of_the_upgrade(site: Site, tmp_path: Path) -> None:
    with put_back(site, _folder(tmp_path, "aside")), plugin(site.folder, slow("Copying", 3)):
        process = started("upgrade-wordpress", site.url, tmp_path / "out", user="admin")
        wait_for_phase(tmp_path / "out", "copy")
        interrupt(process)
        finished = ended(process, tmp_path / "out")
        assert finished.code == 0, finished.said
        assert finished.facts["status"] == "complete"
        assert version(site).startswith(NEW)
    assert_untouched(site)


def test_a_database_that_was_left_behind_is_upgraded_too(site: Site, tmp_path: Path) -> None:
    refuse = (
        "add_filter( 'pre_http_request', function ( $r, $a, $url ) { return strpos( $url, 'upgrade_db' )"
        " ? new WP_Error( 'no', 'no loopback' ) : $r; }, 20, 3 );"
    )
    with put_back(site, _folder(tmp_path, "aside")), plugin(site.folder, refuse):
        pressed = upgrade(site, tmp_path)
        assert pressed.code == 0, pressed.said
        assert pressed.steps["database"] == 1
        assert pressed.steps["verify: database"] == 2
        assert pressed.summary["measures"]["phase: database-pressed"]["count"] == 1
        assert database(site) == wanted_database(site)
        assert version(site).startswith(NEW)
    assert_untouched(site)


# A page past the cache, which WordPress refuses in maintenance as any other, and which else costs next to
# nothing: so that polls and visits do not wait for each other.
CHEAP = "?ping=1&nocache=1"
PING = "if ( isset( $_GET['ping'] ) ) { echo 'here'; exit; }"


def test_the_outage_that_visits_felt_is_that_of_an_independent_poll(site: Site, tmp_path: Path) -> None:
    member = site.browser()
    assert member.log_in("subscriber").status == 302
    with put_back(site, _folder(tmp_path, "aside")), plugin(site.folder, PING + slow("Copying", 3)):
        polls = {
            "visitors": Poll(f"{site.url}/{CHEAP}", {}),
            "members": Poll(f"{site.url}/{CHEAP}", {one.name: one.value or "" for one in member.jar}),
        }
        with polls["visitors"], polls["members"]:
            done = upgrade(site, tmp_path, "--probe-pages", CHEAP, "--probe-ms", "50")
    assert done.code == 0, done.said
    measures = done.summary["measures"]
    for who, poll in polls.items():
        outage_ms = measures[f"outage: {who}"]["sum"]
        assert outage_ms == pytest.approx(poll.outage_ms, abs=poll.differs_ms(done.directory)), who
        assert outage_ms >= 2900, "the site was held up in maintenance for 3 s"
        assert measures[f"maintenance: {who}"]["sum"] <= outage_ms
        assert measures[f"first good page: {who}"]["sum"] >= outage_ms, "it began after the press"
        assert measures[f"longest gap: {who}"]["sum"] >= 2900
        spans = [e["phase"] for e in done.events if e["event"] == f"outage: {who}"]
        assert spans[:2] == ["start", "stop"]
        assert f"outage: {who}" in done.said
    with (done.directory / "probes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for who in polls:
        due_ns = sorted(int(row["due_ns"]) for row in rows if row["who"] == who)
        assert {later - before for before, later in pairwise(due_ns)} == {50_000_000}, "none was put off"
    assert {row["error"] for row in rows} >= {"none", "upgrade_locked"}
    assert "visit" not in done.steps, "none of them is a request of the scenario"
    assert done.errors == []


def test_the_upgrade(site: Site, tmp_path: Path) -> None:
    before = database(site)
    done = upgrade(site, tmp_path, "--from-version", "6.1", "--to-version", "6.8")
    assert done.code == 0, done.said
    assert done.facts["status"] == "complete"
    assert done.errors == []
    assert version(site).startswith(NEW)
    assert database(site) == wanted_database(site) > before
    assert f'content="WordPress {NEW}' in site.browser().ask("/?upgraded").text
    measures = done.summary["measures"]
    took_ms = [measures[f"phase: {name}"]["sum"] for name in PHASES if f"phase: {name}" in measures]
    assert sum(took_ms) == pytest.approx(measures["upgrade"]["sum"], abs=1e-3)
    assert {"phase: download", "phase: unpack", "phase: copy", "phase: database"} <= measures.keys()
    # Each line was there when it was written: no two of the long phases began at the same instant.
    began = {e["event"]: e["t_ns"] for e in done.events if e.get("phase") == "start"}
    instants = [
        began[f"phase: {name}"] for name in ("start", "download", "unpack", "verify", "database", "finish")
    ]
    assert instants == sorted(set(instants))
    verified = [e for e in done.events if e["event"] == "upgrade" and e["phase"] == "verified"]
    assert verified[0]["version"] == version(site)


def test_a_site_that_is_the_newest_is_left_alone(site: Site, tmp_path: Path) -> None:
    newest = upgrade(site, tmp_path)
    assert newest.code == 1
    assert newest.errors == [("update page", "wrong_version")]
    assert "no newer version is offered" in newest.facts["reason"]


def _folder(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    path.mkdir()
    return path
