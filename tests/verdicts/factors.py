"""How often factors are found to do something where nothing does: the figures of docs/statistics.md.

python -m tests.verdicts.factors [EXPERIMENTS]
"""

import math
import sys

from tests.support.trials import LEVELS, nothing, tells_an_effect, trials

# What it is, how much of a disturbance lasts into the next run, and whether every second repeat goes back.
KINDS = [
    ("runs are independent", 0.0, True),
    ("half of a disturbance lasts into the next run", 0.5, True),
    ("the same, with order: random", 0.5, False),
]


def main() -> None:
    """Print a line a kind: how many of so many experiments found an effect."""
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for what, lasting, mirrored in KINDS:
        wrong = 0
        for seed in range(many):
            found = trials(seed, LEVELS, nothing, lasting=lasting, mirrored=mirrored)
            wrong += tells_an_effect(found, LEVELS)
        share = wrong / many
        error = math.sqrt(share * (1 - share) / many)
        print(f"{what}: {share:.1%} (standard error {error:.1%}) of {many:,}", flush=True)


if __name__ == "__main__":
    main()
