"""Judges the pages around a WordPress core upgrade: the offer before it, the result after it. Pure."""

from plimsoll.scenarios.running.client import Reply, Trouble, trouble, words
from plimsoll.scenarios.wordpress.account import logged_out
from plimsoll.scenarios.wordpress.upgrade_page import (
    Offer,
    fits,
    newer,
    read_database_page,
    read_update_page,
    version_of,
)


def choose(page: Reply, from_version: str | None, to_version: str | None) -> Offer | Trouble:
    """Return the offer of the updates page to install, or the reason why there is none."""
    shown = read_update_page(page)
    runs = f"this is WordPress {shown.version}" if shown.version else "this is an unknown WordPress"
    if "/upgrade.php" in page.url:
        return Trouble(
            "wrong_version",
            "the database of this clone is older than its WordPress: finish that upgrade first, at "
            "wp-admin/upgrade.php, or clone again",
        )
    if from_version and not (shown.version and fits(shown.version, from_version)):
        return Trouble(
            "wrong_version", f"{runs}, and not {from_version} (--from-version); nothing was changed"
        )
    offers = newer(shown.offers, shown.version)
    if not offers:
        return Trouble(
            "wrong_version",
            f"{runs}, and it is offered no newer version: it has been upgraded, or it reaches neither "
            "wordpress.org nor a mirror",
        )
    if to_version:
        offers = tuple(offer for offer in offers if fits(offer.version, to_version))
        if not offers:
            there = ", ".join(sorted({offer.version for offer in newer(shown.offers, shown.version)}))
            return Trouble(
                "wrong_version",
                f"{runs}, and it is offered {there}, not {to_version} (--to-version); nothing was changed",
            )
    offer = next((one for one in offers if one.pressable), None)
    return offer or Trouble("check_failed", f"the newer version cannot be installed here: {offers[0].said}")


def offer_trouble(reply: Reply, from_version: str | None, to_version: str | None) -> Trouble | None:
    """Return the reason against the upgrade, or None; a redirect within the admin pages is none."""
    if logged_out(reply):
        return Trouble(
            "login_failed",
            "the site took the login, and asks to log in again: its database stores nothing (disk full?), or "
            "the login was for another address of the site",
        )
    if (found := trouble(reply)) or reply.location:
        return found
    chosen = choose(reply, from_version, to_version)
    return chosen if isinstance(chosen, Trouble) else None


def database_trouble(reply: Reply, *, pressed: bool = False) -> Trouble | None:
    """Return the trouble on `wp-admin/upgrade.php`, or None; once `pressed`, nothing may be left to do."""
    if found := trouble(reply):
        return found
    page = read_database_page(reply)
    if not page.known:
        return Trouble("check_failed", f"wp-admin/upgrade.php says: {page.said or 'nothing'}")
    if pressed and page.press:
        return Trouble("upgrade_failed", f"the database is still the old one: {page.said}")
    return None


def front_trouble(reply: Reply) -> Trouble | None:
    """Return the trouble on the front page, or None."""
    if (found := trouble(reply)) or reply.location:
        return found
    if reply.status != 200 or "<" not in reply.text:
        return Trouble("check_failed", f"the front page is not a page: status {reply.status}")
    return None


def state(reply: Reply) -> str:
    """Return a description of the site after a failed upgrade, from an admin page."""
    if found := trouble(reply):
        return f"now the site has trouble of its own: {found.detail}"
    if logged_out(reply):
        return "now the site asks to log in again"
    if "/upgrade.php" in reply.location:
        return "now its files are new and its database is not"
    version = version_of(reply)
    return f"now the site answers as WordPress {version}" if version else f"now it says: {words(reply.text)}"
