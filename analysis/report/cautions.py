"""Cautions about one run, each with its remedy: shown before any figure."""

from dataclasses import dataclass

from analysis.report.measured_run import MeasuredRun
from analysis.statistics.sample import P999, fewest
from plimsoll.common.severity import Severity, gravest_first
from plimsoll.common.units import counted, milliseconds, share

_MISMATCH_SHARE = 0.01
_MOST_KINDS = 4
_BOUND_NEEDS = 3_688  # requests for an upper bound of p99.9 at 95 %: ⌈ln 0.025 / ln 0.999⌉


@dataclass(frozen=True)
class Caution:
    """One sentence or two."""

    level: Severity
    text: str


def cautions_of(run: MeasuredRun) -> list[Caution]:
    """Return the run's cautions, the gravest first. Texts are hostile."""
    found = _ending(run) + _generator(run) + _sample_size(run) + _failures(run) + _mismatches(run)
    found += _waiting(run) + _not_sent(run) + _limits(run)
    return gravest_first(found)


def _ending(run: MeasuredRun) -> list[Caution]:
    reason = run.directory.facts.reason
    because = f": {reason.rstrip('.')}." if reason else "."
    if run.directory.killed:
        records = counted(run.directory.requests.count, "request")
        text = f"The run was killed. Known of it are the {records} on disk; up to a second is missing."
        return [Caution(Severity.BAD, text)]
    if run.status == "running":
        return [Caution(Severity.WARN, "The run has not ended yet: this is what it wrote so far.")]
    if run.status == "failed":
        return [Caution(Severity.BAD, f"The run failed{because}")]
    if run.status == "interrupted":
        return [
            Caution(
                Severity.WARN,
                f"The run was interrupted{because} The figures are of what was done until then.",
            )
        ]
    return []


def _generator(run: MeasuredRun) -> list[Caution]:
    if not run.generator_limited:
        return []
    lag = milliseconds(run.statistics.samples["lag"].figures_ms()["p99.9"])
    reason = run.directory.facts.generator_limited_reason or (
        f"the generator sent one request in a thousand over {lag} late; use a lower speed or rate, stop "
        "other programs on this machine, or give the generator processor cores of its own"
    )
    return [
        Caution(
            Severity.BAD, f"These figures are partly the load generator's own doing: {reason.rstrip('.')}."
        )
    ]


def _sample_size(run: MeasuredRun) -> list[Caution]:
    requests = run.statistics.requests
    if requests < fewest(P999):
        scripted = not run.directory.facts.logs
        longer = "Look at the steps." if scripted else "Replay a longer part of the log."
        text = f"Only {counted(requests, 'request')}: a p99.9 needs 1,000. {longer}"
        return [Caution(Severity.NOTE if scripted else Severity.WARN, text)]
    if requests < _BOUND_NEEDS:
        text = f"{counted(requests, 'request')} give a p99.9, but not how far to trust it; that takes 3,688."
        return [Caution(Severity.NOTE, text)]
    return []


def _failures(run: MeasuredRun) -> list[Caution]:
    errors, requests = run.statistics.total.errors, run.statistics.requests
    if not errors:
        return []
    by_kind = sorted(run.statistics.errors.items(), key=lambda item: -item[1])
    kinds = ", ".join(f"{count:,} {name}" for name, count in by_kind[:_MOST_KINDS])
    if others := sum(count for _, count in by_kind[_MOST_KINDS:]):
        kinds += f", {counted(others, 'other')}"
    text = f"{counted(errors, 'request')} of {requests:,} failed ({share(errors, requests)}): {kinds}."
    return [Caution(Severity.BAD if errors > requests * _MISMATCH_SHARE else Severity.WARN, text)]


def _mismatches(run: MeasuredRun) -> list[Caution]:
    total, found = run.statistics.total, []
    answered = total.grinder.tests
    if total.status_mismatch > answered * _MISMATCH_SHARE:
        part = share(total.status_mismatch, answered)
        text = (
            f"{part} of the responses had another status than the log has: is the target the site of the log?"
        )
        found.append(Caution(Severity.WARN, text))
    if total.bytes_mismatch > answered * _MISMATCH_SHARE:
        part = share(total.bytes_mismatch, answered)
        text = f"{part} of the responses had the log's status, but another size."
        found.append(Caution(Severity.NOTE, text))
    return found


def _waiting(run: MeasuredRun) -> list[Caution]:
    queued, requests = run.statistics.queued, run.statistics.requests
    if not queued:
        return []
    text = (
        f"{counted(queued, 'request')} ({share(queued, requests)}) waited for a free connection, as in a "
        "browser that has all its connections in use. The wait is part of the response time; if it is the "
        "cap on connections that you see, raise --max-connections."
    )
    return [Caution(Severity.WARN if queued > requests * _MISMATCH_SHARE else Severity.NOTE, text)]


def _not_sent(run: MeasuredRun) -> list[Caution]:
    found = []
    rejected = sum(log.failed or 0 for log in run.directory.facts.logs)
    if rejected:
        text = (
            f"{counted(rejected, 'log line')} did not parse and {_was(rejected)} not sent; see rejects.log."
        )
        found.append(Caution(Severity.NOTE, text))
    summary = run.directory.summary
    if summary is None:
        return found
    skipped = {reason: count for reason, count in summary.requests.skipped.items() if count}
    if skipped:
        total = sum(skipped.values())
        reasons = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in skipped.items())
        text = f"{counted(total, 'request')} of the log {_was(total)} not sent: {reasons}."
        found.append(Caution(Severity.WARN if "cap_reached" in skipped else Severity.NOTE, text))
    if summary.requests.unsent:
        text = f"{counted(summary.requests.unsent, 'request')} would have been due after the run ended."
        found.append(Caution(Severity.WARN, text))
    sent = summary.requests.sent
    if sent is not None and sent != run.directory.requests.count:
        text = (
            f"summary.json says that {counted(sent, 'request')} {_was(sent)} sent, but requests.npy holds "
            f"{run.directory.requests.count:,}; the figures are of the latter."
        )
        found.append(Caution(Severity.BAD, text))
    return found


def _limits(run: MeasuredRun) -> list[Caution]:
    found = []
    if run.directory.facts.loop == "closed":
        text = (
            "A closed loop: a slow server slowed the load down, so the percentiles are kinder than those of "
            "visitors, who do not wait for one another. Compare only with runs of the same kind."
        )
        found.append(Caution(Severity.NOTE, text))
    if run.statistics.warmup:
        warmup = run.statistics.warmup
        text = f"{counted(warmup, 'request')} of the warm-up {_was(warmup)} left out."
        found.append(Caution(Severity.NOTE, text))
    return found


def _was(number: int) -> str:
    return "was" if number == 1 else "were"
