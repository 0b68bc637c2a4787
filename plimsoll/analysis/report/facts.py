"""The facts of a run: its target, its program and its settings."""

from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.together import together_of
from plimsoll.common.units import ABSENT, counted, seconds, share, significant
from plimsoll.rundir.runfacts import Clients, ExperimentRun, LogPauses, Sender, Storage

_GIB = 1 << 30


def facts_of(run: MeasuredRun) -> list[tuple[str, str]]:
    """Return (what, value) pairs, absent ones left out. Values are hostile."""
    facts = run.directory.facts
    target = facts.target
    pairs = [
        ("directory", str(run.directory.path)),
        ("scenario", facts.scenario),
        ("backend", facts.backend),
        ("emulated", run.emulated),
        ("tuning", _tuning(facts.storage)),
        ("caches", _caches(facts.storage)),
        ("volume", _volume(facts.storage)),
        ("experiment", _experiment(facts.experiment)),
        ("at the same time", together_of(facts.together)),
        ("repeat", None if facts.repeat is None else str(facts.repeat)),
        ("target", target.url if target else None),
        ("connected to", (target.connect_to or ", ".join(target.addresses)) if target else None),
        *(("log", _log(run, index)) for index in range(len(facts.logs))),
        ("pauses of the log", _pauses(facts.log_pauses)),
        ("clients of the log", _clients(facts.clients)),
        ("speed", None if facts.from_log else _speed(facts.speed, facts.loop)),
        ("seed", None if facts.seed is None else str(facts.seed)),
        ("started", facts.started_at.strftime("%Y-%m-%d %H:%M:%S %Z").strip() if facts.started_at else None),
        ("limits", _limits(run)),
        ("members", _members(run)),
        ("sent again", _sent_again(run)),
        ("took", seconds(run.elapsed_s)),
        ("command", " ".join(facts.command)),
        ("program", " ".join(filter(None, (facts.program.name, facts.program.version)))),
        ("generator's machine", _host(run)),
        ("sent by", _sender(facts.sender)),
    ]
    return [(what, value) for what, value in pairs if value]


def _sender(sender: Sender | None) -> str | None:
    if sender is None:
        return None
    where = "on the server's machine" if sender.beside_server else "on a machine of its own"
    return f"{counted(sender.threads, 'thread')}, nice {sender.nice}, {where}"


def _tuning(storage: Storage | None) -> str | None:
    return ", ".join(
        f"{value.key} {value.set}" + ("" if value.was == value.set else f" (was {value.was or ABSENT})")
        for value in (storage.tuning if storage else [])
    )


def _caches(storage: Storage | None) -> str | None:
    if storage is None or storage.cache is None:
        return None
    return ": ".join(filter(None, (storage.cache.state, ", ".join(storage.cache.how))))


def _volume(storage: Storage | None) -> str | None:
    if storage is None or (said := storage.precondition) is None:
        return None
    how, rounds = "steady" if said.steady else "not steady", counted(said.rounds or 0, "round")
    return f"{said.fill_percent or ABSENT} % full, {how} after {rounds} of overwrites"


def _experiment(experiment: ExperimentRun | None) -> str | None:
    if experiment is None:
        return None
    number = f", run {experiment.run}" if experiment.run is not None else ""
    return experiment.name + number + (f" of {experiment.of}" if number and experiment.of is not None else "")


def _log(run: MeasuredRun, index: int) -> str:
    log = run.directory.facts.logs[index]
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


def _pauses(pauses: LogPauses | None) -> str | None:
    if pauses is None:
        return None
    return f"{pauses.shortened:,} shortened, by {seconds(pauses.cut_s)} in all"


def _clients(clients: Clients | None) -> str | None:
    if clients is None:
        return None
    said = (
        f"{clients.counted:,}, the largest with {significant(100 * clients.largest_share)} % of the requests"
    )
    if not clients.proxies:
        return said
    over = f"spread over {clients.spread_over:,} clients" if clients.spread_over else "not spread"
    return (
        f"{said}; {clients.proxies:,} of proxies, with {significant(100 * clients.proxies_share)} %, {over}"
    )


def _speed(speed: str | None, loop: str) -> str | None:
    if speed is None:
        return None
    named = {"1": "1 (recorded pace)", "max": "max (as fast as it goes)"}.get(speed, speed)
    return named + (", closed loop" if loop == "closed" else ", open loop")


def _limits(run: MeasuredRun) -> str | None:
    facts, summary = run.directory.facts, run.directory.summary
    outcomes = {one.limit: one.outcome for one in summary.limits} if summary else {}
    return "; ".join(f"{limit} {outcomes.get(limit, 'not judged')}" for limit in facts.limits or [])


def _members(run: MeasuredRun) -> str | None:
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


def _sent_again(run: MeasuredRun) -> str | None:
    summary = run.directory.summary
    if not summary or not summary.requests.retried:
        return None
    retried = summary.requests.retried
    part = share(retried, run.directory.requests.count)
    return f"{counted(retried, 'request')} ({part}), since the server had closed the kept-open connection"


def _host(run: MeasuredRun) -> str:
    host = run.directory.facts.host
    memory = f"{host.memory_bytes / _GIB:.1f} GiB" if host.memory_bytes else None
    cpus = counted(host.cpus, "processor") if host.cpus else None
    return ", ".join(filter(None, (host.hostname, host.cpu, cpus, memory, host.kernel)))
