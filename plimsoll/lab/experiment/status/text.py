"""The status in words, and what changed between two readings. What comes from logs is made harmless. Pure."""

from collections.abc import Iterator
from datetime import datetime

from plimsoll.common.hostile import printable
from plimsoll.common.units import ABSENT, counted, milliseconds, seconds, significant
from plimsoll.lab.experiment.status.running import OVER, Activity, LoadFigures
from plimsoll.lab.experiment.status.watch import Status

_STATES = {
    "not begun": "not begun",
    "stopped": "nothing runs: it was stopped or killed before its end",
    "finished": "all runs are finished",
    "unfinished": "ended, but not all runs are finished",
}
_STEPS = {
    "starting": "getting ready",
    "making": "setting up",
    "preconditioning": "preconditioning",
    "fileio": "measuring the volume of",
    "preparing": "preparing",
    "measuring": "measuring",
    "ending": "finishing",
    "waiting": "waiting before the next try",
    "removing": "removing everything that was made",
}
_SETTLED_S = 5.0


def lines(status: Status) -> list[str]:
    """Return the whole status, a line each."""
    begun = f" since {_clock(status.begun_at)}" if status.begun_at else ""
    said = f"running{begun}" if status.state == "running" else _STATES[status.state]
    found = [f"{status.experiment}: {said}, in {status.directory}"]
    rows = [*_doing_rows(status), *_volume_rows(status), ("runs", _runs_text(status)), *_other_rows(status)]
    found += [f"  {name:<10} {text}" for name, text in rows]
    return [printable(line, 2000) for line in found]


def _runs_text(status: Status) -> str:
    """Return how many runs are finished, left, set aside, and how many tries failed."""
    runs = status.runs
    parts = [f"{runs.finished} of {runs.total} finished", f"{runs.left} left"]
    if runs.set_aside:
        parts.append(f"{runs.set_aside} set aside")
    if runs.failed_tries:
        parts.append(counted(runs.failed_tries, "failed try", "failed tries"))
    return ", ".join(parts)


def _run_text(now: Activity, total: int | None = None) -> str:
    """Return which run it is: `run 3 of 8: replay on nvme, repeat 2`; the try, where it is not the first."""
    again = f", try {now.try_}" if now.try_ and now.try_ > 1 else ""
    of = f" of {total}" if total else ""
    return f"run {now.number}{of}: {now.scenario} on {now.backend}, repeat {now.repeat}{again}"


def _doing_text(now: Activity) -> str:
    """Return what is done apart from measuring: `setting up nvme: clone the site`."""
    text = _STEPS[now.what]
    if now.what in ("making", "preconditioning", "fileio") and now.backend:
        text += f" {now.backend}"
    return f"{text}: {now.step}" if now.step else text


def _phase_text(now: Activity) -> str:
    """Return the phase and its clock: `during, 0:42 of 2:00`."""
    if now.phase is None or now.phase_s is None:
        return "the scenario has begun"
    name = "the scenario goes on after its phases" if now.phase == OVER else now.phase
    of = f" of {clock(now.phase_of_s)}" if now.phase_of_s is not None else ""
    return f"{name}, {clock(now.phase_s)}{of}"


def load_text(load: LoadFigures) -> str:
    """Return the figures of a load so far, or when it begins."""
    if load.waits_s is not None:
        return f"begins in {clock(load.waits_s)}"
    rate = ABSENT if load.requests_per_s is None else significant(load.requests_per_s)
    text = f"{rate} requests/s, p99.9 so far {milliseconds(load.p999_ms)}"
    if load.phase_p999_ms is not None:
        text += f", in this phase {milliseconds(load.phase_p999_ms)}"
    return f"{text}, {counted(load.failures, 'failure')}" if load.failures else text


def _send_text(now: Activity) -> str | None:
    """Return the throughput of the saturator, None before it started."""
    send = now.send
    if send is None:
        return None
    rate = "–" if send.bytes_per_s is None else f"{significant(send.bytes_per_s / 1e6)} MB/s"
    text = rate if send.works else "stopped"
    return f"{send.kind} {text}" + (f", began again {counted(send.retries, 'time')}" if send.retries else "")


def _disk_text(now: Activity) -> str | None:
    """Return the latencies of the slowest disk, None where none is known."""
    known = [disk for disk in now.disks if disk.read_ms is not None or disk.write_ms is not None]
    if not known:
        return None
    worst = max(known, key=lambda disk: max(disk.read_ms or 0.0, disk.write_ms or 0.0))
    both = (("reads", worst.read_ms), ("writes", worst.write_ms))
    parts = [f"{name} {milliseconds(ms)}" for name, ms in both if ms is not None]
    return f"{worst.device}: {', '.join(parts)}"


def _end_text(status: Status) -> str | None:
    """Return when it ends, None where nothing runs."""
    if status.state != "running":
        return None
    if status.left_s is None or status.ends_at is None:
        return "unknown: it depends on a scenario that no run has timed yet"
    return f"about {_clock(status.ends_at)}, in {seconds(max(status.left_s, 0.0))}"


def clock(value_s: float | None) -> str:
    """Return a clock: `0:42`, `1:02:03`."""
    if value_s is None:
        return ABSENT
    minutes, rest_s = divmod(int(value_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest_s:02d}" if hours else f"{minutes}:{rest_s:02d}"


def _doing_rows(status: Status) -> Iterator[tuple[str, str]]:
    now = status.now
    if now is None:
        return
    if now.run is not None:
        yield "now", _run_text(now, status.runs.total)
    if now.what != "measuring":
        yield ("" if now.run else "now"), f"{_doing_text(now)}, for {clock(now.since_s)}"
        return
    whole = f" (run: {clock(now.run_s)} of {clock(now.run_of_s)})" if now.run_of_s is not None else ""
    yield "phase", _phase_text(now) + whole
    for load in now.load:
        name = f"{load.scenario}: " if len(now.load) > 1 else ""
        yield "load", name + load_text(load)
    for name, text in (("saturator", _send_text(now)), ("disk", _disk_text(now))):
        if text:
            yield name, text


def _volume_rows(status: Status) -> Iterator[tuple[str, str]]:
    if filled := status.precondition:
        yield "filled", f"{filled.done} of {counted(filled.volumes, 'volume')} done, {filled.steady} steady"
    if (cells := status.fileio) is None:
        return
    failed = "".join(f"; {name} failed: {why.partition(chr(10))[0]}" for name, why in cells.failed.items())
    yield "fileio", f"{cells.finished} of {counted(cells.total, 'cell')} finished{failed}"


def _other_rows(status: Status) -> Iterator[tuple[str, str]]:
    for name, why in status.set_aside.items():
        yield "set aside", f"{name}: {why}"
    if status.last_failure and status.state != "finished":
        failure = status.last_failure
        reason = failure.why.partition("\n")[0].rstrip(".")
        yield "failed", f"{failure.run} at {_clock(failure.at)}: {reason}. Output: {failure.output}"
    if end := _end_text(status):
        yield "ends", end
    if status.resume:
        yield "continue with", status.resume
    if status.report:
        yield "report", status.report


def _clock(at: datetime | None) -> str:
    """Return an instant in the local time; with its day, where that is not today."""
    if at is None:
        return ABSENT
    local, now = at.astimezone(), datetime.now().astimezone()
    return f"{local:%H:%M}" if local.date() == now.date() else f"{local:%a %d %b %H:%M}"


def describe_news(before: Status | None, after: Status) -> Iterator[str]:
    """Yield what is new: a phase, a run, a failure, a backend that was set aside, the end."""
    failed = after.runs.failed_tries - (before.runs.failed_tries if before else 0)
    if failed > 0 and before and (failure := after.last_failure):
        reason = failure.why.partition("\n")[0].rstrip(".")
        yield f"{failure.run} failed: {reason}. Output: {failure.output}"
    for name in after.set_aside.keys() - (before.set_aside.keys() if before else set()):
        yield f"{name} set aside: {after.set_aside[name]}"
    if before and after.runs.finished > before.runs.finished:
        yield _runs_text(after)
    if _has_moved(before, after):
        yield _summarize(after)


def describe_phase(before: Status | None, after: Status) -> Iterator[str]:
    """Yield a new phase within a run. The runs themselves are reported by who does them."""
    if after.now and after.now.what == "measuring" and _has_moved(before, after):
        yield _summarize(after)


def describe_now(status: Status) -> str:
    """Return one line on what is going on, with figures."""
    return _summarize(status, figures=True)


def _has_moved(before: Status | None, after: Status) -> bool:
    place = _place(after)
    return place != (_place(before) if before else None) and not is_brief(after)


def _place(status: Status) -> tuple[object, ...]:
    now = status.now
    if now is None:
        return (status.state,)
    return (status.state, now.what, now.backend, now.run, now.try_, now.phase)


def is_brief(status: Status) -> bool:
    """Return whether the scenario has just outlived its phases: most end with them."""
    now = status.now
    return now is not None and now.phase == OVER and (now.phase_s or 0.0) < _SETTLED_S


def _summarize(status: Status, figures: bool = False) -> str:
    now = status.now
    if now is None:
        again = f"; continue with: {status.resume}" if status.resume else ""
        return f"{status.state}: {_runs_text(status)}{again}"
    parts = [_run_text(now, status.runs.total)] if now.run else []
    parts.append(_phase_text(now) if now.what == "measuring" else _doing_text(now))
    if figures:
        if now.what == "measuring":
            many = len(now.load) > 1
            parts += [(f"{load.scenario}: " if many else "") + load_text(load) for load in now.load]
            parts += [text for text in (_send_text(now), _disk_text(now)) if text]
        parts.append(_runs_text(status))
        if end := _end_text(status):
            parts.append(f"ends {end}")
    return "; ".join(parts)
