"""The profile of the block editor: its problems, the one for a version, and what was recorded in Chromium."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

import pytest

from plimsoll.common.errors import SettingsError
from plimsoll.scenarios.wordpress.editor_traffic import (
    Categories,
    EditorRequest,
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
    ("a key that there is not", "heartbeat: 15", "heartbeat: is not a known key: did you mean heartbeat_s?"),
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
        "an image where there is none",
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
