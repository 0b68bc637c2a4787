"""The rules of what can be wrong with the drives under a run."""

from plimsoll.analysis.evidence.rule import Rule
from plimsoll.common.errors import Severity

FAILING = Rule(
    "drive-failing",
    Severity.BAD,
    "A drive says of itself that it fails, or that it protects its data no more.",
    "Replace it before you measure: see smartctl -a.",
)
ERRORS = Rule(
    "drive-errors",
    Severity.BAD,
    "A drive counted more media errors at the end of a run than at its start.",
    "Replace it, or its cable, and run it again: it reads anew what it cannot read at once.",
)
THROTTLED = Rule(
    "drive-throttled",
    Severity.BAD,
    "A drive slowed itself down during a run so as not to get hotter, or was over its critical temperature.",
    "Cool it, or leave it longer pauses (limits.settle_s), and run it again.",
)
HOT = Rule(
    "drive-hot",
    Severity.WARN,
    "A drive was over its own warning temperature before, during or after a run.",
    "Cool it: a drive that gets hotter slows itself down.",
)
WORN = Rule(
    "drive-worn",
    Severity.WARN,
    "A drive has used up the life that it is rated for.",
    "Measure on a drive of the age that you are going to use.",
)
TRIM_OFF = Rule(
    "trim-off",
    Severity.WARN,
    "Nothing tells the SSDs under a run what was deleted, as far as the lab can see, so they get slower.",
    "Set autotrim=on for a pool; else mount with discard, or enable fstrim.timer.",
)
