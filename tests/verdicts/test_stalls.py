"""On quiet hosts something stands out as seldom as docs/statistics.md says; test-lab-full asks 1,000."""

import math
import os

import pytest

from plimsoll.analysis.report.stalls import ALPHA
from tests.support import stalled_hosts
from tests.verdicts.stalls import FULL, NOTHING, SMALL, named_first

pytestmark = pytest.mark.skipif(
    os.environ.get("PLIMSOLL_LAB") != "1", reason="takes a minute: part of make test-lab (PLIMSOLL_LAB=1)"
)


def _is_rare(alarms: int, runs: int) -> bool:
    """At most the stated share, and two standard errors."""
    return alarms / runs <= ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / runs)


@pytest.mark.parametrize("seconds", [600, 200])
def test_a_quiet_host_seldom_gives_an_alarm(seconds: int) -> None:
    found = named_first(stalled_hosts.quiet, SMALL, seconds, seed=20_000)
    assert _is_rare(SMALL - found[NOTHING], SMALL), found


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seconds", [600, 200])
def test_of_1000_quiet_hosts_hardly_any_gives_an_alarm(seconds: int) -> None:
    found = named_first(stalled_hosts.quiet, FULL, seconds, seed=10_000)
    assert _is_rare(FULL - found[NOTHING], FULL), found
