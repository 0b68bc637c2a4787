"""How often the report says that something stood out in slow windows: the figures of docs/statistics.md.

python -m tests.verdicts.stalls [RUNS]     # 1,000 quiet runs, and 50 of each cause: some minutes

Each run is a run directory that the report reads.
"""

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.support import stalls as hosts
from tests.support.stalls import World, stalls_of_runs, write_stalled

FULL = 1000
NOTHING = "nothing"
Story = Callable[[int, int], World]
CAUSES: dict[str, Story] = {
    "transaction groups": hosts.txg_sync,
    "scrub": hosts.scrub,
    "PHP pool of two": hosts.php_pool,
    "page cache": hosts.page_cache,
    "row lock": hosts.row_lock,
}


def named_first(story: Story, runs: int, seconds: int = 600, seed: int = 0) -> Counter[str]:
    """Return how often each source is named first on so many hosts of a story."""
    found: Counter[str] = Counter()
    for number in range(seed, seed + runs):
        folder = Path(tempfile.mkdtemp(prefix="plimsoll-stalls-"))
        try:
            (stalls,) = stalls_of_runs([write_stalled(folder / "run", story(number, seconds))])
        finally:
            shutil.rmtree(folder)
        found[stalls.standing_out[0].row.said if stalls.standing_out else NOTHING] += 1
    return found


def main() -> None:
    """Print in how many runs something stands out, and what is named first where there is a cause."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else FULL
    for seconds in (600, 200):
        found = named_first(hosts.quiet, runs, seconds, seed=10_000)
        print(f"quiet for {seconds} s: {runs - found[NOTHING]} alarms of {runs}", flush=True)
    for what, story in CAUSES.items():
        for seconds in (600, 300):
            found = named_first(story, max(runs // 20, 1), seconds, seed=10_000)
            print(f"{what}, {seconds} s: {dict(found)}", flush=True)


if __name__ == "__main__":
    main()
