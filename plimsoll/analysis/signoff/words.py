"""Limits and findings in words, for readers who know no statistics. Pure; names and texts are hostile."""

from dataclasses import dataclass

from plimsoll.analysis.compare.comparison import Comparison
from plimsoll.analysis.compare.decision import Outcome
from plimsoll.analysis.compare.documents import figure, share
from plimsoll.analysis.compare.verdicts import GateVerdict
from plimsoll.analysis.statistics.stalls import excluded_share
from plimsoll.common.units import counted, significant

WORDS: dict[Outcome, str] = {"PASS": "kept", "FAIL": "broken", "INCONCLUSIVE": "not decided"}
DOUBTS = "Read this before you sign"
_LONGEST = 190
_CERTAINTY = 0.95


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
        return WORDS[self.outcome]


def limit_in_words(judged: GateVerdict, found: Comparison) -> LimitInWords:
    """Return what a limit asks, and what was found, in sentences."""
    names = (found.baseline.name, found.candidate.name)
    shown = ["no figure" if value is None else figure(judged, value) for value in judged.levels]
    figures = " and ".join(f"{value} on {name}" for value, name in zip(shown, names, strict=True))
    # a long reason stands once on the page, not with each limit that it concerns
    says = f"See “{DOUBTS}”." if judged.question.blocked else judged.verdict.says
    text = f"{judged.gate.kind.in_words(judged.gate.metric, figures)}. {says}"
    return LimitInWords(judged.verdict.outcome, when(judged, found), allowed(judged, names[0]), clipped(text))


def when(judged: GateVerdict, found: Comparison) -> str:
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


def allowed(judged: GateVerdict, baseline: str) -> str:
    """Return what a limit allows."""
    at_most = judged.question.at_most
    match judged.question.limit:
        case "at_most_ratio":
            return _ratio(at_most, baseline, judged.in_ms)
        case "at_most_ms":
            return f"At most {figure(judged, at_most)}."
        case "at_most_more":
            if not at_most:
                return f"No more than on {baseline}."
            return f"At most {share(at_most)} of the requests more than on {baseline}."
        case "at_most_share":
            return f"At most {share(at_most)} of the requests."
        case "at_most_share_of_runs":
            return f"At most {share(at_most)} of the runs."


def headline(found: Comparison) -> str:
    """Return what all verdicts come to."""
    total, name = len(found.judged), found.candidate.name
    every = "the limit that was set" if total == 1 else f"all {total} limits that were set"
    if found.verdict == "PASS":
        return f"{name} keeps {every}."
    broken, open_ = found.count("FAIL"), found.count("INCONCLUSIVE")
    if found.verdict == "FAIL":
        what = "the limit that was set" if total == 1 else f"{broken} of {total} limits"
        return f"{name} breaks {what}."
    which = "the limit that was set" if total == 1 else f"{open_} of {total} limits"
    return f"Neither yes nor no: whether {name} keeps {which} cannot be told from these runs."


def clipped(text: str, longest: int = _LONGEST) -> str:
    """Return a text that fits the first page, cut off between words."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1].rsplit(' ', 1)[0]} …"


def fewest_runs(found: Comparison) -> int:
    """Return how many runs the side has that has fewest of a scenario that is judged."""
    judged = {each.gate.scenario for each in found.judged}
    return min(len(side.of(scenario)) for side in (found.baseline, found.candidate) for scenario in judged)


def seldom(runs: int) -> str:
    """Return what so many runs a side can say of what goes wrong rarely."""
    if not runs:
        return "one side has no run at all"
    share_of_runs = significant(100 * excluded_share(runs, _CERTAINTY), 2)
    return (
        f"{counted(runs, 'run')} without a fault {'rules' if runs == 1 else 'rule'} out, with "
        f"{100 * _CERTAINTY:g} % certainty, only what would happen in more than {share_of_runs} % of runs"
    )


def _ratio(at_most: float, baseline: str, is_time: bool) -> str:
    more, much = ("longer", "long") if is_time else ("more", "much")
    if at_most == 1:
        return f"No {more} than on {baseline}."
    if 1 < at_most < 2:
        return f"At most {significant(100 * (at_most - 1))} % {more} than on {baseline}."
    return f"At most {significant(at_most)} times as {much} as on {baseline}."
