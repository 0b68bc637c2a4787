"""A timer's status, for people and for programs. Pure."""

from datetime import datetime, tzinfo
from typing import Any

from plimsoll.common.hostile import printable
from plimsoll.lab.schedule.definition import Timer
from plimsoll.lab.schedule.nights import Night
from plimsoll.lab.schedule.status import Status

_LONGEST = 4000


def when(at: datetime | None, of: Timer | None) -> str:
    """Return `at` in the zone of the timer."""
    if at is None or of is None:
        return "not known"
    zone: tzinfo = of.nights.tzinfo()
    return f"{at.astimezone(zone):%a %Y-%m-%d %H:%M %Z}"


def data_of(status: Status) -> dict[str, Any]:
    """Return the status for --json: instants in UTC."""

    def nightdata_of(one: Night | None) -> Any:
        return one and one.model_dump(mode="json")

    return {
        "name": status.name,
        "schedule": status.schedule and status.schedule.model_dump(mode="json"),
        "next": status.next and status.next.isoformat(),
        "last": nightdata_of(status.last),
        "running": nightdata_of(status.running),
        "missed": [one.due and one.due.isoformat() for one in status.missed],
        "problems": status.problems,
        "notes": status.notes,
    }


def lines_of(status: Status) -> list[str]:
    """Return the lines for a terminal."""
    of = status.schedule
    lines = [f"{status.name}: {'all is well' if not status.problems else 'something is wrong'}"]
    if of is not None:
        lines += [f"  lab      {of.lab}", f"  when     {of.calendar} ({of.kind})"]
        lines.append(f"  next     {when(status.next, of)}")
        if status.running is not None:
            lines.append(f"  running  since {when(status.running.began, of)}")
        last = status.last
        said = "none yet" if last is None else f"{when(last.due or last.began, of)}: {last.outcome}"
        lines.append(f"  last     {said}")
        if last is not None and last.said:
            lines.append(f"           {last.said.splitlines()[0]}")
        lines.append(f"  results  {of.out}")
    lines += [f"  wrong    {problem}" for problem in status.problems]
    lines += [f"  note     {note}" for note in status.notes]
    return [printable(line, _LONGEST) for line in lines]
