"""Each run by itself: the list of runs or its groups, tables of one run, its facts."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean

from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.page.section import Row, Section, Table
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import FAILURES_COUNT, ScenarioRuns
from plimsoll.analysis.report.sections.headline import scripted_line
from plimsoll.analysis.statistics.routes import GrinderRow, RouteFigures
from plimsoll.common.errors import Severity
from plimsoll.common.units import (
    ABSENT,
    at_least,
    count,
    counted,
    decimal,
    hours_minutes,
    milliseconds,
    plain_ms,
    seconds,
    share,
    significant,
)
from plimsoll.rundir.facts import Clients, ClockState, Companion, Instance, Log, Together

MOST_IN_ONE_TABLE = 12  # runs; more are folded by backend
_MOST_FAILED_STEPS = 20
_SAMPLES = {
    "response": "response",
    "service": "service",
    "ttfb": "first byte",
    "lag": "lag",
}
_ROUTE_PERCENTILES = ("p50", "p99", "p99.9", "max")
_MEASURE_COLUMNS = ("mean", "min", "p50", "p90", "p99", "max", "sum")
_CAPTION = (
    "For comparison with results of The Grinder: service times of the requests without an error. It knows no "
    "due instant, so the response times above say more of what visitors felt."
)
_SHORT_S = 600.0  # hours and minutes would say 0:00 of the shortest
_GIB = 1 << 30
_COLUMNS = ["", "machine", "segment", "sent", "unsent", "status", "lag p99.9", "started", "clock"]


@dataclass(frozen=True)
class ListedRun:
    """A row of the list: a run, what it is about if it is scripted, and its response times."""

    run: ReportRun
    about: str
    times: list[str]

    @classmethod
    def of(cls, run: ReportRun) -> "ListedRun":
        """Return the row of `run`."""
        response = run.statistics.samples["response"].figures()
        return cls(run, scripted_line(run), [response.shown(name) for name in ("p50", "p99", "p99.9", "max")])


@dataclass(frozen=True)
class RunGroup(Section):
    """The runs of one scenario on one backend, and a line on all of them."""

    colour: int = 1
    emulated: bool = False
    sentence: str = ""
    runs: Sequence[ListedRun] = ()
    layout: str = "group"


@dataclass(frozen=True)
class RunList(Section):
    """The list of all runs, or its groups where they do not fit one table."""

    runs: Sequence[ListedRun] = ()
    groups: Sequence[RunGroup] = ()
    layout: str = "list_of_runs"


@dataclass(frozen=True)
class RunDetails(Section):
    """The tables of one run, and what was run. Of several runs it has its name, colour and notes here."""

    colour: int | None = None
    notes: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    layout: str = "run"


def run_list(scenarios: Sequence[ScenarioRuns], runs: Sequence[ReportRun]) -> list[Section]:
    """Return the list of several runs."""
    if len(runs) < 2:
        return []
    groups = _groups(scenarios, runs)
    caption = "Of each whole run, the warm-up left out."
    if groups:
        caption += " Open a backend to see its runs."
    return [
        RunList(
            "Response times of each run", caption=caption, groups=groups, runs=list(map(ListedRun.of, runs))
        )
    ]


def run_details(
    scenarios: Sequence[ScenarioRuns],
    runs: Sequence[ReportRun],
    findings: Mapping[int, Sequence[Finding]],
) -> list[Section]:
    """Return the details of each run, by group where there are groups; `findings` by the run's number."""
    groups = _groups(scenarios, runs)
    if len(runs) == 1:
        return [_details(runs[0], "Tables, and what was run")]
    found = {
        run.number: replace(
            _details(run, run.label),
            colour=run.colour,
            notes=[one.sentence for one in findings[run.number] if one.level == Severity.NOTE],
        )
        for run in runs
    }
    if groups:
        return [replace(each, sections=[found[one.run.number] for one in each.runs]) for each in groups]
    return list(found.values())


def _details(run: ReportRun, title: str) -> RunDetails:
    beside = [instance_table(run), failure_table(run), measure_table(run)]
    tables = [*beside, percentile_table(run), route_table(run), grinder_table(run), status_table(run)]
    return RunDetails(title, tables=[table for table in tables if table], facts=list_facts(run))


def _groups(scenarios: Sequence[ScenarioRuns], runs: Sequence[ReportRun]) -> list[RunGroup]:
    """Return the groups; none where all runs fit one table. Runs without a backend are one group."""
    if len(runs) <= MOST_IN_ONE_TABLE:
        return []
    found = []
    for scenario in scenarios:
        several = [(backend.name, backend.runs) for backend in scenario.named]
        if alone := [run for each in scenario.backends if not each.is_named for run in each.runs]:
            several.append(("runs without a backend", alone))
        for name, some in several:
            found.append(
                RunGroup(
                    title=name if len(scenarios) == 1 else f"{scenario.name}: {name}",
                    colour=some[0].colour,
                    emulated=any(run.emulated for run in some),
                    sentence=_sentence(some),
                    runs=list(map(ListedRun.of, some)),
                )
            )
    return found


def _sentence(runs: Sequence[ReportRun]) -> str:
    """Return how many runs there are, how far their tails lie apart, and how many are not complete."""
    text = counted(len(runs), "run")
    figures = [run.statistics.samples["response"].figures() for run in runs]
    for name in ("p99.9", "p99", "p50"):
        # Each with whether it is but a lower bound; without end where none is known.
        levels = sorted(
            (math.inf if (least_ms := each.least_ms(name)) is None else least_ms, name in each.censored)
            for each in figures
            if each[name] or name in each.censored
        )
        if len(levels) * 2 > len(runs):
            middle = levels[(len(levels) - 1) // 2 : len(levels) // 2 + 1]
            median = fmean(value for value, _ in middle), any(censored for _, censored in middle)
            text += f", {name} {_level(median)} (median; {_level(levels[0])} to {_level(levels[-1])})"
            break
    amiss = sum(run.status != "complete" for run in runs)
    return text + (f", {amiss} not complete" if amiss else "")


def _level(level: tuple[float, bool]) -> str:
    value_ms, censored = level
    if math.isinf(value_ms):
        return "unknown (failed)"
    return at_least(milliseconds(value_ms)) if censored else milliseconds(value_ms)


def percentile_table(run: ReportRun) -> Table:
    """Return all percentiles of all four times."""
    figures = {name: run.statistics.samples[name].figures() for name in _SAMPLES}
    columns = list(figures["response"].ms)
    rows = [
        Row(_SAMPLES[name], [values.shown(column, plain_ms) for column in columns])
        for name, values in figures.items()
    ]
    caption = (
        "Milliseconds. Response: from the instant a request was due to its last byte. Service: from the "
        "instant it was sent to its last byte. First byte: from the instant it was sent. Lag: how late it "
        "was sent, where it did not wait for a connection. Exact order statistics of all requests; of the "
        f"first byte, of those that were answered well.{_failures(run)}"
    )
    return Table("Percentiles", caption, ["", *columns], rows)


def _failures(run: ReportRun) -> str:
    """Return how failures count in a table of times; empty where there is none."""
    return f" {FAILURES_COUNT}" if run.statistics.failures else ""


def route_table(run: ReportRun) -> Table:
    """Return response times, errors and mismatches of each route."""
    routes = sorted(run.statistics.routes.items(), key=lambda item: -item[1].requests)
    logged = bool(run.directory.facts.logs)
    rows = [_route(name.partition(" ")[2], figures, logged) for name, figures in routes]
    rows.append(_route("all", run.statistics.total, logged, "total"))
    columns = ["", "requests", *_ROUTE_PERCENTILES, "failed"]
    if not run.directory.facts.logs:
        caption = f"Response times in milliseconds, the most frequent step first.{_failures(run)}"
        return Table("By step", caption, columns, rows)
    caption = (
        "Kinds of request, the most frequent first; response times in milliseconds. Failed: without a whole "
        "response, or with a status that is an error where the log has none. Other status, other size: "
        f"responses that differ from the log's.{_failures(run)}"
    )
    return Table("By kind of request", caption, [*columns, "other status", "other size"], rows)


def _route(name: str, figures: RouteFigures, logged: bool, look: str = "") -> Row:
    times = [figures.response_ms.shown(percentile, plain_ms) for percentile in _ROUTE_PERCENTILES]
    amiss = [
        f"{count(number)} ({share(number, figures.requests)})" if number else "0"
        for number in (figures.failures, figures.status_mismatch, figures.bytes_mismatch)[
            : 3 if logged else 1
        ]
    ]
    return Row(name, [count(figures.requests), *times, *amiss], look or ("amiss" if figures.failures else ""))


def measure_table(run: ReportRun) -> Table | None:
    """Return the figures that are not of single requests, whole and by phase, or None."""
    rows = []
    for name, one in run.measures.items():
        failed = len(run.failed_measures.get(name, ()))
        rows.append(Row(f"{name} ({one['unit']})", _measured(one, failed), "amiss" if failed else ""))
        for phase, measures in run.measures_by_phase.items():
            if name in measures:
                failed = len(run.phase_values[phase][name].failed_ms)
                rows.append(Row(f"… {phase}", _measured(measures[name], failed), "amiss" if failed else ""))
    if not rows:
        return None
    caption = "What took more than one request, or was reported by the site or the browser."
    if run.failed_measures:
        caption += " Figures are of what succeeded; n says how often it failed."
    if run.measures_by_phase:
        caption += " What took time belongs to the phase in which it began."
    return Table("Measured beside the requests", caption, ["", "n", *_MEASURE_COLUMNS], rows)


def _measured(one: dict[str, object], failed: int) -> list[str]:
    number, figures = one["count"], (one[column] for column in _MEASURE_COLUMNS)
    return [
        count(number if isinstance(number, int) else None) + (f", {failed:,} failed" if failed else ""),
        *(
            significant(figure, 4) if isinstance(figure, int | float) and figure >= 0 else ABSENT
            for figure in figures
        ),
    ]


def failure_table(run: ReportRun) -> Table | None:
    """Return the first steps that failed, with the site's own words; None where none did."""
    failed = [event for event in run.directory.events if event.name == "error"]
    if not failed:
        return None
    rows = [
        Row(
            f"{event.t_ns / 1e9:.3f} s",
            [str(event.further.get(key, "")) for key in ("step", "kind", "detail")],
            "amiss",
        )
        for event in failed[:_MOST_FAILED_STEPS]
    ]
    shown = "" if len(failed) <= len(rows) else f" The first {len(rows)} of {len(failed):,}."
    return Table(
        "Steps that failed", f"In the site's own words.{shown}", ["at", "step", "kind", "said"], rows
    )


def status_table(run: ReportRun) -> Table:
    """Return how often each status came, and each error."""
    requests = run.statistics.requests
    rows = [
        Row(str(status) if status else "no response", [count(number), share(number, requests)])
        for status, number in sorted(run.statistics.statuses.items(), key=lambda item: -item[1])
    ]
    rows += [
        Row(f"error: {name}", [count(number), share(number, requests)], "amiss")
        for name, number in sorted(run.statistics.errors.items(), key=lambda item: -item[1])
    ]
    return Table("Statuses and errors", "What came back.", ["", "requests", "share"], rows)


def grinder_table(run: ReportRun) -> Table:
    """Return The Grinder's table: a row a route, and the total."""
    heading, spelled = _unit([run.elapsed_s])
    time = spelled(run.elapsed_s)
    rows = [Row(name, _cells(figures.grinder, time)) for name, figures in run.statistics.routes.items()]
    rows.append(Row("Total", _cells(run.statistics.total.grinder, time), "total"))
    return Table("The Grinder's table", _CAPTION, _columns("Test", heading), rows)


def grinder_section(scenarios: Sequence[ScenarioRuns]) -> list[Section]:
    """Return The Grinder's table with a row a backend of each scenario, its runs together; not of one run."""
    backends = [(scenario, backend) for scenario in scenarios for backend in scenario.backends]
    if sum(len(backend.runs) for _, backend in backends) < 2:
        return []
    took_s = [sum(run.elapsed_s for run in backend.runs) for _, backend in backends]
    heading, spelled = _unit(took_s)
    rows = [
        Row(
            backend.called if len(scenarios) == 1 else f"{scenario.name}: {backend.called}",
            [
                count(len(backend.runs)),
                *_cells(pooled([_row_of(run) for run in backend.runs]), spelled(time_s)),
            ],
        )
        for (scenario, backend), time_s in zip(backends, took_s, strict=True)
    ]
    caption = (
        f"{_CAPTION} All runs of a backend together: the rates are of the time that they took in all, which "
        "is TT."
    )
    title = "The Grinder's table, by backend"
    table = Table(title, caption, _columns("Backend", heading, "Runs"), rows)
    return [Section(title, tables=[table], layout="chapter", folded=True)]


def pooled(rows: Sequence[tuple[GrinderRow, float]]) -> GrinderRow:
    """Return the row of several runs together, each with its elapsed time in seconds. Pure.

    Means are weighted by tests; the deviation is that of all tests around their common mean.
    """
    timed = [(row, row.tests, row.mtt_ms, row.ttsd_ms or 0.0) for row, _ in rows if row.mtt_ms is not None]
    tests = sum(n for _, n, *_ in timed)
    elapsed_s = sum(s for _, s in rows)
    mean_ms = sum(n * ms for _, n, ms, _ in timed) / tests if tests else None
    squares = sum(n * (sd**2 + (ms - (mean_ms or 0.0)) ** 2) for _, n, ms, sd in timed)
    first = [(row.tests, row.mttfb_ms) for row, _ in rows if row.mttfb_ms is not None]
    answered = sum(n for n, _ in first)
    return GrinderRow(
        tests=sum(row.tests for row, _ in rows),
        errors=sum(row.errors for row, _ in rows),
        mtt_ms=mean_ms,
        ttsd_ms=sqrt(squares / tests) if tests else None,
        tps=tests / elapsed_s if elapsed_s > 0 else None,
        rbps=sum((row.rbps or 0.0) * s for row, s in rows) / elapsed_s if elapsed_s > 0 else None,
        mttfb_ms=sum(n * ms for n, ms in first) / answered if answered else None,
    )


def _row_of(run: ReportRun) -> tuple[GrinderRow, float]:
    """Return the run's total, and The Grinder's elapsed time: from its first start to its last end."""
    row = run.statistics.total.grinder
    return row, row.tests / row.tps if row.tps else run.elapsed_s


def _unit(took_s: Sequence[float]) -> tuple[str, Callable[[float], str]]:
    """Return the heading of TT and what spells one: seconds where all are short, else hours and minutes."""
    if max(took_s, default=0.0) < _SHORT_S:
        return "TT (s)", lambda value_s: decimal(value_s, 1)
    return "TT (h:m)", hours_minutes


def _columns(first: str, heading: str, *more: str) -> list[str]:
    return [first, *more, "Tests", "Errors", "MTT (ms)", "TTSD (ms)", "TPS", "RBPS", "MTTFB (ms)", heading]


def _cells(row: GrinderRow, time: str) -> list[str]:
    return [
        count(row.tests),
        count(row.errors),
        decimal(row.mtt_ms, 2),
        decimal(row.ttsd_ms, 2),
        decimal(row.tps, 2),
        decimal(row.rbps, 0),
        decimal(row.mttfb_ms, 2),
        time,
    ]


def list_facts(run: ReportRun) -> list[tuple[str, str]]:
    """Return (what, value) pairs, absent ones left out. Values are hostile."""
    return [(what, value) for what, value in (*_what_ran(run), *_how_it_ran(run)) if value]


def _what_ran(run: ReportRun) -> Iterator[tuple[str, str | None]]:
    facts, storage = run.directory.facts, run.directory.facts.storage
    yield "directory", str(run.directory.path)
    yield "scenario", facts.scenario
    yield "backend", facts.backend
    yield "emulated", run.emulated
    if storage:
        tuned = (
            f"{value.key} {value.set}" + ("" if value.was == value.set else f" (was {value.was or ABSENT})")
            for value in storage.tuning
        )
        yield "tuning", ", ".join(tuned)
    if storage and storage.cache:
        yield "caches", ": ".join(filter(None, (storage.cache.state, ", ".join(storage.cache.how))))
    if storage and (filled := storage.precondition):
        how, rounds = "steady" if filled.steady else "not steady", counted(filled.rounds or 0, "round")
        yield "volume", f"{filled.fill_percent or ABSENT} % full, {how} after {rounds} of overwrites"
    if experiment := facts.experiment:
        of = f" of {experiment.of}" if experiment.of is not None else ""
        number = f", run {experiment.run}{of}" if experiment.run is not None else ""
        yield "experiment", experiment.name + number
    yield "at the same time", _together(facts.together)
    yield "repeat", None if facts.repeat is None else str(facts.repeat)
    if target := facts.target:
        yield "target", target.url
        yield "connected to", target.connect_to or ", ".join(target.addresses)
    for log in facts.logs:
        yield "log", _log(log)
    if pauses := facts.log_pauses:
        yield "pauses of the log", f"{pauses.shortened:,} shortened, by {seconds(pauses.cut_s)} in all"
    if facts.clients:
        yield "clients of the log", _clients(facts.clients)


def _how_it_ran(run: ReportRun) -> Iterator[tuple[str, str | None]]:
    facts, summary = run.directory.facts, run.directory.summary
    if facts.speed is not None and not facts.from_log:
        named = {"1": "1 (recorded pace)", "max": "max (as fast as it goes)"}.get(facts.speed, facts.speed)
        yield "speed", f"{named}, {'closed' if facts.loop == 'closed' else 'open'} loop"
    yield "seed", None if facts.seed is None else str(facts.seed)
    if facts.started_at:
        yield "started", facts.started_at.strftime("%Y-%m-%d %H:%M:%S %Z").strip()
    outcomes = {one.limit: one.outcome for one in summary.limits} if summary else {}
    yield "limits", "; ".join(f"{limit} {outcomes.get(limit, 'not judged')}" for limit in facts.limits or [])
    yield "members", _members(run)
    if summary and (retried := summary.requests.retried):
        again = f"{counted(retried, 'request')} ({share(retried, run.directory.requests.count)})"
        yield "sent again", f"{again}, since the server had closed the kept-open connection"
    yield "took", seconds(run.elapsed_s)
    yield "command", " ".join(facts.command)
    yield "program", " ".join(filter(None, (facts.program.name, facts.program.version)))
    host = facts.host
    memory = f"{host.memory_bytes / _GIB:.1f} GiB" if host.memory_bytes else None
    cpus = counted(host.cpus, "processor") if host.cpus else None
    machine = (host.hostname, host.cpu, cpus, memory, host.kernel)
    yield "generator's machine", ", ".join(filter(None, machine))
    if sender := facts.sender:
        where = "on the server's machine" if sender.beside_server else "on a machine of its own"
        yield "sent by", f"{counted(sender.threads, 'thread')}, nice {sender.nice}, {where}"


def _log(log: Log) -> str:
    parts = [log.path]
    if log.format:
        parts.append(f"format {log.format}")
    if log.valid is not None:
        parts.append(f"{log.valid:,} valid lines")
    if log.failed:
        parts.append(f"{log.failed:,} that did not parse")
    if log.strays:
        parts.append(counted(log.strays, "stray time stamp"))
    if log.set_backs:
        parts.append(f"clock set back {counted(log.set_backs, 'time')}")
    if log.ahead_s:
        parts.append(f"clock {abs(log.ahead_s):,.0f} s {'ahead' if log.ahead_s > 0 else 'behind'}")
    if log.first and log.last:
        parts.append(f"{log.first} to {log.last}")
    return ", ".join(parts)


def _clients(clients: Clients) -> str:
    largest = f"the largest with {significant(100 * clients.largest_share)} % of the requests"
    said = f"{clients.counted:,}, {largest}"
    if not clients.proxies:
        return said
    over = f"spread over {clients.spread_over:,} clients" if clients.spread_over else "not spread"
    share_of_all = significant(100 * clients.proxies_share)
    return f"{said}; {clients.proxies:,} of proxies, with {share_of_all} %, {over}"


def _members(run: ReportRun) -> str | None:
    summary = run.directory.summary
    if not summary or not (members := summary.members):
        return None
    who = "how many is not known"
    if members.clients is not None and members.accounts is not None:
        who = f"{counted(members.clients, 'client')} with {counted(members.accounts, 'account')}"
    requests = run.statistics.requests
    said = f"{who}: {members.requests:,} of {counted(requests, 'request')}"
    said += f" ({share(members.requests, requests)})" if requests else ""
    return said + (f", {members.sent_to_login:,} sent to the login" if members.sent_to_login else "")


def instance_table(run: ReportRun) -> Table | None:
    """Return a row for each instance; None of a run that was not merged."""
    summary = run.directory.summary
    if run.directory.facts.merged is None or summary is None or not summary.instances:
        return None
    caption = (
        "What each process or machine did. Lag: how late it sent one request in a thousand, in milliseconds. "
        "Started and clock: by its own clock, and how far that may be wrong."
    )
    return Table("Instances", caption, _COLUMNS, [_row(each) for each in summary.instances])


def _row(one: Instance) -> Row:
    name = one.name if one.index is None else f"instance {one.index + 1}"
    cells = [
        one.host or ABSENT,
        one.segment or ABSENT,
        count(one.sent),
        count(one.unsent),
        one.status,
        plain_ms(one.lag_ms.p999),
        f"{one.started_at:%H:%M:%S.%f}" if one.started_at else ABSENT,
        _clock(one.clock),
    ]
    amiss = one.status != "complete" or one.generator_limited
    return Row(name, cells, "amiss" if amiss else "")


def _clock(clock: ClockState | None) -> str:
    if clock is None or clock.synchronised is None:
        return ABSENT
    if not clock.synchronised:
        return "not synchronised"
    return f"within {milliseconds(clock.max_error_ms)}"


def _together(together: Together | None) -> str | None:
    """Return the others, and from when to when they were there by this run's own clock (hostile)."""
    if together is None:
        return None
    ended = ["this one was stopped when the others had ended"] if together.stopped else []
    began = [] if together.began_s is None else [f"this one began at {together.began_s:.1f} s"]
    return "; ".join([*began, *map(_companion, together.others), *ended])


def _companion(other: Companion) -> str:
    what = f"{other.member}{' (the crowd)' if other.crowd else ''}{f', {other.speed}' if other.speed else ''}"
    if other.from_s is None or other.to_s is None:
        return what
    return f"{what}, from {other.from_s:.1f} to {other.to_s:.1f} s"
