"""A replay against a real nginx: its new log must be the old one again; and what its cache answered."""

import json
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from plimsoll.rundir.records import SERVED
from tests.support.programs import ACCESS_LOG, PLIMSOLL, Replay, open_to_all
from tests.support.rundir import load_records
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


CACHING = """
daemon off; pid {root}/nginx.pid; error_log {root}/error.log; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  log_format answers '$request_uri\\t$upstream_cache_status';
  client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3;
  uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
  proxy_cache_path {root}/cache keys_zone=pages:1m;
  server {{
    listen {address}:{port}; access_log {root}/access.log answers;
    add_header X-Cache-Status $upstream_cache_status always;
    location / {{
      proxy_pass http://{address}:{port}/origin/; proxy_cache pages; proxy_cache_key $uri$is_args$args;
      proxy_cache_valid any 1s; proxy_cache_bypass $arg_fresh; proxy_no_cache $arg_fresh;
    }}
    location /origin/ {{ access_log off; alias {root}/www/; try_files $uri /origin/page.html; }}
    location = /uncached {{ return 204; }}
  }}
}}
"""
# What nginx calls it, and what its header is taken for; `-`: it was not asked.
CALLED = {"HIT": "hit", "MISS": "miss", "BYPASS": "pass", "EXPIRED": "expired", "-": "unknown"}


def test_what_answered_is_what_a_cache_logs_and_one_on_one_side_forbids_a_verdict(
    nginx: Nginx, replay: Replay, tmp_path: Path
) -> None:
    asked = [
        path for each in range(40) for path in ("/", f"/?page={each}", "/?fresh=1", "/uncached", "/page.html")
    ]
    line = '192.0.2.{} - - [20/Nov/2026:10:00:00 +0000] "GET {} HTTP/1.1" 200 1024 "-" "{}"\n'
    log = tmp_path / "access.log"
    log.write_text("".join(line.format(n % 9, path, n % 9) for n, path in enumerate(asked)))
    folder = tmp_path / "caching"
    folder.mkdir()
    open_to_all(folder)
    caching = Nginx(folder, setup=CACHING)
    sides = []
    for name, server in (("cached", caching), ("bare", nginx)):
        done = replay(str(log), "--target", server.url, "--rate", "80", "--backend", name)
        assert done.returncode == 0, done.stderr
        sides.append((tmp_path / "results" / "latest").resolve())
        server.stop()

    records = load_records(sides[0])
    noted = Counter(
        (asked[line - 1], SERVED[by])
        for line, by in zip(records["line"].tolist(), records["served"].tolist(), strict=True)
    )
    rows = [line.split("\t") for line in caching.log.read_text().splitlines()]
    assert noted == Counter((target, CALLED[status]) for target, status in rows)
    assert {by for _, by in noted} == set(SERVED), "and all five were there"

    command: list[str | Path] = [PLIMSOLL, "compare", *sides, "--json"]
    compared = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert compared.returncode == 3, compared.stderr
    assert "cache-in-front" in [each["name"] for each in json.loads(compared.stdout)["findings"]]
