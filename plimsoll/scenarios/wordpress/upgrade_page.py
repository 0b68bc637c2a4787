"""Reads the pages around a WordPress core upgrade: the offer, the version, the state of the database. Pure.

Nothing here depends on the site's language.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs, urljoin, urlsplit

from plimsoll.scenarios.running.client import Reply, words
from plimsoll.scenarios.wordpress.forms import action, fields

_BODY_VERSION = re.compile(r"(?:^|\s)version-(\d+(?:-\d+)*)(?=\s|$)")
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True)
class Offer:
    """One button of the updates page; not `pressable` where the site's PHP or MySQL is too old for it."""

    version: str
    address: str
    fields: tuple[tuple[str, str], ...]
    pressable: bool
    said: str


@dataclass(frozen=True)
class UpdatePage:
    """The page `wp-admin/update-core.php`: the version that runs (None: not shown) and those on offer."""

    version: str | None
    offers: tuple[Offer, ...]


@dataclass(frozen=True)
class DatabasePage:
    """The page `wp-admin/upgrade.php`; `press` is its button's address, None if nothing is left to do."""

    known: bool
    press: str | None
    said: str


def read_update_page(reply: Reply) -> UpdatePage:
    """Read the updates page; forms that install the present version again are no offers."""
    offers = []
    for form in reply.page.xpath("//form[@name='upgrade']"):
        address = action(reply, form)
        if parse_qs(urlsplit(address).query).get("action") != ["do-core-upgrade"]:
            continue
        sent = fields(form)
        button = form.xpath(".//input[@name='upgrade'] | .//button[@name='upgrade']")
        if button:
            sent.append(("upgrade", str(button[0].get("value") or "")))
        around = form.xpath("ancestor::li[1]") or [form]
        said = " ".join(str(around[0].text_content()).split())[:200]
        offers.append(Offer(dict(sent).get("version", ""), address, tuple(sent), bool(button), said))
    return UpdatePage(version_of(reply), tuple(offers))


def version_of(reply: Reply) -> str | None:
    """Return the version that an admin page runs on, by its body's class (`version-6-1-9`); None if unseen.

    What follows the numbers, as in `6.9-RC1`, is not in the class.
    """
    for body in reply.page.xpath("//body"):
        if found := _BODY_VERSION.search(str(body.get("class") or "")):
            return found[1].replace("-", ".")
    return None


def is_version(text: str) -> bool:
    """Return True if `text` is a version, or the start of one: `6`, `6.1`, `6.1.9`."""
    return bool(_NUMBERS.fullmatch(text))


def fits(version: str, wanted: str) -> bool:
    """Return True if `version` is `wanted` or one of its releases: 6.1.9 fits 6.1, and 6.10 does not."""
    have, want = _numbers(version), _numbers(wanted)
    return have[: len(want)] == want


def same(one: str, other: str) -> bool:
    """Return True if two versions have the same numbers: 6.8 is 6.8.0, and 6.9-RC1 is 6.9."""
    return _trimmed(_numbers(one)) == _trimmed(_numbers(other))


def newer(offers: Iterable[Offer], version: str | None) -> tuple[Offer, ...]:
    """Return the offers that are above `version`."""
    if version is None:
        return tuple(offers)
    return tuple(offer for offer in offers if _numbers(offer.version) > _trimmed(_numbers(version)))


def read_database_page(reply: Reply) -> DatabasePage:
    """Read `wp-admin/upgrade.php`: its one button leads to `step=1` (work to do) or to the site (none)."""
    said = words(reply.text)
    links = [str(link.get("href") or "") for link in reply.page.xpath("//p[contains(@class, 'step')]//a")]
    for link in links:
        address = urljoin(reply.url, link)
        parts = urlsplit(address)
        if parts.path.endswith("/upgrade.php") and parse_qs(parts.query).get("step") == ["1"]:
            return DatabasePage(True, address, said)
    return DatabasePage(bool(links), None, said)


def _numbers(version: str) -> tuple[int, ...]:
    found = _NUMBERS.match(version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


def _trimmed(numbers: tuple[int, ...]) -> tuple[int, ...]:
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers
