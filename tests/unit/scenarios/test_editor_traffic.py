"""What the block editor asks for by itself: its profile, and its requests to a small WordPress of ours."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import parse_qs, urlencode

import gevent
import pytest

from plimsoll.common.errors import SettingsError
from plimsoll.scenarios.running.client import SentRequest, SiteClient, StepFailure
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.running.settings import ScenarioSettings
from plimsoll.scenarios.wordpress.account import Rest
from plimsoll.scenarios.wordpress.content import Article, Picture, make_article
from plimsoll.scenarios.wordpress.editor import BlockEditor, find_loss
from plimsoll.scenarios.wordpress.editor_traffic import (
    BackgroundClient,
    Categories,
    EditorRequest,
    EditorTraffic,
    Image,
    Profile,
    nearest_profile,
    read_profile,
    recorded_profiles,
    wordpress_branch,
)
from tests.support.programs import DOCS, FIXTURES
from tools.editor_requests import body_of, kind_of, request_of

PAGE = (DOCS / "block-editor.md").read_text(encoding="utf-8")
RECORDINGS = sorted((FIXTURES / "block-editor").glob("wordpress-*.json"))
TOLERANCE = 0.1


PROBLEMS = [
    ("an unknown key", "heartbeat: 15", "heartbeat: is not a known key: did you mean heartbeat_s?"),
    ("faster than any editor", "heartbeat_s: 0", "heartbeat_s: must be at least 1"),
    ("more than all articles", "image: {share: 30}", "image.share: must be at most 1"),
    (
        "a request that changes something",
        "opening: [DELETE wp/v2/posts/1]",
        "opening.0: must be GET or OPTIONS",
    ),
    ("another host", "panel: ['GET https://example.org/']", "panel.0: must be GET or OPTIONS"),
    ("a name that stands for nothing", "saved: ['GET wp/v2/posts/{id}']", "saved.0: knows no {id}"),
    (
        "an image where none was uploaded",
        "opening: ['GET wp/v2/media/{media}']",
        "opening: {media} stands for an image",
    ),
    (
        "no list to choose from",
        "categories: {share: 1, asks: [GET wp/v2/tags]}",
        "must have GET wp/v2/categories",
    ),
    ("no such time", "files: sometimes", "files: must be never, first or always"),
]


def profile_in(path: Path, text: str) -> Profile:
    file = path / "profile.yml"
    file.write_text(text)
    return read_profile(file)


@pytest.mark.parametrize(("why", "text", "says"), PROBLEMS)
def test_what_is_wrong_with_a_profile_is_said(why: str, text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        profile_in(tmp_path, text)
    assert says in str(raised.value), why
    assert "profile.yml:1: " in str(raised.value)


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        profile_in(tmp_path, "heartbeat_s: never\nautosave_s: 0\nopening: [PUT x]\n")
    assert len(str(raised.value).splitlines()) == 3


def test_an_empty_profile_asks_for_nothing(tmp_path: Path) -> None:
    assert profile_in(tmp_path, "{}") == Profile()
    assert not Profile().opening
    assert Profile().heartbeat_s is None


def test_a_path_is_that_of_the_article() -> None:
    assert EditorRequest("GET", "wp/v2/posts/{post}?media={media}").of(7, 9) == "wp/v2/posts/7?media=9"


VERSIONS = [
    ("its own", (6, 1), (6, 1)),
    ("older than all: the oldest", (5, 9), (6, 1)),
    ("between two: the older of them", (6, 5), (6, 1)),
    ("newer than all: the newest", (7, 2), (6, 8)),
    ("unknown: the newest", None, (6, 8)),
]


@pytest.mark.parametrize(("why", "version", "chosen"), VERSIONS)
def test_a_version_has_the_profile_recorded_before_it(
    why: str, version: tuple[int, int] | None, chosen: tuple[int, int]
) -> None:
    two = {(6, 1): Profile(), (6, 8): Profile(files="first")}
    assert nearest_profile(version, two) is two[chosen], why


def test_a_page_of_the_admin_side_says_its_version() -> None:
    assert wordpress_branch('<body class="wp-admin branch-6-8 version-6-8-2 block-editor-page">') == (6, 8)
    assert wordpress_branch("<body>") is None


def test_every_key_is_documented() -> None:
    keys = {f"`{name}`" for name in Profile.model_fields.keys() - {"categories", "image"}}
    for part, model in (("categories", Categories), ("image", Image)):
        keys |= {f"`{part}.{name}`" for name in model.model_fields}
    assert [key for key in sorted(keys) if key not in PAGE] == []


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
class TestRecorded:
    """A profile that comes with Plimsoll asks for what Chromium did, as often."""

    def test_each_part_of_the_work_asks_for_the_same(self, path: Path) -> None:
        recording, profile = _recording(path), _profile(path)
        parts = {
            # An author whose panel of categories is open is asked nothing further when ticking one.
            "opening writing categories": (*profile.opening, *profile.categories.asks),
            "image": profile.image.asks,
            "panel": [ask for ask in profile.panel if ask not in profile.categories.asks],  # it has those
            "publishing": profile.published,
            "saving": profile.saved,
        }
        for part, asks in parts.items():
            there = [_ask(one) for one in recording if one["part"] in part.split()]
            expected = Counter(one for one in there if one and "wp-admin/" not in one)
            assert Counter(f"{ask.method} {ask.path}" for ask in asks) == expected, part

    @pytest.mark.parametrize("name", ["heartbeat", "autosave"])
    def test_what_comes_again_and_again_has_its_interval(self, path: Path, name: str) -> None:
        at_ms = [
            one["at_ms"]
            for one in _recording(path)
            if (
                one.get("action") == name
                if name == "heartbeat"
                else one.get("path", "").endswith("/autosaves")
            )
        ]
        assert len(at_ms) >= 2
        found_s = median(later - former for former, later in pairwise(at_ms)) / 1000
        wanted_s = getattr(_profile(path), f"{name}_s")
        assert wanted_s == pytest.approx(found_s, rel=TOLERANCE)

    def test_files_and_the_end_are_those_of_the_recording(self, path: Path) -> None:
        recording, profile = _recording(path), _profile(path)
        left = [one["action"] for one in recording if one["part"] == "leaving" and "action" in one]
        assert left.count("wp-remove-post-lock") == profile.leaving
        assert sum(one["files"] for one in recording if one["part"] == "opening" and "files" in one) > 50
        assert profile.files == "first"

    def test_it_has_nothing_of_the_site_and_the_session(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        for secret in ("http:", "https:", "127.0.0.1", "Cookie", "And so on", "plimsoll-run-", '"_nonce":'):
            assert secret not in text


def _recording(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["requests"]
    return found


def _profile(path: Path) -> Profile:
    version = tuple(int(part) for part in path.stem.removeprefix("wordpress-").split("."))
    return recorded_profiles()[version[0], version[1]]


def _ask(one: dict[str, Any]) -> str | None:
    """A request as a profile writes it, if it changes nothing."""
    if one.get("method") not in ("GET", "OPTIONS"):
        return None
    query = f"?{urlencode(one['query'], safe=',/{}:')}" if one.get("query") else ""
    return f"{one['method']} {one['path']}{query}"


KINDS = [
    ("the editor itself", "GET", "/wp-admin/post-new.php", "GET editor"),
    ("in a folder", "GET", "/blog/wp-admin/post-new.php", "GET editor"),
    ("a path of REST without numbers", "PUT", "/wp-json/wp/v2/posts/17?_locale=user", "PUT wp/v2/posts/{id}"),
    (
        "REST without permalinks",
        "GET",
        "/index.php?rest_route=/wp/v2/types/post&context=edit",
        "GET wp/v2/types/post",
    ),
    ("a heartbeat, as a log shows it", "POST", "/wp-admin/admin-ajax.php", "POST admin-ajax"),
    ("files, also those that PHP puts together", "GET", "/wp-admin/load-scripts.php?c=1", "file"),
    ("a file with a version", "GET", "/wp-includes/css/dashicons.min.css?ver=6.1", "file"),
    (
        "what a site asks before its administrator came",
        "GET",
        "/wp-admin/admin-ajax.php?action=wp-compression-test&test=1",
        None,
    ),
    ("a visitor's page", "GET", "/2026/11/a-post/", None),
]


@pytest.mark.parametrize(("why", "method", "target", "kind"), KINDS)
def test_requests_have_kinds(why: str, method: str, target: str, kind: str | None) -> None:
    assert kind_of(method, target) == kind, why


def test_a_recording_keeps_names_and_no_values() -> None:
    form = "action=heartbeat&_nonce=a1b2c3&data%5Bwp-refresh-post-lock%5D%5Block%5D=1:2&screen_id=post"
    kept = body_of("application/x-www-form-urlencoded", form)
    assert kept["action"] == "heartbeat"
    assert "a1b2c3" not in json.dumps(kept)
    assert body_of("application/json", '{"title": "mine", "id": 4}') == {"json": ["id", "title"]}
    multipart = '--x\r\nContent-Disposition: form-data; name="_wpnonce"\r\n\r\na1b2c3\r\n--x--'
    assert body_of("multipart/form-data", multipart) == {"form": ["_wpnonce"]}
    _, path, query = request_of(
        "GET", "/wp-json/wp/v2/posts/17?_wpnonce=a1b2&post=17&per_page=100", {"17": "post"}
    )
    assert (path, query) == ("wp/v2/posts/{post}", {"post": "{post}", "per_page": "100"})
    _, _, query = request_of("GET", "/wp-json/wp/v2/x?slug=single-a-title-7", {"a-title-7": "post"})
    assert query == {"slug": "single-{post}"}, "its name, too"


# Requests.


EDITOR = """<html><head>
<link rel="stylesheet" href="/a.css"><link rel="preload" href="/unused.woff2">
<script src="/a.js?ver=1"></script><script src="/a.js?ver=1"></script><script src="http://elsewhere.example/b.js">
</script></head><body class="block-editor-page branch-6-1"><img src="/c.png"><img src="http://[bad/">
<script>window.heartbeatSettings = {"ajaxurl":"x","nonce":"beat1"};
initializeEditor( 'editor', "post", 7, {"postLock":{"isLocked":false,"activePostLock":"100:2"},
"postLockUtils":{"nonce":"n","unlockNonce":"unlock1","ajaxUrl":"x"}} );
createRootURLMiddleware( "ROOT" )</script></body></html>"""


@dataclass
class Asked:
    """What a site was asked, and what else than usual it answers: status and data, by method and path."""

    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)

    def kinds(self) -> Counter[str]:
        return Counter(f"{method} {path.removeprefix('/wp-json')}" for method, path, _ in self.requests)

    def forms(self, path: str) -> list[dict[str, str]]:
        """The fields of the forms that came."""
        return [
            {name: values[0] for name, values in parse_qs(body.decode(errors="replace")).items()}
            for _, asked, body in self.requests
            if asked == path
        ]


class _WordPress(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: Asked

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.asked.requests.append((self.command, self.path, body))
        status, data = self.asked.answers.get(f"{self.command} {self.path}", (200, {}))
        if "rest-nonce" in self.path:
            data = "abcdef"
        elif b"action=heartbeat" in body and not data:
            beats = sum(b"action=heartbeat" in sent for _, _, sent in self.asked.requests)
            data = {"server_time": 1, "wp-refresh-post-lock": {"new_lock": f"{100 + beats}:2"}}
        text = data.encode() if isinstance(data, str) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_OPTIONS = _any  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@dataclass
class Desk:
    """An author in the editor of such a site."""

    asked: Asked
    sent: list[SentRequest]
    site: SiteClient
    background: BackgroundClient
    rest: Rest
    page: Any
    editor: BlockEditor

    def traffic(self, profile: dict[str, Any], chance: str = "1") -> EditorTraffic:
        of = Profile.model_validate(profile)
        return EditorTraffic(of, self.editor, self.page, self.rest, self.background, chance)

    def errors(self) -> list[tuple[str, str]]:
        return [(one.step, one.error) for one in self.sent if one.error != "none"]


@contextmanager
def at_desk(answers: dict[str, tuple[int, Any]]) -> Iterator[Desk]:
    asked, sent = Asked(answers=answers), list[SentRequest]()
    handler = type("Handler", (_WordPress,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        answers["GET /wp-admin/post-new.php"] = (200, EDITOR.replace("ROOT", f"{url}/wp-json/"))
        settings = ScenarioSettings(target=url)
        site = SiteClient(settings, sent.append)
        beside = BackgroundClient(settings, sent.append, site)
        rest = Rest(site, Credentials("author", "x"))
        page = site.get("open editor", "wp-admin/post-new.php")
        editor = BlockEditor(rest, page)
        asked.requests.clear()
        try:
            yield Desk(asked, sent, site, beside, rest, page, editor)
        finally:
            site.close()
            beside.close()
            server.shutdown()


@pytest.fixture
def desk() -> Iterator[Desk]:
    with at_desk({}) as found:
        yield found


def until(holds: Any) -> None:
    """Let greenlets work until it holds; the test's own time-out ends what never does."""
    with gevent.Timeout(60):
        while not holds():
            gevent.sleep(0.01)


def text() -> Article:
    return make_article(1, 1, 1_000)


def test_the_opening_asks_for_what_the_profile_lists_and_for_files_once(desk: Desk) -> None:
    desk.traffic({"opening": ["GET wp/v2/blocks", "OPTIONS wp/v2/posts/{post}"]}).open(files=True)
    assert desk.asked.kinds() == {
        "GET /wp/v2/blocks": 1,
        "OPTIONS /wp/v2/posts/7": 1,
        "GET /a.css": 1,
        "GET /a.js?ver=1": 1,
        "GET /c.png": 1,
    }


def test_an_empty_profile_asks_for_nothing_at_all(desk: Desk) -> None:
    with desk.traffic({}) as traffic:
        traffic.open(files=False)
        traffic.writing(text())
        assert traffic.picture("a.jpg", lambda: b"", lambda *_: None) is None
        assert traffic.categories() == ()
        traffic.before_publishing()
        traffic.note_saved(first=True)
        assert not traffic.note_written()
        traffic.leave()
    assert desk.asked.requests == []


def test_heartbeats_renew_the_lock_and_the_end_releases_the_newest(desk: Desk) -> None:
    with desk.traffic({"heartbeat_s": 1, "leaving": True}) as traffic:
        until(lambda: len(desk.asked.requests) >= 2)
        until(lambda: sum(one.step == "heartbeat" for one in desk.sent) >= 2)
        traffic.leave()
    forms = desk.asked.forms("/wp-admin/admin-ajax.php")
    assert [form["data[wp-refresh-post-lock][lock]"] for form in forms[:2]] == ["100:2", "101:2"]
    assert {form["_nonce"] for form in forms[:2]} == {"beat1"}
    last = desk.asked.requests[-1][2]
    for part in (b"wp-remove-post-lock", b"unlock1", b"102:2", b'name="post_ID"'):
        assert part in last
    first, second = [one for one in desk.sent if one.step == "heartbeat"][:2]
    assert 0 < first.due_ns <= first.start_ns
    assert second.due_ns - (first.start_ns + 1000 * first.total_us) >= 1_000_000_000, "after the answer"


def test_what_is_being_written_is_kept_and_nothing_after(desk: Desk) -> None:
    with desk.traffic({"autosave_s": 1}) as traffic:
        traffic.writing(text())
        until(lambda: any(one.step == "autosave" for one in desk.sent))
        assert traffic.note_written()
        kept = len(desk.asked.requests)
        gevent.sleep(1.2)  # the next one would be due
        assert len(desk.asked.requests) == kept
    sent = json.loads(desk.asked.requests[0][2])
    assert (sent["status"], sent["title"]) == ("draft", text().title)


def test_a_heartbeat_takes_the_nonce_that_the_site_gives_for_an_old_one() -> None:
    expired = (200, {"nonces_expired": True, "heartbeat_nonce": "beat2", "server_time": 1})
    with at_desk({"POST /wp-admin/admin-ajax.php": expired}) as desk:
        with desk.traffic({"heartbeat_s": 1}):
            until(lambda: len(desk.asked.requests) >= 2)
        assert [form["_nonce"] for form in desk.asked.forms("/wp-admin/admin-ajax.php")[:2]] == [
            "beat1",
            "beat2",
        ]
        assert ("heartbeat", "nonce_expired") in desk.errors()


REFUSED = {
    "code": "rest_forbidden",
    "message": "Sorry, you are not allowed to do that.",
    "data": {"status": 403},
}
ANSWERS = [
    ("a list", 200, [], None),
    ("what this account may not have", 403, REFUSED, None),
    ("what this version does not have", 404, REFUSED | {"code": "rest_no_route"}, None),
    ("no longer logged in", 401, REFUSED | {"code": "rest_not_logged_in"}, "no_permission"),
    ("a page of another program", 404, "<h1>Not found</h1>", "http_error"),
    ("noise before the answer", 200, "<b>Notice</b>: noise {}", "check_failed"),
    ("a fatal error", 200, "<b>Fatal error</b>: Uncaught Error", "php_fatal"),
    ("a server in trouble", 500, REFUSED, "no_permission"),
]


@pytest.mark.parametrize(("why", "status", "data", "error"), ANSWERS)
def test_a_refusal_is_an_answer_and_the_article_goes_on(
    why: str, status: int, data: Any, error: str | None
) -> None:
    with at_desk({"GET /wp-json/wp/v2/settings": (status, data)}) as desk:
        desk.traffic({"panel": ["GET wp/v2/settings"]}).before_publishing()
        assert desk.errors() == ([("ask to publish", error)] if error else []), why


def test_categories_are_chosen_from_the_list_the_same_for_each_seed() -> None:
    listed = (200, [{"id": 3}, {"id": 5}, {"id": 8}, {"id": "9"}, "hostile", {"id": True}])
    wanted = {"categories": {"share": 1, "most": 2, "asks": ["GET wp/v2/categories?per_page=100"]}}
    with at_desk({"GET /wp-json/wp/v2/categories?per_page=100": listed}) as desk:
        chosen = {desk.traffic(wanted, str(n)).categories() for n in range(20)}
        assert desk.traffic(wanted, "4").categories() == desk.traffic(wanted, "4").categories()
    assert {len(one) for one in chosen} == {1, 2}
    assert {number for one in chosen for number in one} == {3, 5, 8}


def test_an_image_is_uploaded_noted_and_put_in() -> None:
    made: list[tuple[int, str]] = []
    uploaded = (201, {"id": 31, "source_url": 'https://site.example/a"b.jpg'})
    with at_desk({"POST /wp-json/wp/v2/media": uploaded}) as desk:
        wanted = {"image": {"share": 1, "asks": ["GET wp/v2/media/{media}?context=view"]}}
        picture = desk.traffic(wanted).picture("a.jpg", lambda: b"\xff\xd8", lambda *one: made.append(one))
        assert made == [(31, "media")]
        assert b'filename="a.jpg"' in desk.asked.requests[0][2]
        assert desk.asked.kinds()["GET /wp/v2/media/31?context=view"] == 1
    assert picture == Picture(31, 'https://site.example/a"b.jpg')
    whole = text().with_picture(picture).blocks()
    assert whole.startswith('<!-- wp:image {"id":31,"sizeSlug":"full","linkDestination":"none"} -->\n<figure')
    assert 'src="https://site.example/a&quot;b.jpg"' in whole, "what the site says stays within its quotes"


def test_an_article_goes_on_without_an_image_that_was_refused() -> None:
    with at_desk({"POST /wp-json/wp/v2/media": (403, REFUSED)}) as desk:
        wanted = {"image": {"share": 1, "asks": []}}
        assert desk.traffic(wanted).picture("a.jpg", lambda: b"", lambda *_: None) is None
        assert desk.errors() == [("upload image", "no_permission")]


@pytest.mark.parametrize(
    ("back", "fine", "says"),
    [
        ("x" * 1000 + "Version 2.", True, "as it was sent"),
        ("x" * 960 + "Version 2.", True, "a little was filtered"),
        ("x" * 500 + "Version 2.", False, "half of it is gone"),
        ("x" * 1000 + "Version 1.", False, "an older version"),
        ("", False, "nothing came back"),
    ],
)
def test_a_lost_article_is_noticed(back: str, fine: bool, says: str) -> None:
    found = find_loss("x" * 1000 + "Version 2.", back, "Version 2.")
    assert (found is None) is fine, says
    assert found is None or found == StepFailure("check_failed", found.detail)
