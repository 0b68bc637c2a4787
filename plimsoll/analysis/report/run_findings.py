"""What is doubtful about one run: findings, each with its remedy, shown before any figure.

They are of what it sent and got, of damage in its directory, and of those that ran together with it.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from plimsoll.analysis.evidence.answers import log_findings
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.generator import is_late, lateness_ms
from plimsoll.analysis.evidence.run import JUDGED, WHOLE
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.statistics.percentiles import P999, fewest
from plimsoll.common.errors import Severity, gravest_first
from plimsoll.common.units import (
    counted,
    milliseconds,
    parse_go_duration_ms,
    seconds,
    share,
    significant,
)
from plimsoll.rundir.facts import Together

_MISMATCH_SHARE = 0.01
_MOST_KINDS = 4
BOUND_NEEDS = 3_688  # requests for an upper bound of p99.9 at 95 %: ⌈ln 0.025 / ln 0.999⌉
_MOST_NAMES = 4
_CLOCK_SLACK_S = 1.0
_SLACK_S = 1.0

_Found = Iterator[tuple[Severity, str]]


def check_run(run: ReportRun) -> list[Finding]:
    """Return all findings on a run, also on its shards, files and companions, the gravest first (hostile)."""
    merged, together = run.directory.facts.merged, run.directory.facts.together
    remarks = [
        *((one.level, one.text) for one in (merged.says if merged else ())),
        *_events(run),
        *_host(run),
        *_clock(run),
        *_names(run),
        *(_companions(run, together) if together else ()),
    ]
    return gravest_first([*check_load(run), *(Finding(level, text) for level, text in remarks)])


def check_load(run: ReportRun) -> list[Finding]:
    """Return the findings on what a run sent and got, the gravest first (hostile)."""
    # No other run is about, so that it needs no name.
    found = [
        replace(one, text=one.text.replace(f"{run.name} ", "The run ", 1))
        for one in run.findings
        if one.kind is not FindingKind.GENERATOR_LATE or _is_lateness_felt(run)
    ]
    found += _as_logged(run) + _judged(run) + _proxies(run)
    found += _killed(run) + _sample_size(run) + _failures(run) + _waiting(run) + _not_sent(run) + _limits(run)
    return gravest_first(found)


def _is_lateness_felt(run: ReportRun) -> bool:
    """Return whether lateness is much of what `--fail-over` limits; True where that limits no percentile."""
    limits = [limit.partition("=") for limit in run.directory.facts.limits or []]
    limits_ms = {name: parse_go_duration_ms(value) for name, _, value in limits if name in JUDGED}
    whole = run.phases[WHOLE]
    return not limits_ms or any(is_late(lateness_ms(whole, name), ms) for name, ms in limits_ms.items())


def _as_logged(run: ReportRun) -> list[Finding]:
    """Return how far the answers are from the log's: as the replay itself said it, with the likely cause."""
    scenario, summary = run.directory.facts.scenario, run.directory.summary
    said = summary.not_as_logged if summary else ""
    statuses = (FindingKind.NOT_AS_LOGGED, FindingKind.PARTLY_AS_LOGGED)
    return [Finding(Severity.BAD, said)] * bool(said) + [
        replace(finding, text=finding.text.removeprefix(f"{scenario}: "))
        for finding in log_findings([run], "the target", scenario)
        if not (said and finding.kind in statuses)
    ]


def _judged(run: ReportRun) -> list[Finding]:
    """Return the limits of `plimsoll replay --fail-over` that were not kept."""
    levels = {"exceeded": Severity.BAD, "not judged": Severity.WARN}
    return [
        Finding(levels[one.outcome], f"Limit {one.limit} {one.outcome}: {one.says}.")
        for one in (run.directory.summary.limits if run.directory.summary else [])
        if one.outcome in levels
    ]


def _proxies(run: ReportRun) -> list[Finding]:
    clients = run.directory.facts.clients
    if clients is None or not clients.proxies:
        return []
    proxies = "a proxy's address" if clients.proxies == 1 else f"{clients.proxies:,} addresses of proxies"
    part = significant(100 * clients.proxies_share)
    text = f"The log has {proxies} in place of many visitors', with {part} % of the requests. "
    if clients.spread_over:
        text += f"They were spread over {clients.spread_over:,} clients; which sent which was drawn."
        return [Finding(Severity.NOTE, text)]
    text += (
        "They were sent as the log's own clients (--clients log), so that visitors waited for one another."
    )
    return [Finding(Severity.WARN, text)]


def _killed(run: ReportRun) -> list[Finding]:
    if not run.directory.killed:
        return []
    records = counted(run.directory.requests.count, "request")
    return [Finding(Severity.NOTE, f"Only the {records} on disk are known; up to a second is missing.")]


def _sample_size(run: ReportRun) -> list[Finding]:
    requests = run.statistics.requests
    if requests < fewest(P999):
        scripted = not run.directory.facts.logs
        verb = "Import" if run.directory.facts.from_log else "Replay"
        longer = "Look at the steps." if scripted else f"{verb} a longer part of the log."
        text = f"Only {counted(requests, 'request')}: a p99.9 needs 1,000. {longer}"
        return [Finding(Severity.NOTE if scripted else Severity.WARN, text)]
    if requests < BOUND_NEEDS:
        few = counted(requests, "request")
        text = f"{few} are enough for a p99.9, but not for its upper bound, which takes 3,688."
        return [Finding(Severity.NOTE, text)]
    return []


def _failures(run: ReportRun) -> list[Finding]:
    figures = run.statistics
    failures, requests = figures.failures, figures.requests
    if not failures:
        return []
    by_kind = sorted(figures.errors.items(), key=lambda item: -item[1])
    kinds = [f"{count:,} {name}" for name, count in by_kind[:_MOST_KINDS]]
    if others := sum(count for _, count in by_kind[_MOST_KINDS:]):
        kinds.append(counted(others, "other"))
    if wrong := failures - figures.total.errors:
        kinds.append(counted(wrong, "wrong answer"))
    counts = (
        "Since run.json does not say at which time-out, they count as slower than every answer."
        if figures.timeout_ms is None
        else f"They count as {milliseconds(figures.timeout_ms)}, their time-out, or what they took if more."
    )
    text = (
        f"{counted(failures, 'request')} of {requests:,} failed ({share(failures, requests)}): "
        f"{', '.join(kinds)}. {counts}"
    )
    return [Finding(Severity.BAD if failures > requests * _MISMATCH_SHARE else Severity.WARN, text)]


def _waiting(run: ReportRun) -> list[Finding]:
    figures, found = run.statistics, []
    own, capped = figures.client_queued, figures.queued - figures.client_queued
    if own:
        wait, unqueued = (figures.samples[name].figures() for name in ("client_wait", "unqueued"))
        text = (
            f"{counted(own, 'request')} ({share(own, figures.requests)}) waited for a connection of their "
            "own client, as in a browser that has all its connections in use, for up to "
            f"{wait.shown('max', milliseconds)}. The wait is part of the response time, but not the server's "
            f"doing: without it, p99.9 is {unqueued.shown('p99.9', milliseconds)}."
        )
        found.append(Finding(Severity.NOTE, text))
    if capped:
        text = (
            f"{counted(capped, 'request')} ({share(capped, figures.requests)}) waited for a free connection. "
            "The wait is part of the response time; if it is the cap on connections that you see, raise "
            "--max-connections, and the limit of open files with it (ulimit -n)."
        )
        many = capped > figures.requests * _MISMATCH_SHARE
        found.append(Finding(Severity.WARN if many else Severity.NOTE, text))
    return found


def _not_sent(run: ReportRun) -> list[Finding]:
    found = []
    facts = run.directory.facts
    left_out = "not imported" if facts.from_log else "not sent"
    rejected = sum(log.failed or 0 for log in facts.logs)
    if rejected:
        text = (
            f"{counted(rejected, 'log line')} did not parse and {_was(rejected)} {left_out}; see rejects.log."
        )
        found.append(Finding(Severity.NOTE, text))
    summary = run.directory.summary
    if summary is None:
        return found
    skipped = {reason: count for reason, count in summary.requests.skipped.items() if count}
    if skipped:
        total = sum(skipped.values())
        reasons = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in skipped.items())
        text = f"{counted(total, 'request')} of the log {_was(total)} {left_out}: {reasons}."
        found.append(Finding(Severity.WARN if "cap_reached" in skipped else Severity.NOTE, text))
    unsent = summary.requests.unsent
    if unsent is None:
        found.append(Finding(Severity.WARN, "The run ended with an unknown number of requests unsent."))
    if unsent:
        text = f"{counted(unsent, 'request')} would have been due after the run ended."
        found.append(Finding(Severity.WARN, text))
    return found


def _limits(run: ReportRun) -> list[Finding]:
    found = []
    if run.directory.facts.loop == "closed":
        text = (
            "A closed loop: a slow server slowed the load down, so the percentiles are kinder than those of "
            "visitors, who do not wait for one another. Compare only with runs of the same kind."
        )
        found.append(Finding(Severity.NOTE, text))
    if run.statistics.warmup:
        warmup = run.statistics.warmup
        aside = "the warm-up" if run.directory.facts.logs else "warm-up, set-up or clean-up"
        text = f"{counted(warmup, 'request')} of {aside} {_was(warmup)} left out."
        found.append(Finding(Severity.NOTE, text))
    return found


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _events(run: ReportRun) -> _Found:
    damaged = sorted(run.damaged_measures)
    if damaged:
        names = ", ".join(damaged[:_MOST_NAMES]) + (" and others" if len(damaged) > _MOST_NAMES else "")
        yield (
            Severity.WARN,
            f"Values of {names} in events.jsonl are not usable numbers (NaN, far too large, a word, or of "
            "a second unit) and are left out of all figures.",
        )
    lost = run.directory.unreadable_events
    if lost:
        yield Severity.WARN, f"{counted(lost, 'line')} of events.jsonl cannot be read: events may be missing."


def _host(run: ReportRun) -> _Found:
    found = run.host.samples
    if found.no_numbers:
        what = "field is not a number" if found.no_numbers == 1 else "fields are not numbers"
        yield (
            Severity.WARN,
            f"host.csv: {found.no_numbers:,} {what} (such as NaN) and left out of the counters.",
        )
    if found.damaged:
        yield (
            Severity.WARN,
            f"host.csv: {counted(found.damaged, 'line')} with more or fewer fields than the first: left out.",
        )
    t_ns = found.columns.get("t_ns", np.empty(0))
    samples = int((~np.isnan(t_ns)).sum())
    latest_ns = (run.elapsed_s + _CLOCK_SLACK_S) * 1e9
    within = int(((t_ns >= -_CLOCK_SLACK_S * 1e9) & (t_ns <= latest_ns)).sum())
    if within * 2 < samples:
        yield (
            Severity.WARN,
            f"host.csv: only {within:,} of {counted(samples, 'sample')} lie within the run's "
            "own time: the clocks of the load generator and of the host disagree, so what the counters show "
            "did not happen when it seems. Keep both in step (NTP).",
        )


def _clock(run: ReportRun) -> _Found:
    facts = run.directory.facts
    if facts.started_at and facts.ended_at and facts.ended_at < facts.started_at:
        yield (
            Severity.WARN,
            "By the clock on the wall the run ended before it began: the clock was set meanwhile. Times are "
            "right (they come from another clock), the date and the place among other runs may not be.",
        )


def _names(run: ReportRun) -> _Found:
    known = len(run.directory.routes)
    nameless = sum(int(name.partition(" ")[0]) > known for name in run.statistics.routes)
    if nameless:
        yield (
            Severity.NOTE,
            f"routes.json has no name for {counted(nameless, 'route')}: they are shown by number.",
        )


def _companions(run: ReportRun, together: Together) -> _Found:
    crowd = [(each, each.to_s) for each in together.others if each.crowd and each.to_s is not None]
    if crowd:
        last, left_s = max(crowd, key=lambda each: each[1])
        if run.elapsed_s > left_s + _SLACK_S:
            text = (
                f"It went on for {seconds(run.elapsed_s - left_s)} after {last.member}, its crowd, had left, "
                "and was without it then. Make its phases longer, or set during_s: null."
            )
            yield Severity.WARN, text
    busy = run.saturation
    if busy is None:
        return
    if run.elapsed_s < busy.start_ns / 1e9:
        text = (
            f"It had ended before {busy.name} began, so nothing of it met that: give it a later begin_s, or "
            "make before_s shorter."
        )
        yield Severity.WARN, text
    elif busy.stop_ns is not None and run.elapsed_s + _SLACK_S < busy.stop_ns / 1e9:
        early = seconds(busy.stop_ns / 1e9 - run.elapsed_s)
        text = f"It ended by itself {early} before {busy.name} did: there was no more for it to do."
        yield Severity.NOTE, text
