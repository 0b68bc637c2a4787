"""Recognises errors in replies, whose status may be 200. Pure."""

import re
from dataclasses import dataclass

from plimsoll.scenarios.running.reply import Reply

_LONGEST = 200_000  # trouble stands at the start or the end of a page, never deep in an article
_FATAL = re.compile(
    r"<b>(?:PHP )?(?:Fatal|Parse) error</b>|^PHP (?:Fatal|Parse) error:"
    r"|\bUncaught (?:\w*Error|\w*Exception)\b.{0,400}(?:thrown in|Stack trace)"
    r"|There has been a critical error on this website",
    re.S | re.M,
)
_DISK = re.compile(
    r"No space left on device|Errcode: 28\b|[Dd]isk (?:is )?full|not enough (?:free )?(?:disk )?space"
    r"|disk_full|quota exceeded|could not be written to disk|Failed to write file to disk"
)
_DATABASE = re.compile(r"Error establishing a database connection|database server has gone away")
_NONCE = re.compile(
    r"The link you followed has expired|rest_cookie_invalid_nonce|Are you sure you want to do this\?"
)
_FORBIDDEN = re.compile(
    r"[Ss]orry, you are not allowed|need a higher level of permission"
    r"|rest_cannot_\w+|rest_forbidden|rest_not_logged_in"
)
_MAINTENANCE = re.compile(r"Briefly unavailable for scheduled maintenance")
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.S)


@dataclass(frozen=True)
class Trouble:
    """A kind of `errors.json`, and the site's own words."""

    kind: str
    detail: str


def trouble(reply: Reply) -> Trouble | None:
    """Return the trouble in `reply`, or None. A status of 400 or more is always one."""
    text = _ends(reply.text)
    if reply.status in (502, 503, 504) and _by_proxy(reply, text):
        return Trouble("backend_dead", f"status {reply.status} from the proxy: {words(text)}")
    if reply.status == 503 and (_MAINTENANCE.search(text) or reply.headers.get("retry-after") == "600"):
        return Trouble(
            "upgrade_locked",
            f"the site is in maintenance mode: {words(text)} If no upgrade is running, one has broken off: "
            "delete the file .maintenance beside wp-config.php",
        )
    if _DISK.search(text):
        return Trouble("out_of_disk", words(text, _DISK))
    if _FATAL.search(text):
        return Trouble("php_fatal", words(text, _FATAL))
    if _DATABASE.search(text) and reply.status >= 500:
        return Trouble("backend_dead", words(text, _DATABASE))
    if reply.status < 400:
        return None
    if _NONCE.search(text) or (reply.status == 403 and text.strip() == "-1"):
        return Trouble("nonce_expired", words(text, _NONCE))
    if reply.status in (401, 403, 500) and _FORBIDDEN.search(text):
        return Trouble("no_permission", words(text, _FORBIDDEN))
    return Trouble("http_error", f"status {reply.status}: {words(text)}")


def words(html: str, near: re.Pattern[str] | None = None) -> str:
    """Return up to 200 characters of the visible text in `html`, near a match of `near` if there is one."""
    found = near.search(html) if near else None
    if found:
        html = html[max(found.start() - 20, 0) : found.start() + 600]
    return " ".join(_TAGS.sub(" ", html).split())[:200]


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _LONGEST else text[:_LONGEST] + text[-_LONGEST:]


def _by_proxy(reply: Reply, text: str) -> bool:
    server = reply.headers.get("server", "").lower()
    return (
        "varnish" in server
        or "Guru Meditation" in text
        or "Backend fetch failed" in text
        or bool(re.search(r"<center>(?:nginx|openresty)[^<]*</center>", text))
        or ("<html" not in text.lower() and "x-varnish" in reply.headers)
    )
