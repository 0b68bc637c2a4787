"""Recognises trouble on an installer's pages, whose status is mostly 200. Pure."""

import re
from enum import Enum

from plimsoll.scenarios.running.client import Reply, Trouble, trouble, words
from plimsoll.scenarios.xenforo.form import form_of, seen_text, text_at
from plimsoll.scenarios.xenforo.pages import Pages

# Further words for a full disk, those of MariaDB and MySQL.
_FULL = re.compile(r"The table '[^']*' is full")


class UpgradeStage(Enum):
    """The place in the upgrade at which a page is expected."""

    OPEN = "open"  # the installer's first page
    LOGIN = "login"  # what the login answers
    START = "start"  # what start.path answers
    UPGRADE = "upgrade"  # what the start form or a continue form answers


def judge(pages: Pages, reply: Reply, stage: UpgradeStage) -> Trouble | None:
    """Return the trouble that stops the upgrade at `reply`, or None."""
    found = trouble(reply)
    if found and found.kind not in ("http_error", "no_permission", "nonce_expired"):
        return found
    if reply.location:
        return None
    if box := _error_box(pages, reply):
        return Trouble(_kind_of(pages, box, stage), box)
    if found:
        return found
    if form_of(reply, pages.login.form):
        return _login_again(reply, stage)
    if form_of(reply, pages.continue_.form):
        return None
    if stage is UpgradeStage.UPGRADE:
        return _no_form_left(pages, reply)
    if form_of(reply, pages.start.form) or (pages.start.path and stage is not UpgradeStage.START):
        return None
    text = _text(reply)
    if says(text, pages.texts.up_to_date):
        return Trouble("wrong_version", f"nothing to upgrade: {words(reply.text)}")
    return Trouble(
        "check_failed",
        "neither login.form, start.form nor continue.form of the --installer file is on the page: "
        f"{words(reply.text)}",
    )


def is_locked(pages: Pages, reply: Reply) -> bool:
    """Return True if the page says that another upgrade is running."""
    found = judge(pages, reply, UpgradeStage.UPGRADE)
    return found is not None and found.kind == "upgrade_locked"


def says(text: str, wanted: str | None) -> bool:
    """Return True if `text` contains `wanted`, in any case; False if `wanted` is None."""
    return wanted is not None and wanted.casefold() in text.casefold()


def _error_box(pages: Pages, reply: Reply) -> str:
    return next((text for selector in pages.errors if (text := text_at(reply, selector))), "")


def _kind_of(pages: Pages, box: str, stage: UpgradeStage) -> str:
    if says(box, pages.texts.locked):
        return "upgrade_locked"
    if says(box, pages.texts.expired):
        return "nonce_expired"
    if says(box, pages.texts.up_to_date):
        return "wrong_version"
    if _FULL.search(box):
        return "out_of_disk"
    return "login_failed" if stage is UpgradeStage.LOGIN else "upgrade_failed"


def _login_again(reply: Reply, stage: UpgradeStage) -> Trouble | None:
    if stage is UpgradeStage.OPEN:
        return None
    if stage is UpgradeStage.LOGIN:
        return Trouble("login_failed", f"the login form came back: {words(reply.text)}")
    return Trouble("nonce_expired", "the session is over: the login form came back")


def _no_form_left(pages: Pages, reply: Reply) -> Trouble | None:
    text = _text(reply)
    if says(text, pages.texts.complete):
        return None
    if says(text, pages.texts.locked):
        return Trouble("upgrade_locked", words(reply.text))
    return Trouble(
        "upgrade_failed",
        f"a page without a continue form, and it does not say {pages.texts.complete!r}: {words(reply.text)}",
    )


def _text(reply: Reply) -> str:
    return seen_text(reply.page)
