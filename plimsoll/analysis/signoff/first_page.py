"""The first page: all that a decision takes, for readers without statistics. Pure; its texts are hostile."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from plimsoll.analysis.compare.comparison import Comparison, GateVerdict
from plimsoll.analysis.compare.decision import PLAIN_WORDS, Outcome, verdict_headline
from plimsoll.analysis.compare.page import figure
from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.evidence.run import WHOLE, MeasuredRun
from plimsoll.analysis.evidence.sides import find_orders
from plimsoll.analysis.statistics.stalls import excluded_share
from plimsoll.common.units import counted, percent, significant

DOUBTS = "Read this before you sign"
_LONGEST = 190
_CERTAINTY = 0.95
# As much as one page of A4 has room for.
_MOST_LIMITS, _LEAST_LIMITS = 6, 2
_MOST_DOUBTS = 3
_MOST_SIGNERS = 3
_LEAST_SIGNERS = 2
_LONGEST_FACT = 300
_WORST_FIRST = ("FAIL", "INCONCLUSIVE", "PASS")


@dataclass(frozen=True)
class LimitInWords:
    """One limit: its verdict, when it applies, what is allowed, what was found."""

    outcome: Outcome
    when: str
    allowed: str
    found: str

    @property
    def word(self) -> str:
        """The verdict: kept, broken, or not decided."""
        return PLAIN_WORDS[self.outcome]


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


def first_page(
    found: Comparison, signers: Sequence[str], evidence: str, rehearsed: str | None = None
) -> FirstPage:
    """Return the first page; `evidence` says how much raw data there is, `rehearsed` what was promised."""
    judged = sorted(found.judged, key=lambda each: _WORST_FIRST.index(each.verdict.outcome))
    doubts = list(_list_doubts(found.findings))
    more_signers = _LEAST_SIGNERS < len(signers) <= _MOST_SIGNERS
    taken = len(doubts) + more_signers + (found.verdict == "INCONCLUSIVE")
    room = max(_MOST_LIMITS - taken, _LEAST_LIMITS)
    return FirstPage(
        headline=verdict_headline(found.candidate.name, found.outcomes),
        facts=[(name, clip(text, _LONGEST_FACT)) for name, text in _list_facts(found, evidence, rehearsed)],
        limits=[limit_in_words(each, found) for each in judged[:room]],
        further_limits=_describe_further(judged[room:]),
        doubts=doubts,
        not_claimed=list(_list_not_claimed(found)),
        signers=lines_to_sign(signers) if len(signers) <= _MOST_SIGNERS else [],
    )


def lines_to_sign(signers: Sequence[str]) -> list[str]:
    """Return a name a line, two lines at least."""
    return [*signers, *[""] * (_LEAST_SIGNERS - len(signers))]


def limit_in_words(judged: GateVerdict, found: Comparison) -> LimitInWords:
    """Return what a limit asks, and what was found, in sentences."""
    names = (found.baseline.name, found.candidate.name)
    shown = ["no figure" if value is None else figure(judged, value) for value in judged.levels]
    figures = " and ".join(f"{value} on {name}" for value, name in zip(shown, names, strict=True))
    # a long reason stands once on the page, not with each limit that it concerns
    says = f"See “{DOUBTS}”." if judged.question.blocked else judged.verdict.says
    text = f"{judged.gate.metric_type.describe(judged.gate.metric, figures)}. {says}"
    return LimitInWords(
        judged.verdict.outcome, _describe_scope(judged, found), _describe_limit(judged, names[0]), clip(text)
    )


def _describe_scope(judged: GateVerdict, found: Comparison) -> str:
    """Return under what a limit holds: `replay, while zfs-send kept the disks busy`."""
    scenario, phase = judged.gate.scenario, judged.gate.phase
    runs = [*found.baseline.of(scenario), *found.candidate.of(scenario)]
    busy = next((run.saturation.name for run in runs if run.saturation), "the saturator")
    phases = {
        "before": f", before {busy} kept the disks busy",
        "during": f", while {busy} kept the disks busy",
        "after": f", after {busy} had kept the disks busy",
    }
    return f"{scenario}{phases.get(phase, '')}"


def _describe_limit(judged: GateVerdict, baseline: str) -> str:
    """Return what a limit allows."""
    at_most = judged.question.at_most
    match judged.question.limit:
        case "at_most_ratio":
            return _describe_ratio(at_most, baseline, judged.in_ms)
        case "at_most_ms":
            return f"At most {figure(judged, at_most)}."
        case "at_most_more":
            return f"At most {percent(at_most)} of the requests more than on {baseline}."
        case "at_most_share":
            return f"At most {percent(at_most)} of the requests."
        case "at_most_share_of_runs":
            return f"At most {percent(at_most)} of the runs."


def _describe_ratio(at_most: float, baseline: str, is_time: bool) -> str:
    more, much = ("longer", "long") if is_time else ("more", "much")
    if at_most == 1:
        return f"No {more} than on {baseline}."
    if 1 < at_most < 2:
        return f"At most {significant(100 * (at_most - 1))} % {more} than on {baseline}."
    return f"At most {significant(at_most)} times as {much} as on {baseline}."


def _list_facts(found: Comparison, evidence: str, rehearsed: str | None) -> Iterator[tuple[str, str]]:
    sides = (found.baseline, found.candidate)
    runs = [run for side in sides for run in side.runs]
    yield "Compared", f"{found.candidate.name}, the candidate, with {found.baseline.name}, the baseline."
    yield "Load", "; ".join(dict.fromkeys(_describe_load(run) for run in runs)) + "."
    counts = " and ".join(f"{len(side.runs)} on {side.name}" for side in sides)
    yield "Runs", f"{counted(len(runs), 'run')}, {counts}{_describe_turns(found)}; {_describe_days(runs)}."
    requests = sum(run.phases[WHOLE].requests for run in runs)
    failed = sum(run.phases[WHOLE].failures for run in runs)
    of_them = f"{failed:,} of them failed" if failed else "none failed"
    yield "Requests", f"{requests:,} measured; {of_them}."
    if rehearsed:
        yield "Rehearsed", rehearsed
    yield "Evidence", evidence


def _describe_load(run: MeasuredRun) -> str:
    facts = run.directory.facts
    logs = ", ".join(dict.fromkeys(log.path.rsplit("/", 1)[-1] for log in facts.logs))
    of = f" of {logs}" if logs else ""
    paces = {None: "", "1": ", as fast as in the log", "max": ", as fast as it went"}
    pace = paces.get(facts.speed, f", {facts.speed} times as fast as in the log")
    pace = ", as it was served" if facts.from_log else pace
    busy = f", {run.saturation.name} keeping the disks busy" if run.saturation else ""
    return f"{run.scenario}{of}{pace}{busy}"


def _describe_turns(found: Comparison) -> str:
    """Return whether the sides took turns, of the scenarios that are judged."""
    judged = {each.gate.scenario for each in found.judged}
    orders = [order for name, order in find_orders(found.baseline, found.candidate).items() if name in judged]
    if not orders:
        return ""
    return ", taking turns" if all(order.interleaved for order in orders) else ", not taking turns"


def _describe_days(runs: Sequence[MeasuredRun]) -> str:
    began = sorted(instant.astimezone(UTC) for run in runs if (instant := run.started_at))
    if not began:
        return "when is not known"
    days = len({instant.date() for instant in began})
    if days == 1:
        return f"all on {_day_text(began[0])} ({began[0]:%H:%M} to {began[-1]:%H:%M} UTC)"
    return f"on {days} days from {_day_text(began[0])} to {_day_text(began[-1])}"


def _day_text(instant: datetime) -> str:
    return f"{instant.day} {instant:%B %Y}"


def _describe_further(left: Sequence[GateVerdict]) -> str:
    """Return what became of limits for which the page has no room: the best, since the worst come first."""
    if not left:
        return ""
    counts = Counter(PLAIN_WORDS[each.verdict.outcome] for each in left)
    became = " and ".join(f"{number} {word}" for word, number in counts.items())
    return f"{counted(len(left), 'further limit')}: {became}. All stand under “The gates”, in the details."


def _list_doubts(findings: Sequence[Finding]) -> Iterator[str]:
    yield from (clip(finding.sentence) for finding in findings[:_MOST_DOUBTS])
    if len(findings) > _MOST_DOUBTS:
        left = counted(len(findings) - _MOST_DOUBTS, "more finding")
        yield f"{left} under “Limits of the evidence”, in the details."


def _list_not_claimed(found: Comparison) -> Iterator[str]:
    if found.verdict == "INCONCLUSIVE":
        yield f"That {found.candidate.name} is good, or that it is bad: these runs cannot tell."
    yield f"That nothing goes wrong rarely: {describe_rare(fewest_runs(found))}."
    yield "That it holds for other traffic, pages or machines, or once the disks are fuller or older."
    were = "was" if len(found.judged) == 1 else "were"
    yield f"Anything that nobody asked: only {counted(len(found.judged), 'limit')} {were} checked."


def clip(text: str, longest: int = _LONGEST) -> str:
    """Return a text that fits the first page, cut off between words."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1].rsplit(' ', 1)[0]} …"


def fewest_runs(found: Comparison) -> int:
    """Return how many runs the side has that has fewest of a scenario that is judged."""
    judged = {each.gate.scenario for each in found.judged}
    return min(len(side.of(scenario)) for side in (found.baseline, found.candidate) for scenario in judged)


def describe_rare(runs: int) -> str:
    """Return what so many runs a side can say of what goes wrong rarely."""
    if not runs:
        return "one side has no run at all"
    share_of_runs = significant(100 * excluded_share(runs, _CERTAINTY), 2)
    return (
        f"{counted(runs, 'run')} without a fault {'rules' if runs == 1 else 'rule'} out, with "
        f"{100 * _CERTAINTY:g} % certainty, only what would happen in more than {share_of_runs} % of runs"
    )
