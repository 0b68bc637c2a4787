"""The rules of what pools did beside a run."""

from plimsoll.analysis.evidence.rule import Rule
from plimsoll.common.errors import Severity

SCANNED = Rule(
    "pool-scanned",
    Severity.BAD,
    "A scrub or a resilver of the pool ran during the run, and was not the saturator's.",
    "Wait until it has ended, and run it again.",
)

TRIMMED = Rule(
    "pool-trimmed",
    Severity.WARN,
    "TRIM of the pool's disks ran during the run.",
    "Wait until it has ended, or let it run before each run (zpool trim -w).",
)

FULL = Rule(
    "pool-full",
    Severity.WARN,
    "The pool was over 80 % full: ZFS then looks longer for room, and writes in smaller pieces.",
    "Free some of it, or add disks; where yours is as full, say so beside the verdict.",
)
