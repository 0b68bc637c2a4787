"""The text printed about a fleet. What hosts say is hostile: none of it reaches the terminal raw."""

from collections.abc import Sequence
from typing import Any

from plimsoll.common.hostile import printable
from plimsoll.lab.errors import last_words
from plimsoll.lab.hosts.fleet import HostOutcome

_LONGEST = 4096


def outcome_lines(outcome: HostOutcome) -> list[str]:
    """Return the outcome on one host: a heading, and its output (`|`) and errors (`!`). Pure."""
    name = printable(outcome.host)
    lines = [f"{name}: {printable(outcome.trouble) or 'ok'}, {outcome.duration_s:.1f} s"]
    for line in outcome.lines:
        mark = "|" if line.stream == "out" else "!"
        lines.append(f"{name} {mark} {printable(line.text.expandtabs(), _LONGEST)}".rstrip())
    if outcome.left_out:
        lines.append(f"{name}: {outcome.left_out} further lines are not shown")
    return lines


def summary_lines(outcomes: Sequence[HostOutcome], not_done: Sequence[str]) -> list[str]:
    """Return a summary of all hosts. Pure."""
    failed = [outcome for outcome in outcomes if not outcome.well]
    counts = f"{len(outcomes) - len(failed)} ok, {len(failed)} failed"
    total = len(outcomes) + len(not_done)
    lines = [f"{total} host{'' if total == 1 else 's'}: {counts}, {len(not_done)} not done"]
    if failed:
        first = failed[0]
        words = last_words("\n".join(line.text for line in first.lines if line.stream == "err"))
        what = f"{first.host}: {first.trouble}" + (f": {words}" if words else "")
        lines += [f"first failure: {printable(what, 600)}", f"failed: {_names([one.host for one in failed])}"]
    if not_done:
        lines.append(f"not done: {_names(not_done)}")
    return lines


def as_json(
    command: Sequence[str], outcomes: Sequence[HostOutcome], not_done: Sequence[str]
) -> dict[str, Any]:
    """Return the outcomes as data for JSON. Pure."""
    return {
        "format": 1,
        "command": list(command),
        "ok": sum(outcome.well for outcome in outcomes),
        "failed": sum(not outcome.well for outcome in outcomes),
        "not_done": list(not_done),
        "hosts": [
            {
                "name": outcome.host,
                "status": outcome.status,
                "trouble": outcome.trouble or None,
                "duration_s": round(outcome.duration_s, 3),
                "output": [{"stream": line.stream, "text": line.text} for line in outcome.lines],
                "left_out": outcome.left_out,
            }
            for outcome in outcomes
        ],
    }


def _names(names: Sequence[str]) -> str:
    return ", ".join(printable(name) for name in names)
