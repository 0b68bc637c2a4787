"""The first page: all that a decision takes, for readers without a glossary. Pure; its texts are hostile."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from plimsoll.analysis.compare.comparison import Comparison
from plimsoll.analysis.compare.questions import orders_of
from plimsoll.analysis.compare.runs import WHOLE, ComparedRun
from plimsoll.analysis.compare.verdicts import GateVerdict
from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.signoff.words import (
    WORDS,
    LimitInWords,
    clipped,
    fewest_runs,
    headline,
    limit_in_words,
    seldom,
)
from plimsoll.common.units import counted

# As much as one page of A4 has room for.
_MOST_LIMITS, _LEAST_LIMITS = 6, 2
_MOST_DOUBTS = 3
_MOST_SIGNERS = 3
_LEAST_SIGNERS = 2
_LONGEST_FACT = 300
_WORST_FIRST = ("FAIL", "INCONCLUSIVE", "PASS")


@dataclass(frozen=True)
class FirstPage:
    """What stands on it. `signers` are the lines to sign on, empty where so many sign on the last page."""

    headline: str
    facts: list[tuple[str, str]]
    limits: list[LimitInWords]
    further_limits: str
    doubts: list[str]
    not_claimed: list[str]
    signers: list[str]


def first_page(found: Comparison, signers: Sequence[str], evidence: str) -> FirstPage:
    """Return the first page; `evidence` says how much raw data there is."""
    judged = sorted(found.judged, key=lambda each: _WORST_FIRST.index(each.verdict.outcome))
    doubts = list(_doubts(found.findings))
    more_signers = _LEAST_SIGNERS < len(signers) <= _MOST_SIGNERS
    taken = len(doubts) + more_signers + (found.verdict == "INCONCLUSIVE")
    room = max(_MOST_LIMITS - taken, _LEAST_LIMITS)
    return FirstPage(
        headline=headline(found),
        facts=[(name, clipped(text, _LONGEST_FACT)) for name, text in _facts(found, evidence)],
        limits=[limit_in_words(each, found) for each in judged[:room]],
        further_limits=_further(judged[room:]),
        doubts=doubts,
        not_claimed=list(_not_claimed(found)),
        signers=lines_to_sign(signers) if len(signers) <= _MOST_SIGNERS else [],
    )


def lines_to_sign(signers: Sequence[str]) -> list[str]:
    """Return a name a line, two lines at least."""
    return [*signers, *[""] * (_LEAST_SIGNERS - len(signers))]


def _facts(found: Comparison, evidence: str) -> Iterator[tuple[str, str]]:
    sides = (found.baseline, found.candidate)
    runs = [run for side in sides for run in side.runs]
    yield "Compared", f"{found.candidate.name}, the candidate, with {found.baseline.name}, the baseline."
    yield "Load", "; ".join(dict.fromkeys(_load(run) for run in runs)) + "."
    counts = [f"{len(side.runs)} on {side.name}" for side in sides]
    yield "Runs", f"{counted(len(runs), 'run')}, {' and '.join(counts)}{_turns(found)}; {_days(runs)}."
    requests = sum(run.levels.phases[WHOLE].requests for run in runs)
    failed = sum(run.levels.phases[WHOLE].errors for run in runs)
    of_them = f"{failed:,} of them failed" if failed else "none failed"
    yield "Requests", f"{requests:,} measured; {of_them}."
    yield "Evidence", evidence


def _load(run: ComparedRun) -> str:
    facts = run.directory.facts
    logs = ", ".join(dict.fromkeys(log.path.rsplit("/", 1)[-1] for log in facts.logs))
    of = f" of {logs}" if logs else ""
    paces = {None: "", "1": ", as fast as in the log", "max": ", as fast as it went"}
    pace = paces.get(facts.speed, f", {facts.speed} times as fast as in the log")
    pace = ", as it was served" if facts.from_log else pace
    busy = f", {run.saturation.name} keeping the disks busy" if run.saturation else ""
    return f"{run.scenario}{of}{pace}{busy}"


def _turns(found: Comparison) -> str:
    """Return whether the sides took turns, of the scenarios that are judged."""
    judged = {each.gate.scenario for each in found.judged}
    orders = [order for name, order in orders_of(found.baseline, found.candidate).items() if name in judged]
    if not orders:
        return ""
    return ", taking turns" if all(order.interleaved for order in orders) else ", not taking turns"


def _days(runs: Sequence[ComparedRun]) -> str:
    began = sorted(_utc(run.started_at) for run in runs if run.started_at)
    if not began:
        return "when is not known"
    days = len({instant.date() for instant in began})
    if days == 1:
        return f"all on {_day(began[0])} ({began[0]:%H:%M} to {began[-1]:%H:%M} UTC)"
    return f"on {days} days from {_day(began[0])} to {_day(began[-1])}"


def _utc(instant: datetime) -> datetime:
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC)


def _day(instant: datetime) -> str:
    return f"{instant.day} {instant:%B %Y}"


def _further(left: Sequence[GateVerdict]) -> str:
    """Return what became of limits for which the page has no room: the best, since the worst come first."""
    if not left:
        return ""
    counts = Counter(WORDS[each.verdict.outcome] for each in left)
    became = " and ".join(f"{number} {word}" for word, number in counts.items())
    return f"{counted(len(left), 'further limit')}: {became}. All stand under “The gates”, in the details."


def _doubts(findings: Sequence[Finding]) -> Iterator[str]:
    yield from (clipped(finding.sentence) for finding in findings[:_MOST_DOUBTS])
    if len(findings) > _MOST_DOUBTS:
        left = counted(len(findings) - _MOST_DOUBTS, "more finding")
        yield f"{left} under “Limits of the evidence”, in the details."


def _not_claimed(found: Comparison) -> Iterator[str]:
    if found.verdict == "INCONCLUSIVE":
        yield f"That {found.candidate.name} is good, or that it is bad: these runs cannot tell."
    yield f"That nothing goes wrong rarely: {seldom(fewest_runs(found))}."
    yield "That it holds for other traffic, pages or machines, or once the disks are fuller or older."
    yield f"Anything that nobody asked: only {counted(len(found.judged), 'limit')} {_was(found)} checked."


def _was(found: Comparison) -> str:
    return "was" if len(found.judged) == 1 else "were"
