"""What changed between two looks, a line each: for logs, where there is no terminal. Pure."""

from collections.abc import Iterator

from plimsoll.lab.experiment.status.model import Status
from plimsoll.lab.experiment.status.stretches import OVER
from plimsoll.lab.experiment.status.text import (
    disk_text,
    doing_text,
    end_text,
    load_text,
    phase_text,
    run_text,
    runs_text,
    send_text,
)

_SETTLED_S = 5.0


def changes(before: Status | None, after: Status) -> Iterator[str]:
    """Yield what is new: a phase, a run, a failure, a backend that was set aside, the end."""
    failed = after.runs.failed_tries - (before.runs.failed_tries if before else 0)
    if failed > 0 and before and (failure := after.last_failure):
        reason = failure.why.partition("\n")[0].rstrip(".")
        yield f"{failure.run} failed: {reason}. Output: {failure.output}"
    for name in after.set_aside.keys() - (before.set_aside.keys() if before else set()):
        yield f"{name} set aside: {after.set_aside[name]}"
    if before and after.runs.finished > before.runs.finished:
        yield runs_text(after)
    if _moved(before, after):
        yield _said(after)


def phase_changes(before: Status | None, after: Status) -> Iterator[str]:
    """Yield what is new within a run: its phase. The runs themselves are told by who does them."""
    if after.now and after.now.what == "measuring" and _moved(before, after):
        yield _said(after)


def heartbeat(status: Status) -> str:
    """Return one line on what is going on, with figures."""
    return _said(status, figures=True)


def _moved(before: Status | None, after: Status) -> bool:
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


def _said(status: Status, figures: bool = False) -> str:
    now = status.now
    if now is None:
        again = f"; go on with: {status.resume}" if status.resume else ""
        return f"{status.state}: {runs_text(status)}{again}"
    parts = [run_text(now, status.runs.total)] if now.run else []
    parts.append(phase_text(now) if now.what == "measuring" else doing_text(now))
    if figures:
        if now.what == "measuring":
            many = len(now.load) > 1
            parts += [(f"{load.scenario}: " if many else "") + load_text(load) for load in now.load]
            parts += [text for text in (send_text(now), disk_text(now)) if text]
        parts.append(runs_text(status))
        if end := end_text(status):
            parts.append(f"ends {end}")
    return "; ".join(parts)
