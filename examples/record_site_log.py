#!/usr/bin/env python3
"""Writes examples/site.log.gz: five minutes of visitors to the site of ``make site SITE_SIZE=small``.

Run it to make the example again: ``make site`` first, then ``python3 examples/record_site_log.py``. Pages,
files, sizes and statuses are the site's own, fetched once each; who comes when is drawn from a seed. Pages
are read far down the list, and some visitors search, each for words of their own: no cache has all of it.
"""

import argparse
import datetime
import gzip
import html.parser
import random
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

SECONDS = 300
VISITS_PER_S = 2.0
MOST_PAGES = 800
BEGIN = datetime.datetime(2026, 11, 20, 20, 0, 0, tzinfo=datetime.UTC)
AGENTS = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0",
    "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)",
    "Mozilla/5.0 (compatible; ExampleBot/2.1; +http://bot.example/)",
]
SYLLABLES = ["ba", "ren", "ko", "lis", "mar", "tun", "ves", "dor", "hal", "pim"]


class Links(html.parser.HTMLParser):
    """The pages that a page links to, and the files that it brings with it."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[str] = []
        self.files: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "a" and found.get("href"):
            self.pages.append(found["href"] or "")
        if tag in ("img", "script") and found.get("src"):
            self.files.append(found["src"] or "")
        if tag == "link" and found.get("rel") == "stylesheet" and found.get("href"):
            self.files.append(found["href"] or "")


class Site:
    """The answers of the site; each target is requested once."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._known: dict[str, tuple[int, bytes]] = {}

    def get(self, target: str) -> tuple[int, bytes]:
        if target not in self._known:
            try:
                with urllib.request.urlopen(self._url + target, timeout=60) as answer:  # noqa: S310 the site's own
                    self._known[target] = (answer.status, answer.read())
            except urllib.error.HTTPError as error:
                self._known[target] = (error.code, error.read())
        return self._known[target]

    def target(self, link: str, page: str) -> str | None:
        """A link's target on this site; None where it leads elsewhere, or is no page."""
        parts = urllib.parse.urlsplit(urllib.parse.urljoin(self._url + page, link))
        elsewhere = f"{parts.scheme}://{parts.netloc}" != self._url
        if elsewhere or "wp-login" in parts.path or "wp-admin" in parts.path:
            return None
        return parts.path + (f"?{parts.query}" if parts.query else "")


def pages_of(site: Site) -> dict[str, list[str]]:
    """Pages, each with its files, in the order in which they are found from the front page."""
    found: dict[str, list[str]] = {}
    waiting = ["/"]
    while waiting and len(found) < MOST_PAGES:
        page = waiting.pop(0)
        if page in found:
            continue
        status, body = site.get(page)
        if status != 200:
            continue
        links = Links()
        links.feed(body.decode("utf-8", errors="replace"))
        found[page] = [f for link in dict.fromkeys(links.files) if (f := site.target(link, page))]
        waiting += [p for link in dict.fromkeys(links.pages) if (p := site.target(link, page))]
    return found


def visit(draw: random.Random, begin_s: float, pages: dict[str, list[str]]) -> list[tuple[float, str, str]]:
    """Return the requests of one visitor: when, for what, and from which page."""
    names = list(pages)
    weights = [1 / (i + 20) for i in range(len(names))]
    asked, seen, at_s, referer = [], set[str](), begin_s, "-"
    for _ in range(draw.randint(1, 4)):
        if draw.random() < 0.03:
            words = ["".join(draw.choices(SYLLABLES, k=3)) for _ in range(2)]
            page, files = f"/?s={'+'.join(words)}", []
        else:
            page = draw.choices(names, weights)[0]
            files = [file for file in pages[page] if file not in seen]
        asked.append((at_s, page, referer))
        asked += [(at_s + 0.2 + 0.05 * i, file, page) for i, file in enumerate(files)]
        seen.update(files)
        referer = page
        at_s += draw.uniform(3, 12)
    return asked


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--url", default="http://127.0.0.1:8080")
    arguments.add_argument("--out", type=Path, default=Path(__file__).with_name("site.log.gz"))
    given = arguments.parse_args()
    site, draw = Site(given.url.rstrip("/")), random.Random(1)
    pages = pages_of(site)
    lines: list[tuple[float, str, str, str, str]] = []
    begin_s = 0.0
    while (begin_s := begin_s + draw.expovariate(VISITS_PER_S)) < SECONDS:
        client = f"10.{draw.randrange(256)}.{draw.randrange(256)}.{draw.randrange(1, 255)}"
        agent = draw.choice(AGENTS)
        lines += [(at_s, client, agent, what, back) for at_s, what, back in visit(draw, begin_s, pages)]
    with gzip.GzipFile(given.out, "wb", mtime=0) as file:
        for at_s, client, agent, target, referer in sorted(lines):
            status, body = site.get(target)
            at = BEGIN + datetime.timedelta(seconds=int(at_s))
            back = "-" if referer == "-" else f"http://site.example{referer}"
            request = f'[{at:%d/%b/%Y:%H:%M:%S +0000}] "GET {target} HTTP/1.1" {status} {len(body)}'
            file.write(f'{client} - - {request} "{back}" "{agent}"\n'.encode())
    print(f"{len(lines)} requests, {len(pages)} pages: {given.out}")


if __name__ == "__main__":
    main()
