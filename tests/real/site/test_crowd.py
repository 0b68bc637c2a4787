"""10,000 users at once on the small site: each is let in, and has an answer or waits for it at the end."""

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.programs import LONGEST_S, REPLAY, ROOT, eventually, need
from tests.support.site import Site

USERS = 10_000
ARRIVE_S = 10
STAY_S = 30
REUSED = 1  # of a record's flags


@pytest.fixture
def busy(site_block: Site) -> Iterator[Site]:
    """The site; what the crowd has left Varnish and PHP to do is dropped afterwards."""
    yield site_block
    for role in ("varnish", "php"):  # one at a time, so that each gets its own address back
        site_block.stop(role)
        site_block.start(role)
    assert eventually(lambda: _serves(site_block)), site_block.logs()


def _serves(site: Site) -> bool:
    try:
        return site.browser().ask("/wp-login.php").status == 200
    except OSError:
        return False


@pytest.mark.slow
def test_ten_thousand_users_are_let_in(busy: Site, tmp_path: Path) -> None:
    log = ROOT / "examples" / "site.log.gz"
    command = [need(REPLAY), "run", str(log), "--target", busy.url, "--users", str(USERS)]
    command += ["--ramp-up", f"{ARRIVE_S}s", "--timeout", "10m", "--out", str(tmp_path), "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as crowd:
        time.sleep(ARRIVE_S + STAY_S)
        for _ in range(2):  # nobody comes any more; who waits, leaves
            crowd.send_signal(signal.SIGINT)
            time.sleep(1)
        _, said = crowd.communicate(timeout=LONGEST_S)
    run = tmp_path / "latest"
    assert json.loads((run / "run.json").read_text())["status"] == "interrupted", said
    requests = np.load(run / "requests.npy")
    kinds = json.loads((run / "errors.json").read_text())
    ends = Counter(kinds[error] for error in requests["error"].tolist())
    assert ends.keys() <= {"none", "aborted"}, (ends, said, busy.logs())
    assert ends["none"] > 0, (ends, said, busy.logs())
    assert len(np.unique(requests["client"])) == USERS, "all of them came"
    connected = (requests["connect_us"] > 0) | (requests["flags"] & REUSED > 0)
    assert connected.all(), "who waits, waits for an answer"
    statuses = Counter(requests["status"][requests["error"] == 0].tolist())
    assert max(statuses) < 500, ("no role refused another", statuses, busy.logs())
