"""Logs in to WordPress, and recognises a lost login."""

import re
from collections.abc import Callable
from typing import TypeVar

from plimsoll.scenarios.running.client import (
    Check,
    Reply,
    SiteClient,
    StepFailedError,
    Trouble,
    trouble,
    words,
)
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.running.settings import SiteSettings
from plimsoll.scenarios.wordpress.forms import action, fields, form_at
from plimsoll.scenarios.wordpress.turn import login_turn

_LOGIN_FORM = "//form[@id='loginform'] | //form[.//input[@name='log'] and .//input[@name='pwd']]"
_NONCE = re.compile(r"[\w-]{4,64}")
_LOST = "the site asks to log in again"
T = TypeVar("T")


def log_in(site: SiteClient, who: Credentials, step: str = "log in") -> None:
    """Log in as a browser does: the form first, for its cookie. Two requests: `STEP: form` and `STEP`.

    Before the second it waits while anybody else here logs in to that account. Raises StepFailedError; of
    kind login_failed, with the site's words, it is hopeless.
    """
    shown = site.get_page(f"{step}: form", who.login_path or "wp-login.php", check=_has_form)
    form = form_at(shown, _LOGIN_FORM)
    typed = {"log": who.user, "pwd": who.password, "wp-submit": "Log In", "testcookie": "1"}

    def check(reply: Reply) -> Trouble | None:
        found = trouble(reply) or _login_trouble(reply)
        # A site may echo the form: keep the password out of the run directory.
        return Trouble(found.kind, found.detail.replace(who.password, "REDACTED")) if found else None

    try:
        with login_turn(site.base, who.user):
            site.post(step, action(shown, form), base=shown.url, data=fields(form, typed), check=check)
    except StepFailedError as error:
        hopeless = error.hopeless or error.kind == "login_failed"
        raise StepFailedError(error.step, error.kind, error.detail, hopeless=hopeless) from None


def try_login(settings: SiteSettings, who: Credentials) -> None:
    """Log in on connections whose requests nobody records. Raises StepFailedError."""
    site = SiteClient(settings, lambda _: None)
    try:
        log_in(site, who)
    finally:
        site.close()


def rest_nonce(site: SiteClient, step: str = "nonce") -> str:
    """Return the nonce that goes into the header X-WP-Nonce of REST requests. Raises StepFailedError."""

    def check(reply: Reply) -> Trouble | None:
        if logged_out(reply) or reply.text.strip() in ("0", "-1"):
            return Trouble("login_failed", _LOST)
        if found := trouble(reply):
            return found
        return None if _NONCE.fullmatch(reply.text.strip()) else Trouble("check_failed", words(reply.text))

    return site.get(step, "wp-admin/admin-ajax.php?action=rest-nonce", check=check).text.strip()


def logged_out(reply: Reply) -> bool:
    """Return True if the reply redirects to the login form: the cookie is lost or no longer valid."""
    return "wp-login.php" in reply.location or "reauth=1" in reply.location  # the latter wherever the form is


def expect_logged_in(check: Check = trouble) -> Check:
    """Return `check` that also finds a lost login, as kind login_failed."""

    def with_login(reply: Reply) -> Trouble | None:
        return Trouble("login_failed", _LOST) if logged_out(reply) else check(reply)

    return with_login


def with_login(site: SiteClient, who: Credentials, act: Callable[[], T]) -> T:
    """Return the result of `act`; if the login was lost, log in again and repeat it once."""
    try:
        return act()
    except StepFailedError as error:
        if error.kind != "login_failed" or error.hopeless:
            raise
    log_in(site, who)
    return act()


def _has_form(reply: Reply) -> Trouble | None:
    if (found := trouble(reply)) or reply.location:
        return found
    if form_at(reply, _LOGIN_FORM) is None:
        return Trouble(
            "check_failed", f"no login form: {words(reply.text)} (Was the login moved? --login-path)"
        )
    return None


def _login_trouble(reply: Reply) -> Trouble | None:
    """Return the reason for a failed login, or None."""
    # After a success some sites ask for the administrator's address first; the cookie is valid already.
    if reply.status == 302 and "logged_in" in reply.headers.get("set-cookie", ""):
        return None
    said = reply.page.xpath("//*[@id='login_error']")
    detail = " ".join(said[0].text_content().split()) if said else words(reply.text)
    return Trouble("login_failed", detail or f"status {reply.status}, but no cookie came")
