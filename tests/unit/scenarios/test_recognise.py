"""What is wrong with a reply is recognised, whatever its status, by the texts of WordPress 6.1 and 6.8."""

import json

import pytest

from plimsoll.scenarios.running.client import Reply, StepFailure, find_failure, visible_text
from plimsoll.scenarios.upload_images import find_upload_failure, size_files
from plimsoll.scenarios.wordpress.account import (
    expect_logged_in,
    find_rest_root,
    is_logged_out,
    is_object,
    missing_sizes,
    rest_address,
)
from plimsoll.scenarios.wordpress.editor import find_loss


def reply(body: str, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply("http://site/wp-admin/post.php", status, named, body.encode(), 1)


def page(message: str) -> str:
    """A page of wp_die()."""
    style = ".button:hover { color: #006ba1; } @font-face { src: url(disk.woff) }"
    return (
        '<!DOCTYPE html><html lang="en-US"><head><title>WordPress &rsaquo; Error</title>'
        f'<style type="text/css">{style}</style></head>'
        f'<body id="error-page"><div class="wp-die-message">{message}</div></body></html>'
    )


EXPIRED = page("The link you followed has expired.</p><p><a href='http://site/'>Please try again</a>.")
NOT_ALLOWED = page("Sorry, you are not allowed to access this page.")
CRITICAL = page("<p>There has been a critical error on this website.</p><p><a href='#'>Learn more</a>.</p>")
NO_DATABASE = page("<h1>Error establishing a database connection</h1>")
REST_NONCE = '{"code":"rest_cookie_invalid_nonce","message":"Cookie check failed","data":{"status":403}}'
REST_CREATE = (
    '{"code":"rest_cannot_create","message":"Sorry, you are not allowed to create posts as this user.",'
    '"data":{"status":401}}'
)
REST_PUBLISH = (
    '{"code":"rest_cannot_publish","message":"Sorry, you are not allowed to publish posts in this post type."'
    ',"data":{"status":403}}'
)
REST_FATAL = (
    '{"code":"internal_server_error","message":"<p>There has been a critical error on this website.<\\/p>",'
    '"data":{"status":500},"additional_errors":[]}'
)
VARNISH = (
    "<!DOCTYPE html><html><head><title>503 Backend fetch failed</title></head><body>"
    "<h1>Error 503 Backend fetch failed</h1><h3>Guru Meditation:</h3><p>XID: 720947</p>"
    "<hr><p>Varnish cache server</p></body></html>"
)
NGINX = "<html><head><title>502 Bad Gateway</title></head><body><center>nginx/1.22.1</center></body></html>"
SHOWN_FATAL = (
    "<p>text</p><br />\n<b>Fatal error</b>:  Uncaught Error: Call to undefined function f() in /x.php:3\n"
    "Stack trace:\n#0 {main}\n  thrown in <b>/data/x.php</b> on line <b>3</b><br />"
)
MEMORY = "<b>Fatal error</b>:  Allowed memory size of 268435456 bytes exhausted in <b>/data/x.php</b>"


@pytest.mark.parametrize(
    ("body", "status", "kind", "says"),
    [
        ("<html><body>A page</body></html>", 200, None, "a page"),
        ("", 302, None, "a redirect"),
        (EXPIRED, 403, "nonce_expired", "a form's nonce"),
        (page("Are you sure you want to do this?"), 403, "nonce_expired", "as WordPress before 4.9 said it"),
        (REST_NONCE, 403, "nonce_expired", "a nonce of REST"),
        ("-1", 403, "nonce_expired", "a nonce of admin-ajax"),
        (NOT_ALLOWED, 403, "no_permission", "a page of the administration"),
        (REST_CREATE, 401, "no_permission", "REST, not even drafts"),
        (REST_PUBLISH, 403, "no_permission", "REST, drafts only"),
        (CRITICAL, 500, "php_fatal", "WordPress's own page about it"),
        (REST_FATAL, 500, "php_fatal", "the same as JSON"),
        (SHOWN_FATAL, 200, "php_fatal", "shown in a page of status 200"),
        (MEMORY, 200, "php_fatal", "out of memory"),
        ("PHP Parse error:  syntax error, unexpected", 200, "php_fatal", "as the command line prints it"),
        (NO_DATABASE, 500, "backend_dead", "the database is gone"),
        (VARNISH, 503, "backend_dead", "Varnish answers"),
        (NGINX, 502, "backend_dead", "nginx answers"),
        (page("No space left on device"), 500, "out_of_disk", "the system's words"),
        ("Got error 28: No space left on device (Errcode: 28)", 500, "out_of_disk", "MariaDB's words"),
        ("Could not copy file. disk_full", 200, "out_of_disk", "the updater's"),
        (page("Briefly unavailable for scheduled maintenance."), 503, "upgrade_locked", "maintenance mode"),
        ("Not here", 404, "http_error", "any other status"),
        ("", 500, "http_error", "an empty page"),
        ("", 429, "http_error", "too many requests"),
    ],
)
def test_trouble_is_named(body: str, status: int, kind: str | None, says: str) -> None:
    found = find_failure(reply(body, status))
    assert (found.kind if found else None) == kind, says


def test_a_dead_backend_is_known_by_its_headers() -> None:
    found = find_failure(reply("", 503, x_varnish="123"))
    assert found
    assert found.kind == "backend_dead"


def test_a_plugin_that_answers_503_is_no_proxy() -> None:
    found = find_failure(reply("<html><body>The house is full, come back later.</body></html>", 503))
    assert found
    assert found.kind == "http_error"
    assert "The house is full" in found.detail


def test_the_detail_is_what_a_person_would_read() -> None:
    found = find_failure(reply(NOT_ALLOWED, 403))
    assert found
    assert "Sorry, you are not allowed to access this page." in found.detail
    assert "<" not in found.detail
    assert len(visible_text("word " * 1000)) <= 200


def test_an_article_deep_in_a_page_is_no_trouble() -> None:
    long_page = "<p>text</p>" * 60_000
    assert find_failure(reply(f"{long_page}<b>Fatal error</b>{long_page}")) is None


@pytest.mark.parametrize(
    ("location", "out", "says"),
    [
        ("http://site/wp-login.php?redirect_to=x&reauth=1", True, "to the login form"),
        ("/wp-admin/post.php?post=1&action=edit&message=6", False, "to an article"),
        ("", False, "nowhere"),
    ],
)
def test_a_lost_login_is_known(location: str, out: bool, says: str) -> None:
    one = reply("", 302, location=location)
    assert is_logged_out(one) is out, says
    found = expect_logged_in()(one)
    assert (found.kind if found else None) == ("login_failed" if out else None), says


UPLOADED = json.dumps({"success": True, "data": {"id": 6290, "url": "http://site/x.jpg"}})


def refused(message: str) -> str:
    return json.dumps({"success": False, "data": {"message": message, "filename": "x.jpg"}})


@pytest.mark.parametrize(
    ("body", "status", "kind", "says"),
    [
        (UPLOADED, 200, None, "uploaded"),
        (refused("Sorry, you are not allowed to upload this file type."), 200, "upload_refused", "its type"),
        (refused("x.jpg exceeds the maximum upload size for this site."), 200, "upload_refused", "its size"),
        (
            refused("Sorry, you are not allowed to attach files to this post."),
            200,
            "no_permission",
            "its post",
        ),
        ("Sorry, you are not allowed to upload files.", 200, "no_permission", "the account"),
        ("-1", 200, "nonce_expired", "as WordPress before 4.7 said it"),
        ("-1", 403, "nonce_expired", "as it has said since"),
        (
            refused("The uploaded file could not be moved to wp-content/uploads/2026/11."),
            200,
            "out_of_disk",
            "full",
        ),
        (refused("Failed to write file to disk."), 200, "out_of_disk", "PHP's folder for uploads is full"),
        (
            NGINX.replace("502 Bad Gateway", "413 Request Entity Too Large"),
            413,
            "upload_refused",
            "nginx's limit",
        ),
        ("<p>hello</p>", 200, "check_failed", "no answer of the uploader"),
        ("0", 200, "check_failed", "the action is not known"),
        (REST_FATAL, 500, "php_fatal", "it died while making sizes"),
    ],
)
def test_answers_of_the_uploader_are_understood(body: str, status: int, kind: str | None, says: str) -> None:
    found = find_upload_failure(reply(body, status))
    assert (found.kind if found else None) == kind, says


SIZES = {name: {"source_url": f"http://site/a-{name}.jpg"} for name in ("thumbnail", "medium", "large")}
WIDE = {"width": 2560, "height": 1707, "sizes": SIZES, "original_image": "a.jpg"}


@pytest.mark.parametrize(
    ("attachment", "missing", "says"),
    [
        ({"media_details": WIDE, "missing_image_sizes": []}, [], "all are there"),
        (
            {"media_details": WIDE, "missing_image_sizes": ["2048x2048"]},
            ["2048x2048"],
            "the site says what is not",
        ),
        ({"media_details": WIDE}, ["medium_large"], "before 5.3 the usual ones are expected"),
        (
            {"media_details": {"width": 200, "height": 100, "sizes": {"thumbnail": {}}}},
            [],
            "none is made larger",
        ),
        ({"media_details": {}}, ["all"], "not even measured yet"),
        ({}, ["all"], "nothing is said"),
    ],
)
def test_missing_sizes_are_known(attachment: dict[str, object], missing: list[str], says: str) -> None:
    assert missing_sizes(attachment) == missing, says


def test_files_are_those_of_the_sizes_and_the_original() -> None:
    attachment = {"source_url": "http://site/a-scaled.jpg", "media_details": WIDE}
    names = {"a-scaled.jpg", "a.jpg", "a-thumbnail.jpg", "a-medium.jpg", "a-large.jpg"}
    assert {address.rpartition("/")[2] for address in size_files(attachment)} == names
    assert size_files({}) == []


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


@pytest.mark.parametrize(
    ("body", "fine", "says"),
    [
        ('{"id": 1}', True, "an object"),
        ("[]", False, "a list"),
        ('<b>Notice</b>: x {"id": 1}', False, "noise before it"),
        ("", False, "nothing"),
    ],
)
def test_replies_of_rest_are_objects(body: str, fine: bool, says: str) -> None:
    assert (is_object(reply(body)) is None) is fine, says


@pytest.mark.parametrize(
    ("root", "address", "says"),
    [
        ("http://site/wp-json/", "http://site/wp-json/wp/v2/posts?force=true", "pretty permalinks"),
        ("http://site/?rest_route=/", "http://site/?rest_route=/wp/v2/posts&force=true", "plain ones"),
    ],
)
def test_addresses_of_rest_fit_the_permalinks(root: str, address: str, says: str) -> None:
    named = root.replace("/", "\\/")
    assert find_rest_root(reply(f'wp.apiFetch.createRootURLMiddleware( "{named}" )')) == root, says
    assert rest_address(root, "wp/v2/posts", {"force": "true"}) == address, says


def test_a_page_without_the_root_leads_to_what_always_answers() -> None:
    assert find_rest_root(reply("")) == "index.php?rest_route=/"
