"""The verdict on imported access logs: the weeks before a move against the weeks after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.analysis.compare.comparison import EXIT_CODES, Progress
from plimsoll.analysis.compare.decision import Outcome, overall
from plimsoll.analysis.compare.gates import RATIO
from plimsoll.analysis.evidence.checks import identity_findings, run_findings
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.sides import OpenedSide, open_sides
from plimsoll.analysis.evidence.weeks import JUDGED, WeeksBeside, hold_weeks
from plimsoll.analysis.statistics.standardised import UTC
from plimsoll.common.errors import gravest_first
from plimsoll.common.hostile import printable


@dataclass(frozen=True)
class Weeks:
    """Two sides of imported logs, and the verdict on the second."""

    beside: WeeksBeside
    findings: list[Finding]

    @property
    def reasons(self) -> list[str]:
        """The reasons for which nothing can be decided (hostile)."""
        return [each.sentence for each in self.findings if each.disqualifies]

    @property
    def doubts(self) -> list[str]:
        """The findings that forbid no verdict (hostile). That they are logs is part of the claim."""
        return [
            each.sentence
            for each in self.findings
            if not each.disqualifies and each.kind is not FindingKind.FROM_LOG
        ]

    @property
    def verdicts(self) -> dict[str, Outcome]:
        """The verdict on each judged quantile."""
        found: dict[str, Outcome] = {}
        for name in JUDGED:
            lower, upper = self.beside.figures.ratios[name].lower, self.beside.figures.ratios[name].upper
            if self.reasons or lower is None or upper is None or lower <= RATIO < upper:
                found[name] = "INCONCLUSIVE"
            else:
                found[name] = "PASS" if upper <= RATIO else "FAIL"
        return found

    @property
    def verdict(self) -> Outcome:
        """FAIL if one is broken, PASS if all are kept."""
        return overall(list(self.verdicts.values()))

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return EXIT_CODES[self.verdict]

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        found = self.beside.as_json()
        ratios = {
            name: {
                "estimate": one.estimate,
                "lower": one.lower,
                "upper": one.upper,
                "at_most_ratio": RATIO if name in JUDGED else None,
                "verdict": self.verdicts.get(name),
            }
            for name, one in self.beside.figures.ratios.items()
        }
        return {
            "format": 1,
            "kind": "accesslogs",
            "verdict": self.verdict,
            **found,
            "ratios": ratios,
            "reasons": self.reasons,
            "doubts": self.doubts,
            "findings": [each.as_json() for each in self.findings],
        }

    def lines(self) -> Iterator[str]:
        """Yield what the command prints, safe for a terminal."""
        before, after = (printable(name, 24) for name in self.beside.names)
        yield f"{self.verdict}: {after} against {before}, from access logs"
        yield ""
        yield f"{'':<12}  {'quantile':<8}  {before:>12}  {after:>12}  {'ratio':>8}  {'interval':>15}  limit"
        for name, (one, other, ratio, interval) in self.beside.rows():
            limit = f"≤ × {RATIO:g}" if name in JUDGED else ""
            times = f"{one:>12}  {other:>12}  {ratio:>8}  {interval:>15}"
            yield f"{self.verdicts.get(name, ''):<12}  {name:<8}  {times}  {limit}".rstrip()
        yield ""
        yield from (printable(each, 4096) for each in self.beside.sentences())
        said = [*self.reasons, *(f"warning: {doubt}" for doubt in self.doubts)]
        yield from ("", *(printable(each, 4096) for each in said)) if said else ()
        yield ""
        yield self.beside.claim


def find_weeks(
    paths: Sequence[Path], baseline: str | None, candidate: str | None
) -> tuple[OpenedSide, OpenedSide] | None:
    """Return both sides where all of their runs are imported access logs; else None."""
    sides = open_sides(paths, baseline, candidate)
    runs = [run for side in sides for run in side.runs]
    return sides if runs and all(run.facts.from_log for run in runs) else None


def compare_weeks(
    before: OpenedSide, after: OpenedSide, progress: Progress = lambda *_: None, zone: str = UTC
) -> Weeks:
    """Judge the weeks `after` against those `before`, by hours of `zone`.

    Raises RunDirectoryError, and SettingsError of an unknown zone.
    """
    total, read = sum(run.requests.count for side in (before, after) for run in side.runs), 0

    def advance(records: int) -> None:
        nonlocal read
        read += records
        progress(read, total)

    beside = hold_weeks((before.runs, after.runs), (before.name, after.name), advance, zone)
    found = [
        Finding(FindingKind.UNREADABLE, f"{side.name}: {each.why.rstrip('.')}.")
        for side in (before, after)
        for each in side.unreadable
    ]
    found += [finding for run in beside.runs for finding in run_findings(run)]
    found += identity_findings(beside.runs)
    return Weeks(beside, gravest_first([*found, *beside.findings]))
