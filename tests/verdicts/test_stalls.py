"""On a thousand quiet hosts something stands out as seldom as docs/statistics.md says."""

import math

import pytest

from plimsoll.analysis.report.sections.slow_windows import ALPHA
from tests.support import stalls as hosts
from tests.verdicts.stalls import FULL, NOTHING, named_first


def _is_rare(alarms: int, runs: int) -> bool:
    """At most the stated share, and two standard errors."""
    return alarms / runs <= ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / runs)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seconds", [600, 200])
def test_of_1000_quiet_hosts_hardly_any_gives_an_alarm(seconds: int) -> None:
    found = named_first(hosts.quiet, FULL, seconds, seed=10_000)
    assert _is_rare(FULL - found[NOTHING], FULL), found
