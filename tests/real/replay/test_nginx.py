"""A replay against a real nginx: its new access log must be the old one again."""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from tests.support.programs import ACCESS_LOG, Replay
from tests.support.servers import Asked, Nginx, logged, received


def test_the_new_log_is_the_old_one_and_keeps_the_schedule(
    nginx: Nginx, replay: Replay, tmp_path: Path
) -> None:
    done = replay(str(ACCESS_LOG), "--target", nginx.url, "--speed", "5")
    assert done.returncode == 0, done.stderr
    nginx.stop()

    old = logged(ACCESS_LOG)
    new = received(nginx.log)
    assert Counter(key for _, key in new) == Counter(key for key in old if key)

    # When each kind of request arrived, against when it was due.
    requests = np.load(tmp_path / "results" / "latest" / "requests.npy")
    due: dict[Asked, list[float]] = defaultdict(list)
    for due_ns, line in zip(requests["due_ns"].tolist(), requests["line"].tolist(), strict=True):
        key = old[line - 1]
        assert key
        due[key].append(due_ns / 1e9)
    arrived: dict[Asked, list[float]] = defaultdict(list)
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
    done = replay(str(ACCESS_LOG), "--target", nginx.url, "--speed", "10", "--limit", "2000")
    assert done.returncode == 0, done.stderr
    nginx.stop()
    agents: dict[str, set[str]] = defaultdict(set)
    for line in nginx.log.read_text().splitlines():
        _, _, _, agent, _, connection = line.split("\t")
        agents[connection].add(agent)
    assert len(agents) > 50
    assert all(len(seen) == 1 for seen in agents.values()), "a connection was shared between clients"
