"""A replay against a real nginx: its new access log must be the old one again."""

import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from tests.support.programs import ROOT, Replay
from tests.support.servers import Nginx

LOG = ROOT / "examples" / "access.log"
# Independent of Plimsoll's parser: what nginx escaped in the old log it escapes in the new one alike.
LINE = re.compile(r'^\S+ - - \[[^]]*\] "((?:GET|HEAD) \S+ HTTP/1\.[01])" \d+ \d+ "(.*)" "(.*)"$')

Key = tuple[str, str, str]  # request line, referer, user agent


def logged(path: Path) -> list[Key | None]:
    """What each line of the old log asked for, by path; None where it cannot be replayed."""
    found = [LINE.match(line) for line in path.read_text().splitlines()]
    return [(re.sub(r" http://[^/ ]+", " ", m[1]), m[2], m[3]) if m else None for m in found]


def received(path: Path) -> list[tuple[float, Key]]:
    """Instant in seconds and request of each line of the new log."""
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    return [(float(row[0]), (row[1], row[2], row[3])) for row in rows]


def test_the_new_log_is_the_old_one_and_keeps_the_schedule(
    nginx: Nginx, replay: Replay, tmp_path: Path
) -> None:
    done = replay(str(LOG), "--target", nginx.url, "--speed", "5")
    assert done.returncode == 0, done.stderr
    nginx.stop()

    old = logged(LOG)
    new = received(nginx.log)
    assert Counter(key for _, key in new) == Counter(key for key in old if key)

    # When each kind of request arrived, against when it was due.
    requests = np.load(tmp_path / "results" / "latest" / "requests.npy")
    due: dict[Key, list[float]] = defaultdict(list)
    for due_ns, line in zip(requests["due_ns"].tolist(), requests["line"].tolist(), strict=True):
        key = old[line - 1]
        assert key
        due[key].append(due_ns / 1e9)
    arrived: dict[Key, list[float]] = defaultdict(list)
    for instant, key in new:
        arrived[key].append(instant)
    pairs = [pair for key in due for pair in zip(sorted(due[key]), sorted(arrived[key]), strict=True)]
    due_s, arrived_s = np.array(sorted(pairs)).T
    offset = arrived_s - due_s - np.median(arrived_s - due_s)
    # The shape of the schedule, not how fast this machine is: nine of ten are off by less than a twentieth of
    # the run, where a schedule that was ignored would be off by a good part of it; and there is no drift.
    span = due_s[-1] - due_s[0]
    assert np.quantile(np.abs(offset), 0.9) < span / 20
    slope = np.polyfit(due_s, arrived_s, 1)[0]
    assert abs(slope - 1) < 0.05


def test_each_client_has_its_own_connections(nginx: Nginx, replay: Replay) -> None:
    done = replay(str(LOG), "--target", nginx.url, "--speed", "10", "--limit", "2000")
    assert done.returncode == 0, done.stderr
    nginx.stop()
    agents: dict[str, set[str]] = defaultdict(set)
    for line in nginx.log.read_text().splitlines():
        _, _, _, agent, _, connection = line.split("\t")
        agents[connection].add(agent)
    assert len(agents) > 50
    assert all(len(seen) == 1 for seen in agents.values()), "a connection was shared between clients"
