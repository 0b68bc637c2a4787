"""A core upgrade: its pages, and what WordPress 6.1 wrote when it became 6.8, and when it did not."""

from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.scenarios.running.client import Reply, StepFailure, find_failure
from plimsoll.scenarios.wordpress.upgrade import (
    PHASES,
    Offer,
    Phase,
    PhaseMark,
    UpgradeReply,
    choose_offer,
    describe_state,
    find_database_failure,
    find_front_failure,
    find_offer_failure,
    find_upgrade_failure,
    same_version,
    shown_version,
    version_fits,
)
from tests.support.programs import FIXTURES

_RECORDED = FIXTURES / "wordpress"
OFFER = (_RECORDED / "update-core-6.1.html").read_text()
GOOD = (_RECORDED / "upgrade-6.1-6.8.html").read_bytes()
HEAD, _, _rest = GOOD.partition(b"\t<p>Downloading")
FOOT = GOOD[GOOD.index(b'<div id="wpfooter"') :]
NOT_DONE = "<p>Installation failed.</p>"
MS = 1_000_000
# Apache's mod_proxy_fcgi sends lines on when it has 4 KiB of them, each in a chunk of its own. WordPress
# wrote these 111, 473, 0.2, 0.2, 0.6, 313, 55 and 749 ms apart.
FROM_APACHE_NS = (
    *(30_109_237, 1_739_209_159, 1_739_443_651, 1_739_488_298, 1_739_535_138),
    *(1_739_570_111, 1_739_605_223, 1_739_638_383, 1_739_674_928, 1_753_029_204),
)
LINES: list[bytes | str] = [b"<p>Downloading" + _rest.split(b"\n")[0], *_rest.split(b"\n")[1:11]]


def reply(
    body: str | bytes, status: int = 200, path: str = "wp-admin/update-core.php", **headers: str
) -> Reply:
    content = body if isinstance(body, bytes) else body.encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(f"http://clone.test/{path}", status, names, content, 1000)


def upgraded(*lines: bytes | str, foot: bytes = FOOT) -> tuple[UpgradeReply, Reply]:
    """An upgrade whose lines came one by one, 10 ms apart."""
    upgrade = UpgradeReply(0)
    upgrade.take(5 * MS, HEAD)
    for number, line in enumerate(lines, 1):
        upgrade.take(10 * MS * number, (line if isinstance(line, bytes) else line.encode()) + b"\n")
    upgrade.take(1000 * MS, foot)
    whole = upgrade.whole_reply(reply(b""))
    upgrade.end(1000 * MS)
    return upgrade, whole


def names(upgrade: UpgradeReply) -> list[str]:
    return [phase.name for phase in upgrade.phases]


def test_a_good_upgrade_has_all_its_phases() -> None:
    upgrade, whole = upgraded(*LINES)
    assert find_upgrade_failure(upgrade, whole) is None
    assert upgrade.has_reliable_times
    assert names(upgrade) == list(PHASES)
    instants = [(phase.start_ns / MS, phase.stop_ns / MS) for phase in upgrade.phases]
    assert instants == [(10 * n, 10 * n + 10) for n in range(9)] + [(90, 1000)]


@given(st.lists(st.integers(0, len(GOOD)), max_size=40))
def test_any_pieces_give_the_same_lines_and_phases(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(GOOD)]
    upgrade = UpgradeReply(0)
    marks: list[PhaseMark] = []
    for at, (start, stop) in enumerate(pairwise(places)):
        marks += upgrade.take(at * MS, GOOD[start:stop])
    marks += upgrade.end(len(places) * MS)
    assert names(upgrade) == list(PHASES)
    assert [line.text for line in upgrade.lines] == [line.text for line in upgraded(*LINES)[0].lines]
    assert upgrade.has_reliable_times or upgrade.is_held_back
    seen = [phase for phase in upgrade.phases if phase.stop_ns > phase.start_ns]
    assert upgrade.is_held_back or marks == [mark for phase in seen for mark in _marks(phase)]
    assert all(
        one.stop_ns == two.start_ns for one, two in zip(upgrade.phases, upgrade.phases[1:], strict=False)
    )
    assert find_upgrade_failure(upgrade, upgrade.whole_reply(reply(b""))) is None


@given(st.binary(max_size=400), st.integers(1, 50))
def test_nothing_that_a_site_may_send_is_too_much(junk: bytes, size: int) -> None:
    upgrade = UpgradeReply(0)
    body = b'<div class="wrap">' + junk
    for at in range(0, len(body), size):
        upgrade.take(at, body[at : at + size])
    upgrade.end(len(body))
    find_upgrade_failure(upgrade, upgrade.whole_reply(reply(b"")))


def _marks(phase: Phase) -> list[PhaseMark]:
    return [PhaseMark(phase.name, "start", phase.start_ns), PhaseMark(phase.name, "stop", phase.stop_ns)]


def _together(*counts: int) -> tuple[UpgradeReply, list[list[PhaseMark]]]:
    """An upgrade whose lines came so many at once, and then the rest; and the marks of each piece."""
    upgrade, lines = UpgradeReply(0), [line if isinstance(line, bytes) else line.encode() for line in LINES]
    marks = [upgrade.take(5 * MS, HEAD)]
    for number, (start, stop) in enumerate(pairwise(accumulate([0, *counts, len(lines)])), 1):
        marks.append(upgrade.take(10 * MS * number, b"\n".join(lines[start:stop])))
    upgrade.take(1000 * MS, FOOT)
    return upgrade, [*marks, upgrade.end(1000 * MS)]


HELD_BACK: list[tuple[str, tuple[int, ...], list[str]]] = [
    ("the whole reply, by a proxy", (), []),
    ("as nginx does, whose buffer is full in mid-line", (7,), []),
    ("the buffer is full after the first line, which seems to be timed", (1,), ["start", "download"]),
    ("or after the second", (2,), []),
    ("or before the last", (8,), []),
    ("a buffer of three lines", (3, 3), []),
]


@pytest.mark.parametrize(("what", "counts", "begun"), HELD_BACK, ids=[row[0] for row in HELD_BACK])
def test_lines_that_were_held_back_tell_no_times(
    what: str, counts: tuple[int, ...], begun: list[str]
) -> None:
    upgrade, marks = _together(*counts)
    assert find_upgrade_failure(upgrade, upgrade.whole_reply(reply(b""))) is None
    assert upgrade.is_held_back, what
    assert not upgrade.has_reliable_times
    assert [mark.name for piece in marks for mark in piece if mark.phase == "start"] == begun


def test_a_short_phase_may_begin_and_end_at_once() -> None:
    upgrade, marks = _together(1, 1, 1, 3, 1, 1)
    assert upgrade.has_reliable_times
    seen = ["start", "download", "unpack", "verify", "copy", "maintenance-off", "database", "finish"]
    assert [mark.name for piece in marks for mark in piece if mark.phase == "start"] == seen
    assert [mark.name for piece in marks for mark in piece if mark.phase == "stop"] == seen
    assert marks[4] == [PhaseMark("verify", "stop", 40 * MS), PhaseMark("copy", "start", 40 * MS)]


def test_lines_that_follow_at_once_in_chunks_of_their_own_were_held_back_too() -> None:
    upgrade, lines = UpgradeReply(0), [line for line in LINES[:9] if isinstance(line, bytes)]
    for t_ns, piece in zip(FROM_APACHE_NS, [HEAD + lines[0], *lines[1:], FOOT], strict=True):
        upgrade.take(t_ns, piece)
    upgrade.end(FROM_APACHE_NS[-1])
    assert names(upgrade) == list(PHASES)
    assert upgrade.is_held_back
    assert not upgrade.has_reliable_times


GERMAN = [
    '<p>Aktualisierung von <span class="code">https://wordpress.org/x.zip</span> wird geladen&#8230;</p>',
    "<p>Aktualisierung wird entpackt&#8230;</p>",
    "<p>Die entpackten Dateien werden überprüft&#8230;</p>",
    "<p>Installation der neuesten Version wird vorbereitet&#8230;</p>",
    "<p>Wartungsmodus wird aktiviert&#8230;</p>",
    "<p>Benötigte Dateien werden kopiert&#8230;</p>",
    "<p>Wartungsmodus wird deaktiviert&#8230;</p>",
    "<p>Datenbank wird aktualisiert&#8230;</p>",
    "<p>WordPress erfolgreich aktualisiert.</p>",
    '<p>Willkommen bei WordPress 6.8.7. <a href="http://clone.test/wp-admin/about.php?updated">Mehr</a></p>',
]


def test_another_language_is_read_by_its_order() -> None:
    upgrade, whole = upgraded(*GERMAN)
    assert find_upgrade_failure(upgrade, whole) is None
    assert upgrade.has_reliable_times
    assert names(upgrade) == list(PHASES)


def test_a_package_without_a_signature_moves_no_phase() -> None:
    unsigned = '<p>Die Echtheit von <span class="code">x.zip</span> konnte nicht geprüft werden.</p>'
    upgrade, _ = upgraded(GERMAN[0], unsigned, *GERMAN[1:])
    assert upgrade.has_reliable_times
    assert names(upgrade) == list(PHASES)


def test_a_language_that_mixes_in_english_lines_moves_none_either() -> None:
    upgrade, _ = upgraded(*GERMAN[:3], LINES[3], *GERMAN[4:])
    assert names(upgrade) == list(PHASES)


@given(st.lists(st.booleans(), min_size=9, max_size=9))
def test_a_translation_that_is_not_complete_has_all_phases(translated: list[bool]) -> None:
    mixed = [
        german if is_german else line
        for german, line, is_german in zip(GERMAN, LINES, translated, strict=False)
    ]
    upgrade, whole = upgraded(*mixed, GERMAN[-1])
    assert find_upgrade_failure(upgrade, whole) is None
    assert upgrade.has_reliable_times
    assert names(upgrade) == list(PHASES)
    assert [phase.stop_ns for phase in upgrade.phases][:8] == [10 * MS * n for n in range(1, 9)]


def test_a_translated_upgrade_that_broke_off_says_in_which_phase() -> None:
    upgrade, whole = upgraded(*GERMAN[:6], "<p>Es ging nicht.</p>", foot=b"")
    found = find_upgrade_failure(upgrade, whole)
    assert found
    assert found.detail == "in phase copy: Es ging nicht."
    assert names(upgrade) == list(PHASES[:7])


def test_a_line_too_many_makes_the_times_doubtful_and_no_failure() -> None:
    upgrade, whole = upgraded(*GERMAN[:4], "<p>Noch etwas&#8230;</p>", *GERMAN[4:])
    assert find_upgrade_failure(upgrade, whole) is None
    assert not upgrade.has_reliable_times


FAILED: list[tuple[str, list[bytes | str], str, str]] = [
    (
        "a lock left over",
        ["<p>Another update is currently in progress.</p>"],
        "upgrade_locked",
        "core_updater.lock",
    ),
    (
        "the disk is full while unpacking",
        [
            *LINES[:2],
            "<p>Could not copy file.: wordpress/wp-includes/script-loader.php</p>",
            NOT_DONE,
        ],
        "out_of_disk",
        "in phase unpack: Could not copy file.: wordpress/wp-includes/script-loader.php",
    ),
    (
        "WordPress itself sees that the disk is full",
        [
            *LINES[:6],
            "<p>There is not enough free disk space to complete the update.</p>",
            NOT_DONE,
        ],
        "out_of_disk",
        "in phase copy",
    ),
    (
        "or thinks so",
        [
            *LINES[:2],
            "<p>Could not copy files. You may have run out of disk space.</p>",
            NOT_DONE,
        ],
        "out_of_disk",
        "in phase unpack",
    ),
    (
        "the package came in part, as it does to a disk that is nearly full",
        [
            *LINES[:2],
            "<p>The package could not be installed.: PCLZIP_ERR_BAD_FORMAT (-10) : Unable to find End of "
            "Central Dir Record signature</p>",
            NOT_DONE,
        ],
        "upgrade_failed",
        "only in part: the disk is full",
    ),
    (
        "a file that cannot be copied may be the disk's fault or its owner's",
        [
            *LINES[:6],
            "<p>Could not copy file.: wp-admin/about.php</p>",
            LINES[6],
            NOT_DONE,
        ],
        "upgrade_failed",
        "or PHP may not write that file",
    ),
    (
        "files that may not be written",
        [
            *LINES[:4],
            "<p>The update cannot be installed because your site is unable to copy some files. This is "
            "usually due to inconsistent file permissions.: wp-admin/about.php</p>",
            NOT_DONE,
        ],
        "upgrade_failed",
        "in phase prepare: The update cannot be installed",
    ),
    (
        "the package is not there",
        [LINES[0], "<p>Download failed.: Not Found</p>", NOT_DONE],
        "upgrade_failed",
        "in phase download: Download failed.: Not Found",
    ),
    (
        "the same in another language, where the last line that says what is done is the phase",
        [*GERMAN[:2], "<p>Die Datei konnte nicht kopiert werden.</p>", "<p>Installation fehlgeschlagen.</p>"],
        "upgrade_failed",
        "in phase unpack: Die Datei konnte nicht kopiert werden.",
    ),
    (
        "PHP's time ran out",
        [*LINES[:6], "<br />\n<b>Fatal error</b>:  Maximum execution time of 300 seconds exceeded in x.php"],
        "php_fatal",
        "Maximum execution time",
    ),
    (
        "PHP failed, and WordPress says so politely",
        [
            *LINES[:6],
            '<div class="wp-die-message"><p>There has been a critical error on this website.</p></div>',
        ],
        "php_fatal",
        "in phase copy",
    ),
    (
        "PHP was killed, and the reply ends",
        LINES[:6],
        "upgrade_failed",
        "ended in phase copy without reporting success",
    ),
    ("the site did nothing at all", [], "upgrade_failed", "it may no longer offer the upgrade"),
    (
        "PHP may not write, and asks for FTP",
        ['<form><div id="request-filesystem-credentials-form"></div>'],
        "upgrade_failed",
        "FS_METHOD",
    ),
]


@pytest.mark.parametrize(("what", "lines", "kind", "words"), FAILED, ids=[row[0] for row in FAILED])
def test_a_failure_is_status_200_as_well(what: str, lines: list[bytes | str], kind: str, words: str) -> None:
    upgrade, whole = upgraded(*lines)
    found = find_upgrade_failure(upgrade, whole)
    assert found is not None, what
    assert found.kind == kind, found
    assert words in found.detail
    assert not upgrade.has_reliable_times


# The pages before and after it.


def form(
    version: str, act: str = "do-core-upgrade", button: str = '<input type="submit" name="upgrade">'
) -> str:
    return (
        f'<li><p>About {version}.</p><form action="?action={act}" name="upgrade">'
        f'<input type="hidden" name="version" value="{version}">{button}</form></li>'
    )


def admin(body: str, version: str = "6-1-9") -> str:
    return f'<html><body class="wp-admin branch-6-1 version-{version} admin-color-fresh">{body}</body></html>'


def test_the_offer_of_a_real_page() -> None:
    chosen = choose_offer(reply(OFFER), "6.1", "6.8")
    assert isinstance(chosen, Offer)
    assert chosen.version == "6.8.7"
    assert chosen.address == "http://clone.test/wp-admin/update-core.php?action=do-core-upgrade"
    assert [name for name, _ in chosen.fields] == [
        "_wpnonce",
        "_wp_http_referer",
        "version",
        "locale",
        "upgrade",
    ]
    assert shown_version(reply(OFFER)) == "6.1.9"
    assert find_offer_failure(reply(OFFER), None, None) is None


OFFERS: list[tuple[str, str, str | None, str | None, str]] = [
    ("the first that is newer", admin(form("6.1.9") + form("6.2.7") + form("6.8.7")), None, None, "6.2.7"),
    ("the one that is asked for", admin(form("6.2.7") + form("6.8.7")), None, "6.8", "6.8.7"),
    ("6.10 is above 6.9", admin(form("6.10"), "6-9"), None, None, "6.10"),
    ("a page without a version is believed", form("6.8.7"), None, None, "6.8.7"),
    ("an upgraded site", admin(form("6.8.7", "do-core-reinstall"), "6-8-7"), None, None, "wrong_version"),
    ("a site that reaches nobody", admin(""), None, None, "wrong_version"),
    ("another clone than was meant", admin(form("6.8.7")), "6.0", None, "wrong_version"),
    ("6.1 is not 6.10", admin(form("6.12"), "6-10"), "6.1", None, "wrong_version"),
    ("a version that is not offered", admin(form("6.8.7")), None, "6.7", "wrong_version"),
    ("PHP is too old: no button", admin(form("6.8.7", button="")), None, None, "check_failed"),
    ("a version that is unseen is not the one expected", form("6.8.7"), "6.1", None, "wrong_version"),
]


@pytest.mark.parametrize(("what", "page", "old", "new", "found"), OFFERS, ids=[row[0] for row in OFFERS])
def test_offers(what: str, page: str, old: str | None, new: str | None, found: str) -> None:
    chosen = choose_offer(reply(page), old, new)
    assert (chosen.kind if isinstance(chosen, StepFailure) else chosen.version) == found, what
    assert find_offer_failure(reply(page), old, new) == (chosen if isinstance(chosen, StepFailure) else None)


def test_a_clone_whose_database_is_behind_is_not_upgraded() -> None:
    chosen = choose_offer(reply("<html></html>", path="wp-admin/upgrade.php?_wp_http_referer=x"), None, None)
    assert isinstance(chosen, StepFailure)
    assert chosen.kind == "wrong_version"


def test_a_login_that_does_not_last_is_named() -> None:
    found = find_offer_failure(reply("", 302, location="http://clone.test/wp-login.php?reauth=1"), None, None)
    assert found is not None
    assert found.kind == "login_failed"
    assert "disk full?" in found.detail


VERSIONS = [
    ("6.1.9", "6.1", True, False),
    ("6.1.9", "6", True, False),
    ("6.1", "6.1.9", False, False),
    ("6.10", "6.1", False, False),
    ("6.8", "6.8", True, True),
    ("6.8", "6.8.0", False, True),
    ("6.9-RC1", "6.9", True, True),
]


@pytest.mark.parametrize(("version", "other", "fitting", "equal"), VERSIONS)
def test_versions(version: str, other: str, fitting: bool, equal: bool) -> None:
    assert version_fits(version, other) is fitting
    assert same_version(version, other) is equal


STEP = '<p class="step"><a class="button" href="{}">Go on</a></p>'
CURRENT, DUE = STEP.format("http://clone.test/"), STEP.format("upgrade.php?step=1&amp;backto=")
DATABASES: list[tuple[str, str, bool, str | None]] = [
    ("nothing to do", CURRENT, False, None),
    ("something to do is no trouble before it is done", DUE, False, None),
    ("nothing left", CURRENT, True, None),
    ("still the old one", DUE, True, "upgrade_failed"),
    ("MySQL is too old: no button", "<p>You cannot update because …</p>", False, "check_failed"),
    ("an empty page", "", False, "check_failed"),
]


@pytest.mark.parametrize(("what", "page", "pressed", "kind"), DATABASES, ids=[row[0] for row in DATABASES])
def test_the_database_page(what: str, page: str, pressed: bool, kind: str | None) -> None:
    found = find_database_failure(reply(page, path="wp-admin/upgrade.php"), pressed=pressed)
    assert (found.kind if found else None) == kind, what


MAINTENANCE = (
    "<!DOCTYPE html><html><body>Briefly unavailable for scheduled maintenance. Check back.</body></html>"
)
STATES = [
    ("it runs", reply(admin("")), "now the site answers as WordPress 6.1.9"),
    ("the login is lost", reply("", 302, location="/wp-login.php"), "now the site asks to log in again"),
    (
        "half",
        reply("", 302, location="/wp-admin/upgrade.php"),
        "now its files are new and its database is not",
    ),
    ("maintenance", reply(MAINTENANCE, 503), "delete the file .maintenance"),
    (
        "maintenance in any language",
        reply("<html>…</html>", 503, retry_after="600"),
        "delete the file .maintenance",
    ),
    ("broken", reply("<b>Fatal error</b>: no function x()"), "now the site has another problem: "),
    ("something else", reply("<p>Hello</p>"), "now it says: Hello"),
]


@pytest.mark.parametrize(("what", "page", "words"), STATES, ids=[row[0] for row in STATES])
def test_the_state_after_a_failure_is_said(what: str, page: Reply, words: str) -> None:
    assert words in describe_state(page), what


def test_maintenance_is_no_dead_backend() -> None:
    found = find_failure(reply(MAINTENANCE, 503, retry_after="600", x_varnish="5"))
    assert found is not None
    assert found.kind == "upgrade_locked"


def test_the_front_page_must_be_a_page() -> None:
    assert find_front_failure(reply("<html><body>Hello</body></html>", path="")) is None
    assert find_front_failure(reply("", path="")) == StepFailure(
        "check_failed", "the front page is not a page: status 200"
    )
