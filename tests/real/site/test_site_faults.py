"""What can be wrong with a whole site is named by each scenario; and a crowd that the small site lets in."""

import contextlib
import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from tests.support.programs import LONGEST_S, REPLAY, ROOT, eventually, free_port, need
from tests.support.scenario import Ran, ended, plugin, ran, started
from tests.support.site import Site

# One scenario for visitors, one for authors, one for administrators; the last expects a version that no site
# has, so that it changes nothing whatever happens.
SCENARIOS: dict[str, tuple[str, ...]] = {
    "download": ("--iterations", "2", "--path", "/wp-login.php"),
    "save-article": ("--iterations", "1", "--saves", "1"),
    "upgrade-wordpress": ("--from-version", "1.0"),
}

Fault = Callable[[Site], AbstractContextManager[object]]


@contextlib.contextmanager
def without(site: Site, role: str) -> Iterator[None]:
    """The site with one role stopped; it is started again, and awaited, whatever happens."""
    site.stop(role)
    site.forget_neighbours()
    try:
        yield
    finally:
        site.start(role)
        assert eventually(site.answers), site.logs()


def dying(site: Site) -> AbstractContextManager[object]:
    """The site with a plugin that dies in the middle of each page: its status, 200, has been sent by then."""
    code = """
        add_filter( 'wp_fatal_error_handler_enabled', '__return_false' );
        add_action( 'login_head', function () {
            while ( ob_get_level() ) { ob_end_flush(); }
            flush();
            echo "<br />\\n<b>Fatal error</b>:  Uncaught Error: Call to undefined function plimsoll()";
            exit;
        } );"""
    return plugin(site.folder, code)


FAULTS: list[tuple[str, Fault, str, str]] = [
    ("Varnish answers for a dead web server", lambda site: without(site, "web"), "backend_dead", "503"),
    ("nginx answers for a dead PHP", lambda site: without(site, "php"), "backend_dead", "502"),
    ("nginx answers for a dead Varnish", lambda site: without(site, "varnish"), "backend_dead", "502"),
    (
        "PHP answers for a dead database",
        lambda site: without(site, "db"),
        "backend_dead",
        "database connection",
    ),
    ("the whole site is down", lambda site: without(site, "front"), "connect_refused", ""),
    ("PHP dies in a page whose status is 200", dying, "php_fatal", "Call to undefined function plimsoll()"),
]
SLOW = {row[0] for row in FAULTS[1:4]}  # a role that is stopped takes long to be back: each merge stops one


@pytest.mark.parametrize(
    ("what", "fault", "kind", "words"),
    [pytest.param(*row, id=row[0], marks=[pytest.mark.slow] * (row[0] in SLOW)) for row in FAULTS],
)
def test_a_fault_of_the_site_is_named(
    site_classic: Site, tmp_path: Path, what: str, fault: Fault, kind: str, words: str
) -> None:
    with fault(site_classic):
        at_once = {
            name: started(name, site_classic.url, tmp_path / name, *args, user="admin")
            for name, args in SCENARIOS.items()
            if (name, kind) != ("download", "php_fatal")  # it reads no file's inside
        }
        runs = {name: ended(process, tmp_path / name) for name, process in at_once.items()}
    for name, run in runs.items():
        assert_failed(run, kind, f"{name}: {what}")
        assert words in run.details, name
    assert site_classic.answers()


def assert_failed(run: Ran, kind: str, what: str) -> None:
    assert run.code == 1, (what, run.said)
    assert run.facts["status"] == "failed", what
    assert run.facts["reason"], what
    assert run.errors, what
    assert {found for _, found in run.errors} == {kind}, (what, run.details)
    assert run.summary["requests"]["ok"] == 0, what
    assert kind in run.said, what


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_site_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    run = ran(name, f"http://127.0.0.1:{free_port()}", tmp_path, *SCENARIOS[name], user="admin")
    assert_failed(run, "connect_refused", "nobody listens")


def test_another_version_than_expected_is_named_and_nothing_is_changed(
    site_classic: Site, tmp_path: Path
) -> None:
    code = site_classic.folder / "wordpress" / "wp-includes" / "version.php"
    before = code.read_bytes()
    run = ran("upgrade-wordpress", site_classic.url, tmp_path, *SCENARIOS["upgrade-wordpress"], user="admin")
    assert run.code == 1
    assert run.facts["status"] == "failed"
    assert run.errors == [("update page", "wrong_version")]
    assert "not 1.0 (--from-version); nothing was changed" in run.facts["reason"]
    assert code.read_bytes() == before


# 10,000 users at once: each is let in, and has an answer or waits for it at the end.

USERS = 10_000
ARRIVE_S = 10
STAY_S = 30
REUSED = 1  # of a record's flags


@pytest.fixture
def busy(site_block: Site) -> Iterator[Site]:
    """The site; what the crowd has left Varnish and PHP to do is dropped afterwards."""
    yield site_block
    for role in ("varnish", "php"):  # one at a time, so that each gets its own address back
        site_block.stop(role)
        site_block.start(role)
    assert eventually(site_block.answers), site_block.logs()


@pytest.mark.slow
def test_ten_thousand_users_are_let_in(busy: Site, tmp_path: Path) -> None:
    log = ROOT / "examples" / "site.log.gz"
    command = [need(REPLAY), "run", str(log), "--target", busy.url, "--users", str(USERS)]
    command += ["--ramp-up", f"{ARRIVE_S}s", "--timeout", "10m", "--out", str(tmp_path), "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as crowd:
        time.sleep(ARRIVE_S + STAY_S)
        for _ in range(2):  # nobody comes any more; who waits, leaves
            crowd.send_signal(signal.SIGINT)
            time.sleep(1)
        _, said = crowd.communicate(timeout=LONGEST_S)
    run = tmp_path / "latest"
    assert json.loads((run / "run.json").read_text())["status"] == "interrupted", said
    requests = np.load(run / "requests.npy")
    kinds = json.loads((run / "errors.json").read_text())
    ends = Counter(kinds[error] for error in requests["error"].tolist())
    assert ends.keys() <= {"none", "aborted"}, (ends, said, busy.logs())
    assert ends["none"] > 0, (ends, said, busy.logs())
    assert len(np.unique(requests["client"])) == USERS, "all of them came"
    connected = (requests["connect_us"] > 0) | (requests["flags"] & REUSED > 0)
    assert connected.all(), "who waits, waits for an answer"
    statuses = Counter(requests["status"][requests["error"] == 0].tolist())
    assert max(statuses) < 500, ("no role refused another", statuses, busy.logs())
