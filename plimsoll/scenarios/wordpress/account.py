"""An account at work on WordPress: the forms of its pages, the login, REST with the login's nonce."""

import errno
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, TypeVar
from urllib.parse import urlencode, urljoin

import gevent

from plimsoll.scenarios.running.access import hide_secrets
from plimsoll.scenarios.running.client import (
    Check,
    Reply,
    SiteClient,
    StepFailedError,
    StepFailure,
    find_failure,
    visible_text,
)
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.running.settings import SiteSettings

# What a scenario creates, and the collection of the REST interface that has it.
KINDS = {"post": "posts", "media": "media"}

# Answers whatever the site's permalinks are.
ANYWHERE = "index.php?rest_route=/"
T = TypeVar("T")
_LOGIN_FORM = "//form[@id='loginform'] | //form[.//input[@name='log'] and .//input[@name='pwd']]"
_NONCE = re.compile(r"[\w-]{4,64}")
_LOST = "the site asks to log in again"
_ROOT = re.compile(r"""createRootURLMiddleware\(\s*(["'])(.+?)\1""")
_LOOK_S = 0.02
_MOST_S = 120.0  # longer than a login takes on any disk that can be used
_BUTTONS = ("submit", "button", "image", "reset", "file")
# Of a WordPress too old to say what is missing (before 5.3); each only where the image is larger.
_USUAL = {"thumbnail": 150, "medium": 300, "medium_large": 768, "large": 1024}


def log_in(site: SiteClient, who: Credentials, step: str = "log in") -> None:
    """Log in as a browser does: the form first, for its cookie. Two requests: `STEP: form` and `STEP`.

    Before the second it waits while anybody else here logs in to that account. Raises StepFailedError; of
    kind login_failed, with the site's words, it is hopeless.
    """
    shown = site.get_page(f"{step}: form", who.login_path or "wp-login.php", check=_check_form)
    form = find_form(shown, _LOGIN_FORM)
    typed = {"log": who.user, "pwd": who.password, "wp-submit": "Log In", "testcookie": "1"}

    def check(reply: Reply) -> StepFailure | None:
        found = find_failure(reply) or _find_login_failure(reply)
        # A site may echo the form: keep the password out of the run directory.
        return StepFailure(found.kind, hide_secrets(found.detail, [who.password])) if found else None

    try:
        with login_turn(site.base, who.user):
            site.post(step, form_address(shown, form), base=shown.url, data=fields(form, typed), check=check)
    except StepFailedError as error:
        hopeless = error.hopeless or error.kind == "login_failed"
        raise StepFailedError(error.step, error.kind, error.detail, hopeless=hopeless) from None


def _check_form(reply: Reply) -> StepFailure | None:
    if (found := find_failure(reply)) or reply.location:
        return found
    if find_form(reply, _LOGIN_FORM) is None:
        return StepFailure(
            "check_failed", f"no login form: {visible_text(reply.text)} (Was the login moved? --login-path)"
        )
    return None


def _find_login_failure(reply: Reply) -> StepFailure | None:
    # After a success some sites ask for the administrator's address first; the cookie is valid already.
    if reply.status == 302 and "logged_in" in reply.headers.get("set-cookie", ""):
        return None
    said = reply.page.xpath("//*[@id='login_error']")
    detail = " ".join(said[0].text_content().split()) if said else visible_text(reply.text)
    return StepFailure("login_failed", detail or f"status {reply.status}, but no cookie came")


@contextmanager
def login_turn(site: str, user: str) -> Iterator[None]:
    """Wait until nobody else logs in as `user` to `site`, and keep others waiting meanwhile.

    WordPress keeps all logins of an account in one record, and forgets one of two at the same instant: of two
    users here, or of two scenarios that load one clone together. The turn is an address of unix(7) in the
    abstract namespace, which one socket at a time can have, and which is free again however its process ends.
    """
    address = "\0plimsoll-login-" + sha256(f"{site}\n{user}".encode()).hexdigest()
    until_s = time.monotonic() + _MOST_S
    with socket.socket(socket.AF_UNIX) as mine:
        while time.monotonic() < until_s:
            try:
                mine.bind(address)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:  # no such namespace: not Linux
                    break
            gevent.sleep(_LOOK_S)
        yield


def try_login(settings: SiteSettings, who: Credentials) -> None:
    """Log in on connections whose requests nobody records. Raises StepFailedError."""
    site = SiteClient(settings, lambda _: None)
    try:
        log_in(site, who)
    finally:
        site.close()


def retry_logged_in(site: SiteClient, who: Credentials, act: Callable[[], T]) -> T:
    """Return the result of `act`; if the login was lost, log in again and repeat it once."""
    try:
        return act()
    except StepFailedError as error:
        if error.kind != "login_failed" or error.hopeless:
            raise
    log_in(site, who)
    return act()


def is_logged_out(reply: Reply) -> bool:
    """Return True if the reply redirects to the login form: the cookie is lost or no longer valid."""
    return "wp-login.php" in reply.location or "reauth=1" in reply.location  # the latter wherever the form is


def expect_logged_in(check: Check = find_failure) -> Check:
    """Return `check` that also finds a lost login, as kind login_failed."""

    def with_login(reply: Reply) -> StepFailure | None:
        return StepFailure("login_failed", _LOST) if is_logged_out(reply) else check(reply)

    return with_login


def rest_nonce(site: SiteClient, step: str = "nonce") -> str:
    """Return the nonce that goes into the header X-WP-Nonce of REST requests. Raises StepFailedError."""

    def check(reply: Reply) -> StepFailure | None:
        if is_logged_out(reply) or reply.text.strip() in ("0", "-1"):
            return StepFailure("login_failed", _LOST)
        if found := find_failure(reply):
            return found
        return (
            None
            if _NONCE.fullmatch(reply.text.strip())
            else StepFailure("check_failed", visible_text(reply.text))
        )

    return site.get(step, "wp-admin/admin-ajax.php?action=rest-nonce", check=check).text.strip()


class Rest:
    """A client of the REST interface, for a user who is logged in."""

    def __init__(self, site: SiteClient, who: Credentials, root: str = ANYWHERE) -> None:
        self.root = root
        self._site, self._who, self._nonce = site, who, ""

    def renew(self) -> None:
        """Ask for a nonce; log in again where the login was lost. Raises StepFailedError."""
        self._nonce = retry_logged_in(self._site, self._who, lambda: rest_nonce(self._site))

    def get(self, step: str, path: str, query: Mapping[str, str], check: Check | None = None) -> Reply:
        """Send a GET; see `send`."""
        return self.send(step, "GET", path, query=query, check=check)

    def send(
        self,
        step: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        json: Any = None,
        check: Check | None = None,
        client: SiteClient | None = None,
        **further: Any,
    ) -> Reply:
        """Send one request and return its reply, whose body is a JSON object unless `check` wants another.

        PUT and DELETE go as a POST that says so, as the editor sends them: many proxies let no other through.
        A nonce that has expired is renewed and the request sent once more; both are recorded. `client` is
        another client of the same visitor, to send it with. Raises StepFailedError.
        """
        if not self._nonce:
            self.renew()
        address = rest_address(self.root, path, query)
        headers = {"Accept": "application/json, */*;q=0.1"}
        if method in ("PUT", "DELETE"):
            headers["X-HTTP-Method-Override"], method = method, "POST"

        def once() -> Reply:
            return (client or self._site).send(
                step,
                method,
                address,
                base=self._site.base,
                headers=headers | {"X-WP-Nonce": self._nonce},
                json=json,
                check=check or is_object,
                **further,
            )

        return retry_renewed(once, self.renew)

    def delete(self, step: str, kind: str, number: int) -> None:
        """Delete a post or an image, one of `KINDS`, for good, with its files and revisions."""
        self.send(step, "DELETE", f"wp/v2/{KINDS[kind]}/{number}", query={"force": "true"})


def find_rest_root(page: Reply) -> str:
    """Return the address of the interface that an editor's page names, else one that always answers. Pure."""
    found = _ROOT.search(page.text)
    return found[2].replace("\\/", "/") if found else ANYWHERE


def rest_address(root: str, path: str, query: Mapping[str, str] | None = None) -> str:
    """Return the address of `path`, such as `wp/v2/posts`, under `root`. Pure."""
    address = root + path
    if not query:
        return address
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"


def retry_renewed(act: Callable[[], Reply], renew: Callable[[], None]) -> Reply:
    """Return the result of `act`; if its nonce has expired, `renew` and repeat it once."""
    try:
        return act()
    except StepFailedError as error:
        if error.kind not in ("nonce_expired", "login_failed") or error.hopeless:
            raise
    renew()
    return act()


def is_object(reply: Reply) -> StepFailure | None:
    """Return the failure in a reply that is not a success with a JSON object, or None."""
    if found := find_failure(reply):
        return found
    if reply.status in (200, 201) and isinstance(reply.data, dict):
        return None
    if reply.location:
        return StepFailure("check_failed", f"status {reply.status} leads to {reply.location}")
    return StepFailure(
        "check_failed", f"status {reply.status} and no JSON object: {visible_text(reply.text)}"
    )


def attachment_number(reply: Reply) -> int | None:
    """Return the number that an upload's reply gives to the image, also where the reply is an error. Pure."""
    number = reply.headers.get("x-wp-upload-attachment-id", "")
    return int(number) if number.isdigit() else None


def missing_sizes(attachment: dict[str, Any]) -> list[str]:
    """Return the names of the sizes that are still to be made. Pure.

    WordPress says so itself since 5.3; of an older one the usual sizes are expected.
    """
    details = attachment.get("media_details")
    if not isinstance(details, dict) or not details.get("width"):
        return ["all"]
    said = attachment.get("missing_image_sizes")
    if isinstance(said, list):
        return [str(name) for name in said]
    sizes = details.get("sizes")
    there = sizes if isinstance(sizes, dict) else {}
    largest = max(int(details["width"]), int(details.get("height") or 0))
    return [name for name, side in _USUAL.items() if side < largest and name not in there]


def find_form(reply: Reply, xpath: str) -> Any | None:
    """Return the first form element that `xpath` finds in the page, or None."""
    found = reply.page.xpath(xpath)
    return found[0] if found else None


def fields(form: Any, given: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Return the fields of `form` that a browser would send if its user had filled in only those `given`.

    Pairs of name and value, in the form's order; buttons and files are left out.
    """
    given = given or {}
    sent = []
    for element in form.xpath(".//input | .//textarea | .//select"):
        name, kind = str(element.get("name") or ""), (element.get("type") or "").lower()
        if not name or name in given or element.get("disabled") is not None or kind in _BUTTONS:
            continue
        if kind in ("checkbox", "radio") and element.get("checked") is None:
            continue
        sent.append((name, _field_value(element, kind)))
    return sent + list(given.items())


def form_address(reply: Reply, form: Any) -> str:
    """Return the absolute address that `form` is sent to."""
    return urljoin(reply.url, (form.get("action") or "").strip()) or reply.url


def _field_value(element: Any, kind: str) -> str:
    if element.tag == "textarea":
        return str(element.text_content()).removeprefix("\n")
    if element.tag == "select":
        chosen = element.xpath(".//option[@selected]") or element.xpath(".//option")
        return str(chosen[0].get("value") or "") if chosen else ""
    return str(element.get("value") or ("on" if kind in ("checkbox", "radio") else ""))
