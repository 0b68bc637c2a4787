"""The pages of a WordPress that visitors read first."""

from collections.abc import Callable
from typing import Any

from plimsoll.scenarios.running.client import SiteClient, StepFailedError
from plimsoll.scenarios.running.visits import page_trouble
from plimsoll.scenarios.wordpress.account import ANYWHERE, rest_address

_FEED = "//link[@rel='alternate'][@type='application/rss+xml']/@href"
_NEWEST = {"per_page": "1", "_fields": "link"}


def front_pages(site: SiteClient) -> list[str]:
    """Return the front page, and the newest post and the feed where the site names them."""

    def post() -> Any:
        return site.get("visit", rest_address(ANYWHERE, "wp/v2/posts", _NEWEST)).data[0]["link"]

    def feed() -> Any:
        return site.get("visit", "", check=page_trouble).page.xpath(_FEED)[0]

    return [site.base, *_named(post), *_named(feed)]


def _named(find: Callable[[], Any]) -> list[str]:
    try:
        return [str(find())]
    except (StepFailedError, LookupError, TypeError):
        return []
