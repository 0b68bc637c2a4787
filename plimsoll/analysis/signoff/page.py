"""The document as one page for A4 paper: first page, details, limits of the evidence. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from plimsoll.analysis.compare.comparison import Comparison
from plimsoll.analysis.compare.page import (
    comparison_charts,
    differences_table,
    gate_table,
    phase_table,
    runs_table,
)
from plimsoll.analysis.evidence.checks import run_findings
from plimsoll.analysis.evidence.finding import FindingKind
from plimsoll.analysis.evidence.run import WHOLE, MeasuredRun
from plimsoll.analysis.evidence.sides import Side
from plimsoll.analysis.page.against_log import (
    against_log_chart,
    against_log_table,
    check_against_log,
)
from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.page.shell import render_page
from plimsoll.analysis.signoff.first_page import DOUBTS, describe_rare, fewest_runs, first_page, lines_to_sign
from plimsoll.analysis.signoff.same_pages import PageComparison, same_table
from plimsoll.analysis.statistics.against_log import HeldRun
from plimsoll.common.units import ABSENT, count, counted, milliseconds, significant

_MOST_VALUES = 4
_GIB = 1 << 30
_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class SignoffFacts:
    """The question, the time, the signers (hostile), and the sums of the evidence."""

    question: str
    made_at: datetime
    signers: Sequence[str]
    sums_sha256: str
    files: int
    bytes: int
    signed: bool
    same: PageComparison | None = None
    rehearsed: str | None = None


def signoff_page(found: Comparison, document: SignoffFacts, held: Sequence[HeldRun] = ()) -> str:
    """Return the HTML; `held` are the replays that are held against their log."""
    chart = against_log_chart(held)
    evidence = f"{counted(document.files, 'file')} of raw data, {counted(document.bytes, 'byte')}"
    pages = f" By a comparison of pages, {document.same.sentence}." if document.same else ""
    evidence_text = f"{evidence}; every page bears their sum at its foot.{pages}"
    first = first_page(found, document.signers, evidence_text, document.rehearsed)
    return render_page(
        "signoff.html",
        [*comparison_charts(found), *([chart] if chart else [])],
        _TEMPLATES,
        styles=["verdict.css", "signoff.css"],
        title=f"{found.candidate.name} against {found.baseline.name}",
        verdict=found.verdict,
        first=first,
        doubts_heading=DOUBTS,
        document=document,
        made_at=f"{document.made_at:%Y-%m-%d %H:%M} UTC",
        last_signers=[] if first.signers else lines_to_sign(document.signers),
        evidence=evidence,
        gates=gate_table(found),
        confidence=f"{significant(100 * found.confidence, 4)} %",
        differences=differences_table(found),
        what=[
            table
            for table in (phase_table(found), scenarios_table(found), _circumstances_table(found))
            if table
        ],
        controls=[
            table
            for table in (
                document.same and same_table(document.same),
                _download_table(found),
                _lag_table(found),
                against_log_table(held),
            )
            if table
        ],
        limits=[
            *(finding.text for finding in check_against_log(held)),
            *_find_limits(found, document.same is not None),
        ],
        runs=runs_table(found),
    )


def _find_limits(found: Comparison, pages_compared: bool = False) -> Iterator[str]:
    """Yield what the evidence cannot show, all findings first, the gravest before the others (hostile)."""
    yield from (finding.sentence for finding in found.findings)
    plan = found.plan.sentence if found.plan else ""
    yield from filter(None, (plan, found.gates_sentence, found.looks_sentence))
    for side in (found.baseline, found.candidate):
        yield from (
            f"{side.name}: a run cannot be read, so it counts as missing: {each.why}"
            for each in side.unreadable
        )
    if not found.gates.interleaved:
        yield (
            "The gates say interleaved: false, so a verdict was allowed on sides that did not alternate in "
            "time: what changed between them may count as the candidate's."
        )
    if not (_controls(found.baseline) and _controls(found.candidate)):
        yield (
            "The control experiment (download) was not run on both sides: network and processors may differ "
            "without anyone knowing."
        )
    if not pages_compared:
        yield (
            "Whether both sides serve the same pages was not looked at page by page (plimsoll same): sizes "
            "and statuses can be alike where a text or an image is not."
        )
    if any(
        run.directory.facts.storage is None for side in (found.baseline, found.candidate) for run in side.runs
    ):
        yield (
            "Not all runs were made by plimsoll run, so nothing was read of their storage and hosts: what "
            "else differs is not known."
        )
    few = fewest_runs(found)
    yield (
        f"The run is what is counted, not the request: the least judged side has {counted(few, 'run')}, and "
        f"{describe_rare(few)}."
    )
    yield (
        "The verdict holds for these runs: this site, this load, these hosts, at this time. It says nothing "
        "of other loads, of disks that have aged or filled up since, nor of what no gate looks at."
    )


def scenarios_table(found: Comparison) -> Table:
    """Return how many runs each scenario has on each side, of which repeats, when, in which order."""
    rows = []
    for scenario in dict.fromkeys([*found.baseline.scenarios, *found.candidate.scenarios]):
        for side, letter in ((found.baseline, "A"), (found.candidate, "B")):
            runs = side.of(scenario)
            repeats = _list_values(str(run.repeat) for run in runs if run.repeat is not None)
            busy = _list_values(run.saturation.name if run.saturation else "none" for run in runs)
            began = [instant.astimezone(UTC) for run in runs if (instant := run.started_at)]
            cells = [
                f"{letter}: {side.name}",
                count(len(runs)),
                repeats,
                count(sum(run.phases[WHOLE].requests for run in runs)),
                busy,
                f"{min(began):%Y-%m-%d %H:%M} … {max(began):%Y-%m-%d %H:%M}" if began else ABSENT,
            ]
            rows.append(Row(scenario, cells, "" if runs else "amiss"))
        rows.append(Row("", ["in this order", "", "", "", "", _order_letters(found, scenario)]))
        every = [*found.baseline.of(scenario), *found.candidate.of(scenario)]
        if any(map(_company, every)):
            rows.append(Row("", ["at the same time as", "", "", "", "", _list_values(map(_company, every))]))
    columns = ["scenario", "side", "runs", "repeats", "requests", "saturator", "began (UTC)"]
    return Table("What was run", "Each run is one scenario, once, on one backend.", columns, rows)


def _order_letters(found: Comparison, scenario: str) -> str:
    """Return the order in which the runs of a scenario began: `ABBA`, A being the baseline."""
    runs = [(run, "A") for run in found.baseline.of(scenario)]
    runs += [(run, "B") for run in found.candidate.of(scenario)]
    dated = [(run.started_at, letter) for run, letter in runs if run.started_at]
    if not runs or len(dated) < len(runs):
        return "not known"
    return "".join(letter for _, letter in sorted(dated, key=lambda each: each[0]))


def _circumstances_table(found: Comparison) -> Table:
    """Return what both sides' runs were made on, with and by; several values where runs are not alike."""
    sides = (found.baseline, found.candidate)
    every = [
        Row(name, [_list_values(map(of, side.runs)) for side in sides]) for name, of in _CIRCUMSTANCES.items()
    ]
    rows = [row for row in every if row.cells != [ABSENT, ABSENT]]
    caption = (
        "As run.json of every run says it. Where the runs of a side are not alike, all values stand here."
    )
    return Table("On what and by what", caption, ["", *(side.name for side in sides)], rows)


def _download_table(found: Comparison) -> Table | None:
    """Return the control experiment, the download: every run of it; None where none was run."""
    rows = [
        Row(run.name, [side.name, milliseconds(run.service_p50_ms), count(run.phases[WHOLE].requests)])
        for side in (found.baseline, found.candidate)
        for run in _controls(side)
    ]
    caption = (
        "A download from memory should take the same time whatever the storage. Medians of service times; "
        "where the sides differ by more than 5 %, a warning says so."
    )
    return (
        Table("Control experiment: download", caption, ["run", "side", "median", "requests"], rows)
        if rows
        else None
    )


def _lag_table(found: Comparison) -> Table | None:
    """Return how late the load generator was, in every run with a schedule; None where no run has one."""
    rows = []
    for side in (found.baseline, found.candidate):
        for run in side.runs:
            if run.directory.facts.loop == "open":
                whole = run.phases[WHOLE]
                lag_ms, response_ms = whole.lag_ms["p99.9"], whole.response_ms["p99.9"]
                prompt_ms = whole.prompt.response_ms["p99.9"] if whole.prompt else response_ms
                kinds = [finding.kind for finding in run_findings(run)]
                limited = FindingKind.GENERATOR_LIMITED in kinds
                cells = [
                    side.name,
                    run.scenario,
                    milliseconds(lag_ms),
                    ABSENT if limited else milliseconds(prompt_ms),
                    milliseconds(response_ms),
                    "yes" if limited else "no",
                ]
                rows.append(Row(run.name, cells, "amiss" if limited else ""))
    caption = (
        "Lag is how late the generator itself sent a request. The p99.9 lies between the one without lag and "
        "the one as measured; verdicts hold at both. Where that is not known, and the lag is over 1 ms and "
        "5 % of the p99.9, the run is limited by its generator, and decides no gate that this reaches."
    )
    columns = ["run", "side", "scenario", "lag p99.9", "p99.9 without lag", "p99.9", "limited"]
    return Table("Control experiment: the generator's lag", caption, columns, rows) if rows else None


def _controls(side: Side) -> list[MeasuredRun]:
    return [run for run in side.runs if run.directory.facts.is_control]


def _company(run: MeasuredRun) -> str | None:
    """Return what loaded the same clone at the same time (hostile)."""
    together = run.directory.facts.together
    return together.company if together else None


def _list_values(values: Iterable[str | None]) -> str:
    each = list(dict.fromkeys(value for value in values if value))
    more = f" and {len(each) - _MOST_VALUES} more" if len(each) > _MOST_VALUES else ""
    return (", ".join(each[:_MOST_VALUES]) + more) or ABSENT


def _program(run: MeasuredRun) -> str | None:
    program = run.directory.facts.program
    further = [
        f"{key} {value}" for key, value in (program.model_extra or {}).items() if isinstance(value, str)
    ]
    return ", ".join([" ".join(filter(None, (program.name, program.version))), *further])


def _host(run: MeasuredRun) -> str | None:
    host = run.directory.facts.host
    memory = f"{host.memory_bytes / _GIB:.1f} GiB" if host.memory_bytes else None
    cpus = counted(host.cpus, "processor") if host.cpus else None
    return ", ".join(filter(None, (host.hostname, host.cpu, cpus, memory, host.kernel)))


def _clone(run: MeasuredRun) -> str | None:
    driver = run.directory.facts.storage and run.directory.facts.storage.clone.get("driver")
    return driver if isinstance(driver, str) else None


_CIRCUMSTANCES: dict[str, Callable[[MeasuredRun], str | None]] = {
    "backend": lambda run: run.directory.facts.backend,
    "emulated": lambda run: run.emulated,
    "cloned by": _clone,
    "experiment": lambda run: getattr(run.directory.facts.experiment, "name", None),
    "status of its runs": lambda run: run.directory.status,
    "target": lambda run: getattr(run.directory.facts.target, "url", None),
    "logs": lambda run: ", ".join(log.path.rsplit("/", 1)[-1] for log in run.directory.facts.logs),
    "speed": lambda run: run.directory.facts.speed,
    "seed": lambda run: None if run.directory.facts.seed is None else str(run.directory.facts.seed),
    "programs": _program,
    "load generator": _host,
}
