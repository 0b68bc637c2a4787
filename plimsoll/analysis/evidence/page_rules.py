"""The rules of what a comparison of two sites' pages found."""

from plimsoll.analysis.evidence.rule import Rule
from plimsoll.common.errors import Severity

OTHER_PAGES = Rule(
    "other-pages",
    Severity.BAD,
    "The candidate serves other pages than the baseline, as bin/replay same found.",
    "See in same.txt which, mend the clone, and compare again.",
)

UNKNOWN = Rule(
    "pages-unknown",
    Severity.BAD,
    "bin/replay same did not end, or could not tell whether both sides serve the same pages.",
    "Compare again, to the end, with both sites running.",
)

ELSEWHERE = Rule(
    "pages-elsewhere",
    Severity.BAD,
    "The pages that were compared are of other sites, of another log, or of another time than the runs.",
    "Compare the sites that were loaded, by the log that was replayed, within a week of the runs.",
)

PARTLY = Rule(
    "pages-partly",
    Severity.WARN,
    "Not all pages were compared, or not all of their text.",
    "Compare without the flags that leave pages or text out, or say why they are right.",
)
