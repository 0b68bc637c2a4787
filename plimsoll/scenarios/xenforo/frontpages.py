"""The pages of a forum that guests read first."""

from urllib.parse import urljoin

from plimsoll.scenarios.running.client import SiteClient

_LISTS, _THREADS = "forums/", "threads/"


def front_pages(site: SiteClient, installer: str) -> list[str]:
    """Return the forum's index, and its first board and thread where it names them.

    `installer` is the path of the installer, which lies in a folder of the forum. Raises StepFailedError.
    """
    index = urljoin(urljoin(site.base, installer.lstrip("/")), "..")
    pages = [index]
    for part in (_LISTS, _THREADS):
        if link := _first_link(site, pages[-1], part):
            pages.append(link)
    return pages


def _first_link(site: SiteClient, page: str, part: str) -> str | None:
    found = site.get("visit", page, base=site.base, check=lambda _: None).page.xpath("//a/@href")
    links = (urljoin(page, str(href)) for href in found)
    return next((link for link in links if part in link), None)
