"""Access logs made up by a seeded generator: the same on every machine, and like real ones where it matters.

What matters: many addresses, agents of very different lengths, paths of which few are popular, sizes over
five orders of magnitude, referers that are often absent.
"""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.paths import DATA
from plimsoll.common.files import open_replacement

SEED = 20261120
_START = datetime(2026, 11, 1, tzinfo=UTC)

_SYSTEMS = (
    "Windows NT 10.0; Win64; x64",
    "Macintosh; Intel Mac OS X 10_15_7",
    "X11; Linux x86_64",
    "Linux; Android 14; Pixel 8",
    "iPhone; CPU iPhone OS 17_5 like Mac OS X",
)
_ROBOTS = (
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "curl/8.5.0",
    "-",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
)
_WORDS = (
    *("storage", "tail", "latency", "disk", "pool", "snapshot", "mirror", "index"),
    *("backup", "kernel", "forum", "thread", "page", "reply", "image"),
)
_STATUSES = (200, 304, 404, 301, 302, 206, 403, 500, 499, 405)
_STATUS_WEIGHTS = (820, 70, 45, 25, 15, 10, 6, 4, 3, 2)


def combined_line(
    address: str,
    at: datetime,
    path: str,
    status: int,
    size: int,
    referer: str,
    agent: str,
    version: str = "HTTP/1.1",
) -> str:
    stamp = at.strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'{address} - - [{stamp}] "GET {path} {version}" {status} {size or "-"} "{referer}" "{agent}"\n'


def realistic(lines: int) -> Iterator[str]:
    """About 12 requests a second over as long as the lines last."""
    dice = random.Random(SEED)
    addresses = [_address(dice) for _ in range(60_000)]
    agents = [_agent(dice) for _ in range(3_000)]
    paths = [_path(dice) for _ in range(20_000)]
    referers = ["-"] * 4_000 + [f"https://www.example.org{path}" for path in paths[:6_000]]
    methods = random.Random(SEED + 1).choices(("GET", "POST", "HEAD"), (94, 5, 1), k=lines)
    statuses = dice.choices(_STATUSES, _STATUS_WEIGHTS, k=lines)
    at, stamp = _START, ""
    for i in range(lines):
        if i % 12 == 0:
            at += timedelta(seconds=1)
            stamp = at.strftime("%d/%b/%Y:%H:%M:%S +0000")
        # A power of a uniform number makes few addresses and paths popular and leaves a long tail.
        address = addresses[int(60_000 * dice.random() ** 2)]
        path = paths[int(20_000 * dice.random() ** 3)]
        agent = agents[int(3_000 * dice.random() ** 2)]
        size = 0 if statuses[i] == 304 else int(dice.lognormvariate(8.5, 1.8))
        referer = referers[int(10_000 * dice.random())]
        request = f"{methods[i]} {path} HTTP/1.{'1' if size & 15 else '0'}"
        yield f'{address} - - [{stamp}] "{request}" {statuses[i]} {size} "{referer}" "{agent}"\n'


def same_url(lines: int, path: str, clients: int, version: str = "HTTP/1.1") -> Iterator[str]:
    """One URL again and again, by many clients in turn, a thousand a second."""
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
    for i in range(lines):
        client = i % clients
        address = f"10.{client >> 16}.{client >> 8 & 255}.{client & 255}"
        at = _START + timedelta(seconds=i // 1000)
        yield combined_line(address, at, path, 200, 1024, "-", agent, version)


def different(lines: int, folder: str, clients: int) -> Iterator[str]:
    """So many different targets below a folder, by clients with an agent each, from many pages."""
    dice = random.Random(SEED)
    visitors = [(_address(dice), _agent(dice)) for _ in range(clients)]
    referers = [f"https://www.example.org{_path(dice)}" for _ in range(6_000)]
    for i in range(lines):
        address, agent = visitors[i % clients]
        target = f"{folder}{i}{_path(dice)}"
        at = _START + timedelta(seconds=i // 1000)
        yield combined_line(address, at, target, 200, 1024, dice.choice(referers), agent)


def sessions(
    clients: int, requests_each: int, path: str, pauses_s: tuple[int, int], arriving_s: int = 60
) -> Iterator[str]:
    """Visitors who come over some time and ask for some pages each, with pauses of whole seconds in between.

    bin/replay gathers visits from 131,072 lines at a time, and one that goes on past them is two: many
    visitors are to come over so long that few of them do.
    """
    dice = random.Random(SEED)
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
    visits = []
    for client in range(clients):
        second = dice.randrange(arriving_s)
        for page in range(requests_each):
            visits.append((second, client, page))
            second += dice.randint(*pauses_s)
    for second, client, page in sorted(visits):
        address = f"10.{client >> 16}.{client >> 8 & 255}.{client & 255}"
        yield combined_line(
            address, _START + timedelta(seconds=second), f"{path}?page={page}", 200, 1024, "-", agent
        )


def kept(name: str, make: Callable[[], Iterator[str]]) -> Path:
    """The log of that name, made if it is not there whole. The name says what is in it, with all numbers."""
    path = DATA / name
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        with open_replacement(path) as file:
            file.writelines(line.encode() for line in make())
    return path


def warm(log: Path) -> None:
    """Read it into the page cache, so that all who parse it find it there."""
    with log.open("rb") as file:
        while file.read(1 << 20):
            pass


def _address(dice: random.Random) -> str:
    if dice.random() < 0.1:
        return "2001:db8:" + ":".join(f"{dice.getrandbits(16):x}" for _ in range(6))
    return f"{dice.randint(1, 223)}.{dice.randrange(256)}.{dice.randrange(256)}.{dice.randint(1, 254)}"


def _agent(dice: random.Random) -> str:
    if dice.random() < 0.2:
        return dice.choice(_ROBOTS)
    version = f"{dice.randint(90, 140)}.0.{dice.randint(1000, 9999)}.{dice.randint(10, 200)}"
    system = dice.choice(_SYSTEMS)
    return f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{version} Safari/537.36"


def _path(dice: random.Random) -> str:
    slug = "-".join(dice.choices(_WORDS, k=dice.randint(2, 6)))
    kind = dice.random()
    if kind < 0.45:
        return f"/{dice.randint(2015, 2026)}/{dice.randint(1, 12):02d}/{slug}/"
    if kind < 0.75:
        sizes = f"{dice.choice((300, 768, 1024))}x{dice.choice((200, 512, 683))}"
        return f"/wp-content/uploads/{slug}-{sizes}.{dice.choice(('jpg', 'png', 'webp'))}"
    if kind < 0.9:
        return (
            f"/wp-includes/{slug}.{dice.choice(('js', 'css'))}?ver={dice.randint(4, 6)}.{dice.randint(0, 9)}"
        )
    return f"/search?q={slug.replace('-', '+')}&page={dice.randint(1, 40)}"
